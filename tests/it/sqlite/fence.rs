//! Two leaders on one file: whatever the order, what the old one began is committed before the advance or not at all.

use std::sync::Arc;
use std::time::Duration;

use bursar::domain::{Claim, TenureId};
use bursar::store::{AdvanceOutcome, Entered, SettleOutcome, Store, StoreError, UnitPick};

use super::ground::{
    BOUND, accepted, actor, claim, election, leader, limits, mark, mine, number, opened, path, planned, raw, run,
    store, tenure,
};
use crate::support::{Door, always, door, eventually};

const FRESH: UnitPick = UnitPick::Fresh { after: 0, limit: 10 };

#[tokio::test(flavor = "multi_thread")]
async fn an_old_term_and_the_same_term_of_another_tenure_commit_nothing() {
    let path = path();
    let (first, second) = (store(&path).await, store(&path).await);
    let old = claim(1);
    let old_tenure = tenure(&first, &old).await;
    let run = planned(old_tenure.as_ref(), "probe", &["a", "b"]).await;
    let twin = Claim { tenure_id: TenureId(bursar::clock::random_id()), ..claim(2) };
    let winner = claim(2);
    accepted(&second, &winner).await;
    let lost = first.advance(&twin, &leader(), BOUND).await.expect("an answer");
    assert!(matches!(lost, AdvanceOutcome::Lost(found) if found.tenure_id == winner.tenure_id), "{lost:?}");
    let lineage = first.health().await.expect("healthy").lineage;
    let twin_tenure = first.tenure(&twin, limits(), lineage, always()).await.expect("opened");
    for stale in [&old_tenure, &twin_tenure] {
        match stale.settle(&run, FRESH, &mark()).await {
            Ok(Entered::Fenced(Some(found))) => assert_eq!(found.tenure_id, winner.tenure_id),
            other => panic!("a stale settle answered {other:?}"),
        }
        assert!(matches!(stale.pulse().await, Ok(Entered::Fenced(Some(_)))), "a stale read");
        assert!(matches!(stale.release().await, Ok(Entered::Fenced(Some(_)))), "a stale record");
    }
    assert_eq!(number(&path, "select count(*) from unit where state = 'pending'").await, 2);
    eventually(Duration::from_secs(10), "the refusals are on record", async || {
        (number(&path, "select count(*) from fence_reject").await == 7).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_advance_waits_for_a_batch_that_holds_the_lock_and_then_sees_it() {
    let path = path();
    let (old, new) = (store(&path).await, store(&path).await);
    accepted(&old, &claim(1)).await;
    let mut writer = raw(&path).await;
    run(&mut writer, "begin immediate; update fenced_seq set value = value + 1").await.expect("a writer");
    let successor = claim(2);
    let leader = leader();
    let advance = new.advance(&successor, &leader, BOUND);
    tokio::pin!(advance);
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut advance).await.is_err(), "the lock is held");
    run(&mut writer, "commit").await.expect("a commit");
    assert_eq!(advance.await.expect("an answer"), AdvanceOutcome::Accepted { halt: None });
    let proof = "select (select h.fenced_seq from term_history h where h.term = 2) > (select h.fenced_seq from term_history h where h.term = 1) + 1";
    assert_eq!(number(&path, proof).await, 1, "the advance is numbered after what it waited for");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halt_stops_the_next_transaction_and_a_record_goes_through() {
    let path = path();
    let store = store(&path).await;
    let tenure = tenure(&store, &claim(1)).await;
    let run = planned(tenure.as_ref(), "probe", &["a"]).await;
    let election = election();
    let report = store.halt(&election, "a drill", &actor()).await.expect("halted");
    assert!(!report.already);
    match tenure.settle(&run, FRESH, &mark()).await {
        Ok(Entered::Halted(halt)) => assert_eq!((halt.reason.as_str(), halt.by.as_str()), ("a drill", "ann@desk")),
        other => panic!("a halted settle answered {other:?}"),
    }
    mine(tenure.release().await);
    assert!(store.halt(&election, "again", &actor()).await.expect("halted").already);
    let by_itself = bursar::store::Actor { user: "bursar".to_owned(), host: "h".to_owned() };
    assert!(!store.halt(&election, "it forgot", &by_itself).await.expect("halted").already);
    let halt = store.fence(&election).await.expect("read").expect("there").halt.expect("halted");
    assert_eq!(halt.reason, "a drill; bursar: it forgot");
    assert!(store.resumed_baseline(&election).await.expect("read").is_none());
    store.resume(&election, "over", &actor()).await.expect("resumed");
    let (baseline, _) = store.resumed_baseline(&election).await.expect("read").expect("on record");
    assert_eq!(baseline.system_identifier, store.health().await.expect("healthy").lineage.system_identifier);
    assert!(matches!(mine(tenure.settle(&run, FRESH, &mark()).await), SettleOutcome::Settled(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_another_program_keeps_is_to_be_tried_again_and_names_it() {
    let path = path();
    let store = store(&path).await;
    let claim = claim(1);
    accepted(&store, &claim).await;
    let lineage = store.health().await.expect("healthy").lineage;
    let hasty = bursar::store::TenureLimits { lock_timeout: Duration::from_millis(200), ..limits() };
    let tenure = store.tenure(&claim, hasty, lineage, always()).await.expect("a tenure");
    let mut writer = raw(&path).await;
    run(&mut writer, "begin immediate").await.expect("a writer");
    match tenure.release().await {
        Err(error @ StoreError::TryAgain { .. }) => {
            // However often: no verdict on what was tried.
            assert!(error.is_passing() && error.is_trouble_of_the_store());
            assert!(error.to_string().contains("write lock"), "{error}");
        }
        other => panic!("a locked store answered {other:?}"),
    }
    store.health().await.expect("a store that somebody writes to is healthy");
    mine(tenure.pulse().await);
    run(&mut writer, "rollback").await.expect("a rollback");
    mine(tenure.release().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waited_for_the_lock_begins_only_once_the_session_is_live() {
    let path = path();
    let store = store(&path).await;
    let claim = claim(1);
    accepted(&store, &claim).await;
    let lineage = store.health().await.expect("healthy").lineage;
    let (door, behind) = door();
    let tenure = store.tenure(&claim, limits(), lineage, Arc::new(behind)).await.expect("a tenure");
    let planned = planned(tenure.as_ref(), "probe", &["a"]).await;
    let mut writer = raw(&path).await;
    run(&mut writer, "begin immediate").await.expect("a writer");
    let effect = mark();
    let mut settling = Box::pin(tenure.settle(&planned, FRESH, &effect));
    assert!(tokio::time::timeout(Duration::from_millis(150), &mut settling).await.is_err(), "the lock is held");
    door.send_replace(Door::Held);
    run(&mut writer, "rollback").await.expect("the lock is free");
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut settling).await.is_err(), "the session is suspect");
    mine(tenure.release().await);
    door.send_replace(Door::Open);
    assert!(matches!(mine(settling.await), SettleOutcome::Settled(_)));
    door.send_replace(Door::Closed);
    let refused = tenure.settle(&planned, FRESH, &effect).await;
    assert_eq!(refused, Err(StoreError::Ended { operation: "settle" }), "nothing begins any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_tenure_interrupts_what_it_waits_for_and_computes() {
    let path = path();
    let store = store(&path).await;
    let tenure = tenure(&store, &claim(1)).await;
    let mut writer = raw(&path).await;
    run(&mut writer, "begin immediate").await.expect("a writer");
    let mut waiting = tokio::task::JoinSet::new();
    waiting.spawn({
        let tenure = Arc::clone(&tenure);
        async move { tenure.release().await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let since = bursar::clock::boottime();
    let ended = tenure.end(Duration::from_secs(5)).await;
    assert!(ended.confirmed, "{ended:?}");
    assert!(bursar::clock::boottime().since(since) < Duration::from_secs(2));
    assert!(matches!(waiting.join_next().await.expect("one").expect("joined"), Err(StoreError::Ended { .. })));
    assert!(matches!(tenure.pulse().await, Err(StoreError::Ended { .. })));
    assert!(tenure.end(Duration::from_secs(1)).await.confirmed, "twice is once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenure_on_a_file_that_went_back_says_that_it_forgot() {
    let path = path();
    let store = store(&path).await;
    let claim = claim(1);
    accepted(&store, &claim).await;
    let mut lineage = store.health().await.expect("healthy").lineage;
    lineage.position += 1;
    let error = store.tenure(&claim, limits(), lineage, always()).await.err().expect("refused");
    assert!(matches!(error, StoreError::Forgot { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_stores_write_to_one_file_beside_each_other() {
    let path = path();
    let owner = store(&path).await;
    let tenure = tenure(&owner, &claim(1)).await;
    let _run = opened(tenure.as_ref(), "probe").await;
    let before = number(&path, "select value from fenced_seq").await;
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let path = path.clone();
        let claim = tenure.claim().clone();
        writers.spawn(async move {
            let store = store(&path).await;
            let lineage = store.health().await.expect("healthy").lineage;
            let tenure = store.tenure(&claim, limits(), lineage, always()).await.expect("a tenure");
            for _ in 0..25 {
                mine(tenure.release().await);
            }
            store.close().await;
        });
    }
    assert_eq!(writers.join_all().await.len(), 4, "no writer is locked out");
    assert_eq!(number(&path, "select value from fenced_seq").await, before + 100);
}
