//! After the end nothing of a tenure goes on: no session, no task, no timer's thread.

use std::time::Duration;

use bursar::domain::job::{ProbeDefinition, ProbeShape};
use bursar::tenure::Ending;

use super::ground::{Ground, SOON, Said, job};
use crate::support::{eventually, scratch};

/// Threads of this process that carry the timers' name.
fn timer_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    tasks
        .filter_map(Result::ok)
        .filter(|task| {
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "tenure-timers")
        })
        .count()
}

fn tasks_alive() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_tenures_leave_no_session_and_no_task_behind() {
    let busy = ProbeDefinition { units: 2_000, wait_ms: 30, ..ProbeDefinition::default() };
    let mut every_second = job("* * * * * *", busy);
    every_second.batch.size = 50;
    let ground = Ground::with(vec![every_second]).await;
    let mut after_the_first = 0;
    for term in 1..=30 {
        let claim = ground.lead(term).await;
        if term % 3 == 0 {
            // Some of them in the middle of a batch.
            tokio::time::timeout(Duration::from_secs(2), ground.settled_at_least(1, 1)).await.ok();
        }
        let ending = if term % 2 == 0 { Ending::Abrupt } else { Ending::Planned { drain: Duration::from_secs(5) } };
        ground.end(&claim, ending).await;
        assert_eq!(ground.tenure_sessions().await, 0, "after term {term}");
        assert_eq!(ground.counter.count("in flight"), 0, "after term {term}");
        if term == 2 {
            after_the_first = tasks_alive();
        }
    }
    // The supervisor, the pools' own, and this test's; whatever they are, they do not grow.
    let alive = tasks_alive();
    assert!(alive <= after_the_first + 2, "{after_the_first} tasks after the first tenures, {alive} after the last");
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_tenure_ends_its_timers_thread() {
    let ground = Ground::with(vec![job("0 0 0 * * *", ProbeDefinition::default())]).await;
    let claim = ground.lead(1).await;
    ground.end(&claim, Ending::Abrupt).await;
    ground.leave().await;
    // Other tests of this process lead as well; each has at most one.
    assert!(timer_threads() <= 16, "{} timers' threads", timer_threads());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planned_end_can_be_made_abrupt() {
    let log = scratch::folder("demotion").join("log");
    let stuck = ProbeDefinition {
        shape: ProbeShape::Outside,
        units: 3,
        wait_ms: 60_000,
        log_file: Some(log.display().to_string()),
        ..ProbeDefinition::default()
    };
    let ground = Ground::with(vec![job(super::ground::NEVER, stuck)]).await;
    let claim = ground.lead(1).await;
    ground.trigger().await;
    eventually(SOON, "a call is under way", async || log.exists().then_some(())).await;
    let reason = "drain".to_owned();
    let planned = Ending::Planned { drain: Duration::from_mins(10) };
    ground.order(bursar::tenure::Order::End { claim: claim.clone(), ending: planned, reason });
    tokio::time::timeout(Duration::from_millis(500), ground.hear(&Said::Ended(claim.term)))
        .await
        .expect_err("it waits for the answers");
    ground.end(&claim, Ending::Abrupt).await;
    assert_eq!(ground.tenure_sessions().await, 0);
    ground.leave().await;
}
