//! In-store units: halving, attempts, setting aside, retrying, and taking over from leaders that died.

use std::collections::BTreeSet;
use std::time::Duration;

use bursar::domain::JobName;
use bursar::domain::job::ProbeDefinition;
use bursar::store::{RequestKind, RequestState, Store};
use bursar::tenure::Ending;

use super::ground::{Ground, NEVER, SOON, actor, job};
use crate::support::eventually;

fn keys(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_five_thousand_units_only_the_two_bad_ones_are_set_aside_after_the_configured_attempts() {
    let probe = ProbeDefinition {
        units: 5_000,
        fail: keys(&["unit-01234"]),
        panic: keys(&["unit-04321"]),
        ..ProbeDefinition::default()
    };
    let ground = Ground::with(vec![job(NEVER, probe)]).await;
    let claim = ground.lead(1).await;
    let run = ground.trigger().await;
    ground.run_in(run, "complete_set_aside").await;
    assert_eq!(ground.units_in(run, "settled").await, 4_998);
    let aside: Vec<(String, i32, String)> = ground
        .database
        .rows(&format!("select key, attempts, last_error from bursar.unit where run_id = {run} and state = 'set_aside' order by key"))
        .await;
    assert_eq!(aside.len(), 2);
    assert_eq!((aside[0].0.as_str(), aside[0].1), ("unit-01234", 3));
    assert!(aside[0].2.contains("set to fail"), "{aside:?}");
    assert_eq!((aside[1].0.as_str(), aside[1].1), ("unit-04321", 3));
    assert!(aside[1].2.contains("panic"), "{aside:?}");
    let charged: i64 = ground
        .database
        .value(&format!("select count(*) from bursar.unit where run_id = {run} and state = 'settled' and attempts > 0"))
        .await;
    assert_eq!(charged, 0, "nobody else is charged");
    assert_eq!(ground.counter.count("attempts settled"), 4_998);
    assert_eq!(ground.counter.count("attempts failed"), 4);
    assert_eq!(ground.counter.count("attempts set_aside"), 2);
    assert_eq!(ground.counter.count("in flight"), 0);
    ground.end(&claim, Ending::Abrupt).await;
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn units_set_aside_are_retried_on_request_and_their_run_ends_again() {
    let probe = ProbeDefinition { units: 20, fail_once: keys(&["unit-00007"]), ..ProbeDefinition::default() };
    let mut once = job(NEVER, probe);
    once.retry.max_attempts = 1;
    let ground = Ground::with(vec![once]).await;
    let claim = ground.lead(1).await;
    let run = ground.trigger().await;
    ground.run_in(run, "complete_set_aside").await;
    let kind = RequestKind::RetryUnits { run, keys: BTreeSet::new() };
    let request = ground.store.request(&kind, &actor(), Some("mended")).await.expect("the run is known");
    assert_eq!(ground.answered(request).await, RequestState::Done { run, units: 1 });
    ground.run_in(run, "complete").await;
    assert_eq!(ground.units_in(run, "settled").await, 20);
    ground.end(&claim, Ending::Abrupt).await;
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_with_a_cutoff_in_the_future_is_refused() {
    let ground = Ground::with(vec![job(NEVER, ProbeDefinition::default())]).await;
    let claim = ground.lead(1).await;
    let run = ground.trigger().await;
    ground.run_in(run, "complete").await;
    let now = ground.store.now().await.expect("an answer");
    let job = JobName::new("probe").expect("a name");
    let kind = RequestKind::Trigger { job, tick: None, cutoff: Some(now + chrono::TimeDelta::hours(1)) };
    let request = ground.store.request(&kind, &actor(), None).await.expect("the job is known");
    let state = ground.answered(request).await;
    assert!(matches!(&state, RequestState::Refused { why } if why.contains("cutoff")), "{state:?}");
    ground.end(&claim, Ending::Abrupt).await;
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_abrupt_end_left_is_taken_up_by_the_next_and_settled_once() {
    let probe = ProbeDefinition { units: 400, wait_ms: 20, ..ProbeDefinition::default() };
    let mut slow = job(NEVER, probe);
    slow.batch.size = 10;
    let ground = Ground::with(vec![slow]).await;
    let mut claim = ground.lead(1).await;
    let run = ground.trigger().await;
    for term in 2..=4 {
        ground.settled_at_least(run, 60 * (term - 1)).await;
        ground.end(&claim, Ending::Abrupt).await;
        assert_eq!(ground.counter.count("in flight"), 0);
        claim = ground.lead(term).await;
    }
    ground.run_in(run, "complete").await;
    assert_eq!(ground.units_in(run, "settled").await, 400);
    let by_batches: i64 =
        ground.database.value(&format!("select sum(settled)::bigint from bursar.batch where run_id = {run}")).await;
    assert_eq!(by_batches, 400, "each unit in one batch");
    ground.end(&claim, Ending::Abrupt).await;
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_over_which_three_leaders_died_is_set_aside_and_others_go_on() {
    // A batch takes far longer than any of these tenures: no unit ever ends.
    let probe = ProbeDefinition { units: 5, wait_ms: 15_000, ..ProbeDefinition::default() };
    let ground = Ground::with(vec![job(NEVER, probe)]).await;
    let claim = ground.lead(1).await;
    let run = ground.trigger().await;
    let mut claim = claim;
    for term in 2..=4 {
        eventually(SOON, "it is worked on", async || {
            // Its units are in: planning is work too, and a leader that dies of it leaves none to be set aside.
            let query = format!(
                "select count(*) from bursar.run where id = {run} and worked_term = {term} - 1 and state = 'open'"
            );
            (ground.database.value::<i64>(&query).await == 1).then_some(())
        })
        .await;
        ground.break_down(&claim).await;
        claim = ground.lead(term).await;
    }
    ground.run_in(run, "complete_set_aside").await;
    assert_eq!(ground.units_in(run, "set_aside").await, 5);
    ground.edit(vec![job(NEVER, ProbeDefinition { units: 5, ..ProbeDefinition::default() })]);
    eventually(SOON, "the edit is in force", async || {
        let query = "select count(*) from bursar.job where definition #>> '{handler,probe,wait_ms}' = '0'";
        (ground.database.value::<i64>(query).await == 1).then_some(())
    })
    .await;
    let other = ground.trigger().await;
    ground.run_in(other, "complete").await;
    ground.end(&claim, Ending::Abrupt).await;
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planned_end_lets_begun_batches_commit_and_counts_no_death() {
    let probe = ProbeDefinition { units: 50, wait_ms: 300, ..ProbeDefinition::default() };
    let mut slow = job(NEVER, probe);
    slow.batch.size = 5;
    let ground = Ground::with(vec![slow]).await;
    let claim = ground.lead(1).await;
    let run = ground.trigger().await;
    ground.settled_at_least(run, 5).await;
    ground.end(&claim, Ending::Planned { drain: Duration::from_secs(10) }).await;
    let (settled, pending) = (ground.units_in(run, "settled").await, ground.units_in(run, "pending").await);
    assert_eq!(settled % 5, 0);
    assert!(pending > 0, "nothing new was begun");
    let (deaths, worked): (i32, Option<i64>) = ground
        .database
        .rows::<(i32, Option<i64>)>(&format!("select deaths, worked_term from bursar.run where id = {run}"))
        .await
        .remove(0);
    assert_eq!((deaths, worked), (0, None), "the run was given back");
    let next = ground.lead(2).await;
    ground.run_in(run, "complete").await;
    let deaths: i32 = ground.database.value(&format!("select deaths from bursar.run where id = {run}")).await;
    assert_eq!(deaths, 0);
    ground.end(&next, Ending::Abrupt).await;
    ground.leave().await;
}
