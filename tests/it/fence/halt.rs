//! The kill switch: in force with the next transaction, waits for what is under way, lets outcomes be recorded.

use std::time::Duration;

use bursar::clock;
use bursar::store::{Actor, AdvanceOutcome, Entered, Scope, Store, UnitPick};

use super::ground::{
    BOUND, accepted, actor, claim, election, entered, leader, lineage, mark, migrated, mine, open, planned, tenure,
};

fn one() -> Scope {
    Scope::One(election())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halted_election_begins_nothing_and_still_records() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let run = planned(tenure.as_ref(), "probe", &["a", "b"]).await;
    let reports = store.halt(&one(), "drill", &actor()).await.expect("halted");
    assert_eq!(reports.len(), 1);
    assert!(!reports[0].already && reports[0].on_the_wire == 0, "{reports:?}");
    let halted = tenure.settle(&run, UnitPick::Fresh { after: 0, limit: 1 }, &mark()).await;
    let Ok(Entered::Halted(halt)) = halted else { panic!("{halted:?}") };
    assert_eq!((halt.reason.as_str(), halt.by.as_str()), ("drill", "ann@desk"));
    assert!(matches!(tenure.pulse().await, Ok(Entered::Halted(_))));
    assert!(matches!(tenure.take_calls(&run, 1).await, Ok(Entered::Halted(_))));
    assert!(matches!(tenure.finish_run(run.id).await, Ok(Entered::Halted(_))));
    assert_eq!(mine(tenure.record_calls(run.id, &[]).await), 0);
    mine(tenure.recover().await);
    mine(tenure.lineage().await);
    mine(tenure.release().await);
    assert!(store.halt(&one(), "again", &actor()).await.expect("an answer")[0].already);
    assert!(!store.resume(&one(), "over", &actor()).await.expect("resumed")[0].already);
    assert!(store.resume(&one(), "over", &actor()).await.expect("an answer")[0].already);
    mine(tenure.pulse().await);
    let acts: Vec<(String, String, i64)> =
        database.rows("select action, reason, term from bursar.operator_act order by id").await;
    let expected = [("halt", "drill"), ("halt", "again"), ("resume", "over"), ("resume", "over")];
    assert_eq!(acts, expected.map(|(action, reason)| (action.to_owned(), reason.to_owned(), 1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halt_stays_through_a_change_of_leader_and_before_the_first_one() {
    let database = migrated().await;
    let store = open(&database.url());
    store.halt(&one(), "not yet", &actor()).await.expect("halted");
    let fence = store.fence(&election()).await.expect("an answer").expect("a fence");
    assert_eq!(fence.holder.term.get(), 0);
    for term in [1, 2] {
        let outcome = store.advance(&claim(term), &leader(), BOUND).await.expect("an answer");
        let AdvanceOutcome::Accepted { halt: Some(halt) } = outcome else { panic!("{outcome:?}") };
        assert_eq!(halt.reason, "not yet");
    }
    store.resume(&Scope::All, "go", &actor()).await.expect("resumed");
    accepted(&store, &claim(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halt_waits_for_sixteen_transactions_under_way_and_ends_none() {
    let database = migrated().await;
    let store = open(&database.url());
    let old = claim(1);
    accepted(&store, &old).await;
    let mut holders = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let mut holder = entered(&database, &old).await;
        holders
            .spawn(async move { sqlx::raw_sql("select pg_sleep(0.5); commit").execute(&mut holder).await.map(|_| ()) });
    }
    let began = clock::boottime();
    let reports = store.halt(&one(), "drill", &actor()).await.expect("halted");
    let took = clock::boottime().since(began);
    assert!(reports[0].waited_ms >= 100, "{reports:?}");
    assert!(took < Duration::from_secs(3), "{took:?}");
    while let Some(ended) = holders.join_next().await {
        ended.expect("joined").expect("no transaction is ended for a halt");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_says_what_it_accepted_and_a_halt_by_bursar_is_added_to_an_operators() {
    let database = migrated().await;
    let store = open(&database.url());
    accepted(&store, &claim(1)).await;
    assert_eq!(store.resumed_baseline(&election()).await, Ok(None));
    store.halt(&one(), "drill", &actor()).await.expect("halted");
    let itself = Actor { user: "bursar".to_owned(), host: "host-a".to_owned() };
    for why in ["the database forgot: its log stands at 1", "the database forgot: its log stands at 2"] {
        store.halt(&one(), why, &itself).await.expect("halted");
    }
    let halt = store.fence(&election()).await.expect("an answer").expect("a fence").halt.expect("halted");
    assert_eq!(halt.reason, "drill; bursar: the database forgot: its log stands at 1");
    assert_eq!(halt.by, "ann@desk");
    let before = lineage(&store).await;
    store.resume(&one(), "looked at", &actor()).await.expect("resumed");
    let (baseline, at) = store.resumed_baseline(&election()).await.expect("an answer").expect("recorded");
    let after = lineage(&store).await;
    assert!(before.position <= baseline.position && baseline.position <= after.position, "{baseline:?}");
    assert_eq!((&baseline.system_identifier, baseline.timeline), (&after.system_identifier, after.timeline));
    assert!(at <= store.now().await.expect("an answer"));
    store.resume(&one(), "again", &actor()).await.expect("resumed already");
    assert_eq!(
        store.resumed_baseline(&election()).await,
        Ok(Some((baseline, at))),
        "a resume of nothing accepts nothing"
    );
}
