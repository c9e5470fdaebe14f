//! The kill switch: in force with the next transaction, the leader stays, and a resume goes on where it stood.

use std::time::Duration;

use bursar::domain::job::ProbeDefinition;
use bursar::store::Store;
use bursar::tenure::Ending;

use super::ground::{Ground, NEVER, Said, actor, election, job};
use crate::support::holds_for;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_settled_between_halt_and_resume_and_the_leader_stays() {
    let probe = ProbeDefinition { units: 600, wait_ms: 10, ..ProbeDefinition::default() };
    let mut small = job(NEVER, probe);
    small.batch.size = 5;
    let ground = Ground::with(vec![small]).await;
    let claim = ground.lead(1).await;
    let run = ground.trigger().await;
    ground.settled_at_least(run, 50).await;
    ground.store.halt(&election(), "month end", &actor()).await.expect("an answer");
    // The exclusive lock was had: whatever was under way has ended.
    let settled = ground.units_in(run, "settled").await;
    holds_for(Duration::from_secs(3), "the halt", async || {
        let now = ground.units_in(run, "settled").await;
        if now == settled { Ok(()) } else { Err(format!("{settled} were settled, now {now}")) }
    })
    .await;
    assert!(!ground.reports.said().iter().any(|said| matches!(said, Said::Ended(_) | Said::Fault(..))));
    ground.store.resume(&election(), "done", &actor()).await.expect("an answer");
    ground.run_in(run, "complete").await;
    assert_eq!(ground.units_in(run, "settled").await, 600);
    ground.end(&claim, Ending::Abrupt).await;
    ground.leave().await;
}
