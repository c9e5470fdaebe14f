//! The fence itself: who is accepted, who loses, what a halt does, and what is written down of all that.

use std::sync::Arc;

use bursar::domain::ElectionName;
use bursar::store::{
    Actor, AdvanceOutcome, BindOutcome, CoordinatorBinding, Entered, Fence, JobChangeOutcome, SettleOutcome, StoreError,
};

use super::bench::{
    Admits, BOUND, Bench, actor, charge, claim, claim_of, election, fresh, holder, keys, leader, mark, mine, new_job,
    probe,
};

pub async fn a_higher_term_is_accepted_a_lower_or_equal_one_lost(bench: &Bench) {
    assert_eq!(bench.store.fence(&election()).await, Ok(None));
    let (five, other_five, four, six) = (claim(5), claim(5), claim(4), claim(6));
    bench.accepted(&five).await;
    for late in [&four, &other_five] {
        let outcome = bench.store.advance(late, &leader(), BOUND).await.expect("an answer");
        assert_eq!(outcome, AdvanceOutcome::Lost(holder(&five)), "{late}");
    }
    let found = Fence { holder: holder(&five), halt: None };
    assert_eq!(bench.store.fence(&election()).await, Ok(Some(found)));
    bench.accepted(&six).await;
    let terms = bench.store.history(10).await.expect("an answer").terms;
    assert_eq!(terms.iter().map(|term| term.term).collect::<Vec<_>>(), [6, 5], "only what was accepted is history");
    assert_eq!((terms[0].tenure_id, terms[0].replica.as_str()), (six.tenure_id.0, "replica-a"));
    let mut refusals = bench.refusals(2).await;
    refusals.sort_by_key(|refusal| refusal.presented.term);
    for (refusal, late) in refusals.iter().zip([&four, &other_five]) {
        assert_eq!((&refusal.presented, refusal.found), (late, Some(holder(&five))));
        assert_eq!(refusal.operation, "advance");
    }
}

pub async fn repeating_an_advance_is_accepted_again_and_written_down_once(bench: &Bench) {
    let one = claim(1);
    bench.accepted(&one).await;
    bench.accepted(&one).await;
    assert_eq!(bench.store.history(10).await.expect("an answer").terms.len(), 1);
}

pub async fn of_two_leaders_at_one_term_exactly_one_is_accepted(bench: &Bench) {
    for term in 1..=5 {
        let (one, two) = (claim(term), claim(term));
        let by = leader();
        let (first, second) =
            tokio::join!(bench.store.advance(&one, &by, BOUND), bench.store.advance(&two, &by, BOUND));
        let outcomes = [first.expect("an answer"), second.expect("an answer")];
        let won = outcomes.iter().filter(|outcome| matches!(outcome, AdvanceOutcome::Accepted { .. })).count();
        assert_eq!(won, 1, "{outcomes:?}");
    }
}

pub async fn a_halt_is_told_to_whoever_advances_and_stays_through_changes_of_leader(bench: &Bench) {
    bench.store.halt(&election(), "not yet", &actor()).await.expect("halted");
    let fence = bench.store.fence(&election()).await.expect("an answer").expect("a fence");
    assert_eq!(fence.holder.term.get(), 0);
    let (first, second) = (claim(1), claim(2));
    for claim in [&first, &first, &second] {
        let outcome = bench.store.advance(claim, &leader(), BOUND).await.expect("an answer");
        let AdvanceOutcome::Accepted { halt: Some(halt) } = outcome else { panic!("{outcome:?}") };
        assert_eq!(halt.reason, "not yet");
    }
    bench.store.resume(&election(), "go", &actor()).await.expect("resumed");
    bench.accepted(&claim(3)).await;
}

pub async fn halting_and_resuming_say_what_they_found_and_are_written_down_each_time(bench: &Bench) {
    bench.accepted(&claim(1)).await;
    let mut already = Vec::new();
    for reason in ["drill", "again"] {
        already.push(bench.store.halt(&election(), reason, &actor()).await.expect("an answer"));
    }
    let halt = bench.store.fence(&election()).await.expect("an answer").expect("a fence").halt.expect("halted");
    assert_eq!(halt.reason, "drill", "the first reason stands");
    for _ in 0..2 {
        already.push(bench.store.resume(&election(), "over", &actor()).await.expect("an answer"));
    }
    assert_eq!(already.iter().map(|report| report.already).collect::<Vec<_>>(), [false, true, false, true]);
    assert!(already.iter().all(|report| report.on_the_wire == 0 && report.election == election()), "{already:?}");
    let acts = bench.store.history(10).await.expect("an answer").acts;
    let acts: Vec<_> =
        acts.iter().rev().map(|act| (act.action.as_str(), act.reason.as_deref().unwrap_or(""), act.term)).collect();
    let expected = [("halt", "drill"), ("halt", "again"), ("resume", "over"), ("resume", "over")];
    assert_eq!(acts, expected.map(|(action, reason)| (action, reason, Some(1))));
    // All that the store knows: also an election that has a job and never had a leader of its own name.
    bench.accepted(&claim_of(ElectionName::new("other").expect("a name"), 1)).await;
    let all = bench.store.elections().await.expect("an answer");
    assert_eq!(all.iter().map(ElectionName::as_str).collect::<Vec<_>>(), ["other", "settlement"]);
    // Also one that it did not know: what the schedule was given a minute ago.
    let new = ElectionName::new("new").expect("a name");
    assert!(!bench.store.halt(&new, "all", &actor()).await.expect("halted").already);
    assert!(bench.store.elections().await.expect("an answer").contains(&new));
}

pub async fn a_resume_says_what_it_accepted_and_a_halt_by_bursar_is_added_to_an_operators(bench: &Bench) {
    bench.accepted(&claim(1)).await;
    assert_eq!(bench.store.resumed_baseline(&election()).await, Ok(None));
    bench.store.halt(&election(), "drill", &actor()).await.expect("halted");
    let itself = Actor { user: "bursar".to_owned(), host: "host-a".to_owned() };
    for why in ["the database forgot: its log stands at 1", "the database forgot: its log stands at 2"] {
        bench.store.halt(&election(), why, &itself).await.expect("halted");
    }
    let halt = bench.store.fence(&election()).await.expect("an answer").expect("a fence").halt.expect("halted");
    assert_eq!(halt.reason, "drill; bursar: the database forgot: its log stands at 1");
    assert_eq!(halt.by, "tester@bench");
    let before = bench.lineage().await;
    bench.store.resume(&election(), "looked at", &actor()).await.expect("resumed");
    let (baseline, at) = bench.store.resumed_baseline(&election()).await.expect("an answer").expect("recorded");
    let after = bench.lineage().await;
    assert!(before.position <= baseline.position && baseline.position <= after.position, "{baseline:?}");
    assert_eq!((&baseline.system_identifier, baseline.timeline), (&after.system_identifier, after.timeline));
    assert!(at <= bench.now().await);
    bench.store.resume(&election(), "again", &actor()).await.expect("resumed already");
    let accepted = bench.store.resumed_baseline(&election()).await;
    assert_eq!(accepted, Ok(Some((baseline, at))), "a resume of nothing accepts nothing");
}

pub async fn a_store_is_bound_to_one_coordinator_for_good(bench: &Bench) {
    let binding = |prefix: &str| CoordinatorBinding { kind: "etcd".to_owned(), prefix: prefix.to_owned() };
    let first = bench.store.bind(&binding("/a")).await.expect("an answer");
    let BindOutcome::Bound { deployment_id } = &first else { panic!("{first:?}") };
    assert_eq!(bench.store.bind(&binding("/a")).await, Ok(first.clone()));
    assert_eq!(bench.store.bind(&binding("/b")).await, Ok(BindOutcome::Other(binding("/a"))));
    let other_kind = CoordinatorBinding { kind: "database".to_owned(), ..binding("/a") };
    assert_eq!(bench.store.bind(&other_kind).await, Ok(BindOutcome::Other(binding("/a"))));
    assert_eq!(bench.store.status().await.expect("an answer").deployment_id, Some(*deployment_id));
}

pub async fn the_first_note_of_a_kind_on_a_tenure_stays_and_an_unknown_one_is_left(bench: &Bench) {
    let (known, unknown) = (claim(1), claim(1));
    bench.accepted(&known).await;
    let now = bench.store.now().await.expect("an answer");
    bench.store.note_work(&unknown, now).await.expect("an answer");
    bench.store.note_end(&unknown, "drain", None).await.expect("an answer");
    let term = || async { bench.store.history(10).await.expect("an answer").terms.remove(0) };
    let found = term().await;
    assert_eq!((found.worked_at, found.ended_at, found.end_reason), (None, None, None));
    bench.store.note_work(&known, now).await.expect("an answer");
    let worked = term().await;
    assert_eq!((worked.worked_at, worked.ended_at), (Some(now), None));
    bench.store.note_end(&known, "drain", Some(now - chrono::TimeDelta::hours(1))).await.expect("an answer");
    bench.store.note_end(&known, "fenced", None).await.expect("an answer");
    bench.store.note_work(&known, now + chrono::TimeDelta::seconds(1)).await.expect("an answer");
    let ended = term().await;
    assert_eq!((ended.worked_at, ended.end_reason.as_deref()), (worked.worked_at, Some("drain")));
    assert_eq!(ended.ended_at, Some(ended.accepted_at), "no term ends before it was accepted");
    let status = bench.store.status().await.expect("an answer").elections.remove(0);
    assert_eq!((status.leader.as_deref(), status.ended.as_deref()), (Some("replica-a"), Some("drain")));
    assert_eq!(status.fence.holder, holder(&known));
}

pub async fn a_tenure_is_not_opened_on_a_store_that_forgot(bench: &Bench) {
    let claim = claim(1);
    bench.accepted(&claim).await;
    let limits = bursar::store::TenureLimits {
        connections: 1,
        statement_timeout: BOUND,
        lock_timeout: BOUND,
        idle_in_transaction_timeout: BOUND,
        acquire_timeout: BOUND,
    };
    let known = bench.lineage().await;
    let mut other = known.clone();
    "another".clone_into(&mut other.system_identifier);
    let mut ahead = known.clone();
    ahead.position += 1_000_000_000_000;
    let mut later = known.clone();
    later.timeline += 1;
    for baseline in [other, ahead, later] {
        let opened = bench.store.tenure(&claim, limits, baseline.clone(), Arc::new(Admits(true))).await.map(|_| ());
        assert!(matches!(opened, Err(StoreError::Forgot { .. })), "{baseline:?}: {opened:?}");
    }
    let tenure = bench.store.tenure(&claim, limits, known.clone(), Arc::new(Admits(true))).await.expect("as it was");
    let found = mine(tenure.lineage().await);
    assert!(found.position >= known.position && found.system_identifier == known.system_identifier);
}

pub async fn elections_are_apart(bench: &Bench) {
    let tenure = bench.lead(1).await;
    let run = bench.planned(tenure.as_ref(), probe("job"), &["a"]).await;
    let planning = bench.opened(tenure.as_ref(), probe("planning")).await;
    let request = bench.ask_retry(run.id, &[]).await;
    let unit = bench.unit(run.id, "a").await.id;
    let other = bench.lead_of(&claim_of(ElectionName::new("other").expect("a name"), 7)).await;
    mine(tenure.pulse().await);
    let before = bench.picture().await;
    let pulse = mine(other.pulse().await);
    assert_eq!((pulse.requests, pulse.open_runs), (0, 0));
    assert!(mine(other.jobs().await).jobs.is_empty());
    assert!(mine(other.open_runs().await).is_empty());
    assert!(mine(other.requests().await).is_empty());
    assert_eq!(mine(other.settle(&run, fresh(10), &mark()).await), SettleOutcome::Nothing);
    assert!(mine(other.take_calls(&run, 10).await).is_empty());
    assert_eq!(mine(other.charge(run.id, &[charge(unit, 0, None)]).await), 0);
    assert!(matches!(other.finish_run(run.id).await, Err(StoreError::Broken { .. })));
    assert!(matches!(other.plan_page(&planning, &keys(&["x"]), None, 10).await, Err(StoreError::Broken { .. })));
    let refuse = bursar::store::Execution::Refuse("no".to_owned());
    assert!(matches!(other.execute(request, refuse).await, Err(StoreError::Broken { .. })));
    let foreign = mine(other.change_job(new_job(probe("job"))).await);
    assert_eq!(foreign, JobChangeOutcome::OtherElection("settlement".to_owned()));
    mine(other.begin_work(run.id).await);
    mine(other.release().await);
    mine(other.recover().await);
    assert_eq!(bench.picture().await, before, "nothing changed");
    // A halt of the one does not stop the other.
    bench.store.halt(&election(), "drill", &actor()).await.expect("halted");
    assert!(matches!(tenure.pulse().await, Ok(Entered::Halted(_))));
    mine(other.pulse().await);
}
