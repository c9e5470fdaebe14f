//! Outside units: recorded, called, recorded; each once, however the tenure ends.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bursar::domain::job::{ProbeDefinition, ProbeShape};
use bursar::store::Store;
use bursar::tenure::Ending;

use super::ground::{Ground, NEVER, SOON, actor, election, job};
use crate::support::{eventually, scratch};

fn outside(units: u32, wait_ms: u64, log: &Path) -> ProbeDefinition {
    ProbeDefinition {
        shape: ProbeShape::Outside,
        units,
        wait_ms,
        log_file: Some(log.display().to_string()),
        ..ProbeDefinition::default()
    }
}

/// How often each key was called.
fn calls(log: &Path) -> BTreeMap<String, u32> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let mut calls = BTreeMap::new();
    for line in text.lines() {
        let key = line.split(' ').next().expect("a key");
        *calls.entry(key.to_owned()).or_insert(0) += 1;
    }
    calls
}

#[tokio::test(flavor = "multi_thread")]
async fn each_unit_is_called_once_and_failures_are_tried_again() {
    let log = scratch::folder("outside").join("log");
    let mut probe = outside(200, 1, &log);
    probe.fail_once = ["unit-00003".to_owned()].into();
    probe.fail = ["unit-00004".to_owned()].into();
    probe.panic = ["unit-00005".to_owned()].into();
    let mut job = job(NEVER, probe);
    job.batch.size = 40;
    let ground = Ground::with(vec![job]).await;
    let claim = ground.lead(1).await;
    let run = ground.trigger().await;
    ground.run_in(run, "complete_set_aside").await;
    assert_eq!(ground.units_in(run, "settled").await, 198);
    let aside: Vec<(String, i32)> = ground
        .database
        .rows(&format!(
            "select key, attempts from bursar.unit where run_id = {run} and state = 'set_aside' order by key"
        ))
        .await;
    assert_eq!(aside, [("unit-00004".to_owned(), 3), ("unit-00005".to_owned(), 3)]);
    let calls = calls(&log);
    assert_eq!(calls.len(), 198);
    assert!(calls.values().all(|count| *count == 1), "{calls:?}");
    ground.end(&claim, Ending::Abrupt).await;
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planned_end_waits_for_answers_and_the_next_calls_nobody_twice() {
    let log = scratch::folder("outside").join("log");
    let mut job = job(NEVER, outside(60, 400, &log));
    job.batch.size = 10;
    let ground = Ground::with(vec![job]).await;
    let claim = ground.lead(1).await;
    let run = ground.trigger().await;
    eventually(SOON, "calls are under way", async || (calls(&log).len() >= 5).then_some(())).await;
    ground.end(&claim, Ending::Planned { drain: Duration::from_secs(10) }).await;
    let sending: i64 =
        ground.database.value("select count(*) from bursar.instruction where state in ('sending', 'unknown')").await;
    assert_eq!(sending, 0, "what was under way is on record");
    assert!(ground.units_in(run, "pending").await > 0);
    let next = ground.lead(2).await;
    ground.run_in(run, "complete").await;
    let calls = calls(&log);
    assert_eq!(calls.len(), 60);
    assert!(calls.values().all(|count| *count == 1), "{calls:?}");
    ground.end(&next, Ending::Abrupt).await;
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_is_over_leaves_calls_without_an_answer_unknown() {
    let log = scratch::folder("outside").join("log");
    let mut job = job(NEVER, outside(4, 60_000, &log));
    job.batch.size = 4;
    let ground = Ground::with(vec![job]).await;
    let claim = ground.lead(1).await;
    let run = ground.trigger().await;
    eventually(SOON, "calls are under way", async || (calls(&log).len() == 4).then_some(())).await;
    ground.end(&claim, Ending::Planned { drain: Duration::from_secs(2) }).await;
    // Not idempotent: what is not known is for a person.
    assert_eq!(ground.units_in(run, "set_aside").await, 4);
    let held: Vec<(String, bool)> =
        ground.database.rows("select distinct state, in_doubt from bursar.instruction").await;
    assert_eq!(held, [("held".to_owned(), true)]);
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abrupt_end_leaves_calls_to_the_next_promotion_which_makes_none_of_them_again() {
    let log = scratch::folder("outside").join("log");
    let mut job = job(NEVER, outside(4, 60_000, &log));
    job.batch.size = 4;
    let ground = Ground::with(vec![job]).await;
    let claim = ground.lead(1).await;
    let run = ground.trigger().await;
    eventually(SOON, "calls are under way", async || (calls(&log).len() == 4).then_some(())).await;
    ground.end(&claim, Ending::Abrupt).await;
    let sending: i64 = ground.database.value("select count(*) from bursar.instruction where state = 'sending'").await;
    assert_eq!(sending, 4, "an abrupt end waits for nothing and records nothing");
    let next = ground.lead(2).await;
    ground.run_in(run, "complete_set_aside").await;
    assert_eq!(calls(&log).values().sum::<u32>(), 4);
    ground.end(&next, Ending::Abrupt).await;
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_recorded_while_the_election_is_halted_and_nothing_new_is_sent() {
    let log = scratch::folder("outside").join("log");
    let mut job = job(NEVER, outside(40, 1_500, &log));
    job.batch.size = 8;
    let ground = Ground::with(vec![job]).await;
    let claim = ground.lead(1).await;
    let run = ground.trigger().await;
    eventually(SOON, "calls are under way", async || (calls(&log).len() >= 8).then_some(())).await;
    ground.store.halt(&election(), "month end", &actor()).await.expect("an answer");
    let sent = calls(&log).len();
    eventually(SOON, "what had left is on record", async || {
        (ground.units_in(run, "settled").await == i64::try_from(sent).expect("small")).then_some(())
    })
    .await;
    assert_eq!(calls(&log).len(), sent, "nothing was sent after the halt");
    ground.store.resume(&election(), "done", &actor()).await.expect("an answer");
    ground.run_in(run, "complete").await;
    assert_eq!(calls(&log).values().sum::<u32>(), 40);
    ground.end(&claim, Ending::Abrupt).await;
    ground.leave().await;
}
