//! How fast leadership changes hands, without any store: the part of a takeover that is leadership's own.

use std::time::Duration;

use bursar::clock::boottime;
use bursar::leadership::Report;
use bursar::leadership::etcd::EtcdConfig;

use super::app::{App, Fences, Manners, PATIENCE};
use crate::support::etcd::{Etcd, fresh_prefix};
use crate::support::wait::eventually;

const TIMES: usize = 20;

/// A drained leader's key is gone and another has won within this, on two busy cores.
const BOUND: Duration = Duration::from_millis(100);

#[tokio::test]
#[expect(clippy::print_stdout, reason = "the distribution is what the test is for")]
async fn an_idle_leader_that_drains_is_followed_at_once() {
    let (etcd, prefix, fences) = (Etcd::shared(), fresh_prefix(), Fences::default());
    let start = |n: usize| {
        let config = EtcdConfig { endpoints: etcd.endpoints(), prefix: prefix.clone(), tls: None, auth: None };
        App::start(&format!("r{n}"), config, Duration::from_secs(30), &fences, Manners::default())
    };
    let mut leader = start(0);
    leader.until_it_leads().await;
    let mut took = Vec::new();
    for round in 1..=TIMES {
        let follower = start(round);
        eventually(PATIENCE, "the follower watches the leader", async || {
            (follower.view().leader.is_some() && follower.handle.view().borrow().registered).then_some(())
        })
        .await;
        let asked = boottime();
        leader.handle.report(Report::Drain);
        let claim = follower.until_it_leads().await;
        let (won, accepted) = (follower.won_at().expect("won"), follower.accepted_at(&claim).expect("accepted"));
        took.push((won.since(asked), accepted.since(asked)));
        tokio::time::timeout(Duration::from_secs(1), leader.handle.join()).await.expect("it leaves within a second");
        leader = follower;
    }
    took.sort();
    println!("from the drain to the next win, and to its acceptance, {TIMES} times: {took:?}");
    assert!(took[TIMES / 2].0 <= BOUND && took[TIMES - 1].0 <= BOUND * 3, "{took:?}");
}
