//! Planned ends: SIGTERM to a leader that has nothing to do.

use std::time::Duration;

use bursar::clock::boottime;

use super::{IN_VAIN, Times, idle, settled_cluster};
use crate::support::{Etcd, Setup, schedule};

#[tokio::test]
async fn from_sigterm_of_an_idle_leader_to_the_first_work_of_the_next() {
    let cluster = Setup::new(2, &schedule(&[idle()])).ttl(5).start().await;
    let mut leader = settled_cluster(&cluster).await;
    let sampler = cluster.watch();
    let mut term = cluster.wait_work_above(0, IN_VAIN).await;
    let mut times = Times::of("SIGTERM of an idle leader to first work");
    for _ in 0..20 {
        let asked = cluster.store_clock().await;
        cluster.replica(leader).term();
        term = cluster.wait_work_above(term, IN_VAIN).await;
        times.push(cluster.worked_since(term, asked).await);
        assert!(cluster.replica(leader).wait_end(IN_VAIN).success());
        cluster.replica(leader).start();
        cluster.replica(leader).wait_ready(IN_VAIN).await;
        leader = cluster.wait_leader(IN_VAIN).await;
    }
    times.assert_at_most(Duration::from_millis(150));
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn an_idle_leader_with_a_long_lease_that_is_asked_to_end_gives_its_key_up_at_once() {
    let cluster = Setup::new(2, &schedule(&[idle()])).ttl(30).start().await;
    let mut leader = settled_cluster(&cluster).await;
    let sampler = cluster.watch();
    let etcd = Etcd::shared();
    let mut gone = Times::of("SIGTERM of an idle leader, TTL 30 s, to its key's end");
    let mut led = Times::of("SIGTERM of an idle leader, TTL 30 s, to another that leads");
    let mut ended = Times::of("SIGTERM of an idle leader, TTL 30 s, to its exit");
    for _ in 0..3 {
        let lease = cluster.leaders_lease(etcd).await;
        let asked = boottime();
        cluster.replica(leader).term();
        crate::support::eventually(IN_VAIN, "its key is gone", async || {
            let key = etcd.list(&cluster.leader_key()).await;
            key.first().is_none_or(|(_, _, found)| *found != lease).then_some(())
        })
        .await;
        gone.push(boottime().since(asked));
        let next = cluster.wait_other_leader(IN_VAIN, &[leader]).await;
        led.push(boottime().since(asked));
        let status = cluster.replica(leader).wait_end(IN_VAIN);
        ended.push(boottime().since(asked));
        assert_eq!(status.code(), Some(0), "{}", cluster.replica(leader).log());
        cluster.replica(leader).start();
        cluster.replica(leader).wait_ready(IN_VAIN).await;
        leader = next;
    }
    ended.print();
    gone.assert_at_most(Duration::from_secs(1));
    led.assert_at_most(Duration::from_secs(1));
    cluster.assert_sound().await;
    sampler.finish();
}
