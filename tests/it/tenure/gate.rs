//! The session's gate: nothing begins while it is held, whatever waited for what meanwhile.

use std::time::Duration;

use bursar::domain::job::ProbeDefinition;
use bursar::tenure::Ending;

use super::ground::{Ground, NEVER, Said, job};
use crate::support::{Door, holds_for};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_begun_while_the_session_is_suspect_and_nothing_after_it_is_lost() {
    let ground = Ground::with(vec![job(NEVER, ProbeDefinition::default())]).await;
    ground.door.send_replace(Door::Held);
    let claim = ground.begin(1);
    tokio::time::timeout(Duration::from_millis(500), ground.hear(&Said::Accepted(claim.term)))
        .await
        .expect_err("a held gate holds");
    ground.door.send_replace(Door::Open);
    ground.hear(&Said::FirstWork(claim.term)).await;
    ground.door.send_replace(Door::Closed);
    ground.end(&claim, Ending::Abrupt).await;
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_that_waited_for_a_connection_while_the_session_turned_suspect_do_not_begin() {
    let mut slow = job(NEVER, ProbeDefinition { units: 40, wait_ms: 150, ..ProbeDefinition::default() });
    // Four batches are let on by the gate at a time, and one has a connection.
    (slow.batch.size, slow.batch.concurrency) = (1, 4);
    let ground = Ground::with_connections(1, vec![slow]).await;
    let claim = ground.lead(1).await;
    let run = ground.trigger().await;
    ground.settled_at_least(run, 4).await;
    ground.door.send_replace(Door::Held);
    let settled = ground.units_in(run, "settled").await;
    holds_for(Duration::from_secs(2), "the gate", async || {
        let now = ground.units_in(run, "settled").await;
        if now <= settled + 1 { Ok(()) } else { Err(format!("{settled} were settled and one under way, now {now}")) }
    })
    .await;
    ground.door.send_replace(Door::Open);
    ground.run_in(run, "complete").await;
    assert_eq!(ground.counter.count("attempts settled"), 40);
    assert!(!ground.reports.said().iter().any(|said| matches!(said, Said::Fault(..))));
    ground.end(&claim, Ending::Abrupt).await;
    ground.leave().await;
}
