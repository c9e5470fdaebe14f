//! The stories of terms: what is noted of a promotion, and what is summed up of a term from its rows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bursar::domain::{Claim, ElectionName};
use bursar::store::{Promotion, Recovery, RequestKind, SettleOutcome, StoryFilter, TakenOver, TermStory};

use super::bench::{Bench, LATER, actor, capture, charge, claim, election, fenced, fresh, mark, mine, probe};

async fn told(bench: &Bench, term: Option<i64>, limit: u32) -> Vec<TermStory> {
    bench.store.stories(&StoryFilter { election: None, term, limit }).await.expect("an answer")
}

pub async fn a_term_is_told_with_what_it_found_did_and_was_refused(bench: &Bench) {
    let old = claim(3);
    let first = bench.lead_of(&old).await;
    let run = bench.planned(first.as_ref(), probe("job"), &["a", "b", "c"]).await;
    let SettleOutcome::Settled(_) = mine(first.settle(&run, fresh(1), &mark()).await) else { panic!("a is settled") };
    let unit = |key: &'static str| async move { bench.unit(run.id, key).await.id };
    mine(first.charge(run.id, &[charge(unit("b").await, 0, None), charge(unit("c").await, 0, LATER)]).await);
    mine(first.begin_work(run.id).await);
    bench.store.halt(&election(), "a drill", &actor()).await.expect("halted");
    bench.store.resume(&election(), "drilled", &actor()).await.expect("resumed");
    bench.store.ask_transfer(&election(), old.term, None, "a drill", &actor()).await.expect("asked");
    for replica in ["replica-a", "replica-c"] {
        bench.store.cordon(replica, true, "a drill", &actor()).await.expect("cordoned");
    }
    bench.store.note_end(&old, "session_lost", None).await.expect("noted");

    let second = bench.lead(7).await;
    let recovery = mine(second.recover().await);
    let promotion = Promotion {
        handed_over: false,
        vacant_for: Some(Duration::from_millis(1500)),
        won_ago: Duration::from_hours(1),
        recovery,
    };
    bench.store.note_promotion(second.claim(), &promotion).await.expect("noted");
    let late = Promotion { handed_over: true, vacant_for: None, recovery: Recovery::default(), ..promotion };
    bench.store.note_promotion(second.claim(), &late).await.expect("the first note stays");
    bench.store.note_promotion(&claim(9), &late).await.expect("a tenure that was never accepted is left");
    fenced(first.pulse().await, second.claim());
    fenced(first.settle(&run, fresh(1), &mark()).await, second.claim());
    fenced(first.pulse().await, second.claim());
    bench.refusals(3).await;

    let stories = told(bench, None, 10).await;
    let [newer, older] = &stories[..] else { panic!("{stories:#?}") };
    assert_eq!((newer.term.term, older.term.term, newer.in_force, older.in_force), (7, 3, true, false));
    let before = newer.before.as_ref().expect("one before");
    let ended = (before.term, before.replica.as_str(), before.end_reason.as_deref());
    assert_eq!((ended, before.ended_at), ((3, "replica-a", Some("session_lost")), older.term.ended_at));
    assert_eq!(older.before, None);
    assert_eq!(newer.taken_over, Some(TakenOver { runs: 1, set_aside: 0, unknown: 0 }));
    assert_eq!((newer.handed_over, older.handed_over, older.taken_over), (Some(false), None, None));
    let won = newer.won_at.expect("noted");
    let vacant = won - newer.stood_at.expect("noted");
    assert_eq!(vacant.num_milliseconds(), 1500);
    let ago = (bench.now().await - won).num_minutes();
    assert!((60..75).contains(&ago) && won <= newer.term.accepted_at, "{ago} min ago");

    let did = &older.work;
    let counts = (did.runs_opened, did.batches, did.settled, did.set_aside, did.instructions);
    assert_eq!(counts, (1, 2, 1, 1, 0), "{did:?}");
    assert_eq!((&did.payouts, did.ticks_without_run), (&BTreeMap::new(), 0));
    assert_eq!((newer.work.batches, newer.work.runs_opened), (0, 0));
    // Refusals are written down aside, so which of the two was the last is nobody's promise.
    let refused: BTreeMap<_, _> =
        older.refused.iter().map(|refused| (refused.operation.as_str(), refused.count)).collect();
    assert_eq!(refused, BTreeMap::from([("settle", 1), ("pulse", 2)]));
    assert!(newer.refused.is_empty());
    let acts: Vec<_> = older.acts.iter().map(|act| (act.action.as_str(), act.by.as_str())).collect();
    let by = "tester@bench";
    assert_eq!(acts, [("halt", by), ("resume", by), ("transfer", by), ("cordon", by)]);
    assert_eq!(older.acts[3].target, "replica-a", "and of no other");
    assert!(newer.acts.is_empty());

    assert_eq!(told(bench, Some(3), 10).await, std::slice::from_ref(older));
    assert_eq!(told(bench, None, 1).await, std::slice::from_ref(newer));
    assert_eq!(told(bench, Some(4), 10).await, []);
    let other = ElectionName::new("other").expect("a name");
    let of_other = StoryFilter { election: Some(other), term: None, limit: 10 };
    assert_eq!(bench.store.stories(&of_other).await.expect("an answer"), []);
}

pub async fn an_act_that_looks_at_no_term_stands_in_the_story_of_the_one_that_was_in_force(bench: &Bench) {
    let cordon = async |cordoned| bench.store.cordon("replica-a", cordoned, "a drill", &actor()).await.expect("done");
    cordon(true).await;
    let first = bench.lead_of(&claim(3)).await;
    let run = bench.planned(first.as_ref(), probe("job"), &["a"]).await;
    bench.import("psp", vec![capture("1", "m", "EUR", "1.00")]).await;
    let retry = RequestKind::RetryUnits { run: run.id, keys: BTreeSet::new() };
    bench.store.request(&retry, &actor(), Some("mended")).await.expect("filed");
    bench.store.hold_merchant("m", "a question", &actor()).await.expect("held");
    cordon(false).await;
    // Of another election, which has a leader of its own.
    let other = Claim { election: ElectionName::new("other").expect("a name"), ..claim(9) };
    bench.accepted(&other).await;
    bench.lead(7).await;
    bench.store.release_merchant("m", "answered", &actor()).await.expect("released");

    let of = async |election: &ElectionName, term| {
        let filter = StoryFilter { election: Some(election.clone()), term: Some(term), limit: 1 };
        let story = bench.store.stories(&filter).await.expect("an answer").remove(0);
        story.acts.iter().map(|act| act.action.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(&election(), 3).await, ["units retry", "merchant hold", "uncordon"], "without what came before");
    assert_eq!(of(&election(), 7).await, ["merchant release"]);
    assert_eq!(of(&other.election, 9).await, ["merchant release"], "what is on no election is in each one's");
}
