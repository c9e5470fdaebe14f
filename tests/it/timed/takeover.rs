//! Takeovers after the leader's end: a deleted key, a SIGKILL, a revoked lease.

use std::time::Duration;

use bursar::clock::boottime;

use super::{IN_VAIN, Times, each_second, idle, settled_cluster, takeovers};
use crate::support::cluster::ELECTION;
use crate::support::{Etcd, Setup, repetitions, schedule};

/// From the leader key's end seen to the first work.
const PROMISED: Duration = Duration::from_millis(150);
const TTL: u64 = 5;

#[tokio::test]
async fn from_the_leader_keys_end_seen_to_the_first_work() {
    let cluster = Setup::new(3, &schedule(&[each_second()])).ttl(TTL).start().await;
    settled_cluster(&cluster).await;
    let mut sampler = cluster.watch();
    // The key is deleted by hand.
    sampler.tolerate(Duration::from_secs(2));
    let etcd = Etcd::shared();
    let mut term = cluster.wait_work_above(0, IN_VAIN).await;
    let mut seen = Times::of("leader key's end seen to first work");
    let mut outside = Times::of("leader key deleted to first work, from outside");
    for _ in 0..20 {
        let mut before = Vec::new();
        for replica in cluster.replicas() {
            before.push(takeovers(replica).await);
        }
        let deleted = boottime();
        assert!(etcd.delete(&cluster.leader_key()).await);
        term = cluster.wait_work_above(term, IN_VAIN).await;
        outside.push(boottime().since(deleted));
        let (leader, took) = newly_taken_over(&cluster, &before).await;
        seen.push(took);
        assert_eq!(cluster.wait_leader(IN_VAIN).await, leader);
    }
    outside.print();
    seen.assert_at_most(PROMISED);
    cluster.assert_sound().await;
    sampler.finish();
}

/// Who has taken over once more than before, and how long it took.
async fn newly_taken_over(cluster: &crate::support::Cluster, before: &[(f64, f64)]) -> (usize, Duration) {
    crate::support::eventually(IN_VAIN, "one has taken over", async || {
        for (index, (count, sum)) in before.iter().enumerate() {
            let (now, total) = takeovers(cluster.replica(index)).await;
            if now > *count {
                return Some((index, Duration::from_secs_f64((total - sum).max(0.0))));
            }
        }
        None
    })
    .await
}

#[tokio::test]
async fn from_a_kill_to_the_first_work() {
    let cluster = Setup::new(3, &schedule(&[each_second()])).ttl(TTL).start().await;
    let mut leader = settled_cluster(&cluster).await;
    let sampler = cluster.watch();
    let mut times = Times::of("SIGKILL to first work, TTL 5 s");
    let mut term = cluster.wait_work_above(0, IN_VAIN).await;
    for _ in 0..repetitions("timed: from a kill to the first work", 4, 20) {
        let killed = boottime();
        cluster.replica(leader).kill();
        term = cluster.wait_work_above(term, IN_VAIN).await;
        times.push(boottime().since(killed));
        let next = cluster.wait_other_leader(IN_VAIN, &[leader]).await;
        cluster.replica(leader).start();
        cluster.replica(leader).wait_ready(IN_VAIN).await;
        leader = next;
    }
    times.assert_at_most(Duration::from_secs(TTL + 1));
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn from_a_revoked_lease_to_the_end_of_its_tenure() {
    let cluster = Setup::new(2, &schedule(&[idle()])).ttl(TTL).start().await;
    let mut leader = settled_cluster(&cluster).await;
    let mut sampler = cluster.watch();
    // The lease is taken away by hand.
    sampler.tolerate(Duration::from_secs(2));
    let etcd = Etcd::shared();
    let mut times = Times::of("lease revoked to its owner's last claim to lead");
    for _ in 0..3 {
        let term = cluster.term().await;
        let led = || sampler.history().last_led(ELECTION, leader, u64::try_from(term).expect("positive"));
        // A takeover may be over sooner than the sampler looks again.
        crate::support::eventually(IN_VAIN, "it is seen to lead", async || led()).await;
        let revoked = boottime();
        etcd.revoke(cluster.leaders_lease(etcd).await).await;
        cluster.wait_work_above(term, IN_VAIN).await;
        times.push(led().expect("it was seen to lead").since(revoked));
        cluster.replica(leader).wait_ready(IN_VAIN).await;
        leader = cluster.wait_leader(IN_VAIN).await;
    }
    // A renewal interval.
    times.assert_at_most(Duration::from_secs(1));
    cluster.assert_sound().await;
    sampler.finish();
}
