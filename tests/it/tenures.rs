//! Tenures one after the other in the same processes: nothing is left of any, and no tick is lost or doubled between them.

use std::time::Duration;

use crate::support::cluster::ELECTION;
use crate::support::proof::Resources;
use crate::support::{Cluster, EVERY_SECOND, Etcd, Job, Setup, eventually, schedule};

/// Replicas are given this TTL.
const TTL: u64 = 5;
/// A start on a busy machine.
const READY: Duration = Duration::from_secs(30);
/// A take-over on a busy machine: the key is deleted, no lease has to lapse.
const TAKEOVER: Duration = Duration::from_secs(30);
/// A run of some seconds, on a busy machine.
const SETTLED: Duration = Duration::from_mins(1);
/// Tenures of each process before anything is counted: pools, threads and caches are what they will be.
const WARM: usize = 10;
/// Tenures of each process that must leave nothing behind.
const CHANGES: usize = 50;
/// What a process may hold more than it did, after all that: an allocator's play, and far less than any tenure would leave.
const PLAY_KB: u64 = 8 * 1024;

/// Takes leadership from whoever has it, once it has worked, in one of two ways, and waits until a higher term works. Gives that term.
async fn take_away(cluster: &Cluster, etcd: &Etcd, term: i64, nth: usize) -> i64 {
    // A leader that loses a run before one of its units has ended counts as one that died over it; three of those in a row
    // are a reason to set the run aside. Here each has the time to finish what it found.
    cluster.wait_no_open_run(SETTLED).await;
    if nth % 5 == 4 {
        etcd.revoke(cluster.leaders_lease(etcd).await).await;
    } else {
        assert!(etcd.delete(&cluster.leader_key()).await, "there was a leader");
    }
    cluster.wait_work_above(term, TAKEOVER).await
}

/// How many tenures a replica has ended.
async fn ended(cluster: &Cluster, replica: usize) -> usize {
    let query = format!(
        "select count(*) from bursar.term_history
          where election = '{ELECTION}' and replica = 'r{replica}' and ended_at is not null"
    );
    usize::try_from(cluster.database().value::<i64>(&query).await).expect("not negative")
}

/// Takes leadership away until each of the two has ended so many tenures more.
async fn change_hands(cluster: &Cluster, etcd: &Etcd, times: usize) {
    let before = [ended(cluster, 0).await, ended(cluster, 1).await];
    let mut term = cluster.wait_work_above(cluster.term().await - 1, TAKEOVER).await;
    // Whoever just lost is seldom the next; many more than needed would mean that one of the two hardly ever wins.
    for nth in 0..times * 4 {
        let since = [ended(cluster, 0).await - before[0], ended(cluster, 1).await - before[1]];
        if since.iter().all(|ended| *ended >= times) {
            return;
        }
        term = take_away(cluster, etcd, term, nth).await;
    }
    panic!("each was to end {times} tenures more, of {before:?}");
}

/// Brings the replica into the following role and waits until it holds no more than that; gives what it holds.
async fn at_rest(cluster: &Cluster, etcd: &Etcd, replica: usize, most: Option<Resources>) -> Resources {
    let mut nth = 0;
    while cluster.wait_leader(TAKEOVER).await == replica {
        let term = cluster.term().await;
        take_away(cluster, etcd, term, nth).await;
        nth += 1;
        assert!(nth < 20, "the other never leads");
    }
    let Some(most) = most else {
        return settled_down(cluster, replica).await;
    };
    eventually(SETTLED, &format!("r{replica} holds what it did: {most:?}"), async || {
        let now = cluster.resources(replica);
        (now.threads <= most.threads && now.descriptors <= most.descriptors).then_some(now)
    })
    .await
}

/// Waits until the counts have not fallen for a while: idle threads of the blocking pool end after ten seconds.
async fn settled_down(cluster: &Cluster, replica: usize) -> Resources {
    let mut least = cluster.resources(replica);
    let mut since = bursar::clock::boottime();
    eventually(SETTLED, "threads and descriptors stay", async || {
        let now = cluster.resources(replica);
        if now.threads < least.threads || now.descriptors < least.descriptors {
            least = Resources {
                threads: now.threads.min(least.threads),
                descriptors: now.descriptors.min(least.descriptors),
                resident_kb: now.resident_kb,
            };
            since = bursar::clock::boottime();
        }
        (bursar::clock::boottime().since(since) > Duration::from_secs(12)).then_some(())
    })
    .await;
    least
}

#[tokio::test]
async fn fifty_changes_of_leadership_leave_nothing_behind_and_every_tick_has_one_run() {
    let jobs = [Job::probe("each-second", 3).cron(EVERY_SECOND).batch(1, 2)];
    let cluster = Setup::new(2, &schedule(&jobs)).ttl(TTL).start().await;
    let etcd = Etcd::shared();
    cluster.wait_leader(READY).await;
    for replica in cluster.replicas() {
        replica.wait_ready(READY).await;
    }
    let mut sampler = cluster.watch();
    // The key is deleted by hand: between that and its owner's noticing there may be two.
    sampler.tolerate(Duration::from_secs(2));
    change_hands(&cluster, etcd, WARM).await;
    let mut before = Vec::new();
    for replica in 0..2 {
        before.push(at_rest(&cluster, etcd, replica, None).await);
    }
    change_hands(&cluster, etcd, CHANGES).await;
    for (replica, before) in before.into_iter().enumerate() {
        // One thread and one connection more or less are the scrapes'.
        let most = Resources { threads: before.threads + 1, descriptors: before.descriptors + 2, ..before };
        let after = at_rest(&cluster, etcd, replica, Some(most)).await;
        let more = after.resident_kb.saturating_sub(before.resident_kb);
        assert!(more < PLAY_KB, "r{replica} holds {more} kB more: {before:?}, {after:?}");
        cluster.replica(replica).assert_running();
    }

    let (runs, ticks, seconds): (i64, i64, i64) = cluster
        .database()
        .rows(
            "select count(*), count(distinct tick), (extract(epoch from max(tick) - min(tick)) + 1)::bigint
               from bursar.run where kind = 'tick'",
        )
        .await[0];
    assert_eq!((runs, ticks), (seconds, seconds), "every tick has one run");
    let other =
        "select state, coalesce(why, ''), deaths from bursar.run where state not in ('planning', 'open', 'complete')";
    let other: Vec<(String, String, i32)> = cluster.database().rows(other).await;
    assert_eq!(other, [], "each was settled or is being settled");
    // Sessions of tenures that have ended: what is there belongs to control pools, the leader and this question's like.
    let sessions = cluster.database().sessions().await;
    assert!(sessions <= 2 * 4 + 16, "{sessions} sessions are open");
    cluster.shut_down(READY);
    eventually(TAKEOVER, "no session is left", async || (cluster.database().sessions().await == 0).then_some(())).await;
    cluster.assert_sound().await;
    sampler.finish();
}
