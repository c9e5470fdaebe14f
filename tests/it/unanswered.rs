//! A take of calls whose COMMIT is not answered: the leader puts back what nobody has in hand and goes on, under the same
//! tenure. Nothing that never left is taken for sent, and nothing that left is sent again.

use std::time::Duration;

use crate::support::{Calls, Job, Setup, schedule};

/// A start on a busy machine.
const READY: Duration = Duration::from_secs(30);
const UNITS: u32 = 30;

/// Runs a job of calls with a receiver that is not idempotent; the second take of calls meets this point. At that time
/// six calls of the first are under way: two of its eight failed at once.
async fn second_take_meets(point: &str) {
    let calls = Calls::none_yet();
    let job = Job::calling("calls", UNITS, &calls)
        .set("idempotent", "false")
        .batch(8, 1)
        .retry(3, "10ms..50ms")
        .set("wait_ms", "1500")
        .set("fail_once", "[\"unit-00000\", \"unit-00001\"]");
    let cluster = Setup::new(1, &schedule(&[job])).steady().chaos(&format!("{point}:take_calls=error@2")).start().await;
    let leader = cluster.wait_leader(READY).await;
    let term = cluster.term().await;
    let run = cluster.run_now("calls").await;

    let log = cluster.replica(leader).log();
    assert!(log.contains("the outcome of the commit is unknown"), "the point was met:\n{log}");
    let shown = cluster.run_shown(run);
    assert_eq!(
        (&shown["summary"]["state"], &shown["summary"]["units"]["settled"]),
        (&"complete".into(), &UNITS.into()),
        "{shown}"
    );
    let doubted: i64 =
        cluster.database().value("select count(*) from bursar.instruction where in_doubt or state <> 'paid'").await;
    assert_eq!(doubted, 0, "what never left is not in doubt");
    let by_key = calls.by_key();
    assert_eq!(by_key.len(), UNITS as usize);
    assert!(by_key.values().all(|count| *count == 1), "{by_key:?}");
    assert_eq!(cluster.term().await, term, "the tenure is the same");
    let tenures: i64 = cluster.database().value("select count(*) from bursar.term_history").await;
    assert_eq!(tenures, 1);
    cluster.assert_sound().await;
}

#[tokio::test]
async fn a_take_of_calls_that_was_committed_and_not_answered_is_put_back_under_the_same_tenure() {
    second_take_meets("store.commit.after").await;
}

#[tokio::test]
async fn a_take_of_calls_that_was_not_committed_and_not_answered_is_simply_made_again() {
    second_take_meets("store.commit.before").await;
}
