//! The kill switch while sixteen batches are under way at all times.

use std::time::Duration;

use super::{IN_VAIN, Times, settled_cluster};
use crate::support::{Cluster, Job, Setup, eventually, schedule};

/// Batches at a time, of two jobs.
const LANES: i64 = 16;
/// Each lasts so long.
const BATCH: Duration = Duration::from_millis(500);
/// What a halt may take beyond the longest of them.
const BEYOND: Duration = Duration::from_millis(200);

/// How many batches are under way, and the age in milliseconds of the oldest.
async fn under_way(cluster: &Cluster) -> (i64, i64) {
    let query = "select count(*), coalesce(max(extract(epoch from clock_timestamp() - xact_start) * 1000), 0)::bigint
                   from pg_stat_activity
                  where datname = current_database() and state = 'idle in transaction'";
    cluster.database().rows(query).await[0]
}

#[tokio::test]
async fn a_halt_is_in_force_within_the_longest_batch_under_way_and_nothing_begins_until_the_resume() {
    let job = |name: &str| Job::probe(name, 5_000).batch(1, 8).set("wait_ms", &BATCH.as_millis().to_string());
    let setup = Setup::new(2, &schedule(&[job("one"), job("two")])).key("database", "max_connections", "32");
    let cluster = setup.start().await;
    let leader = settled_cluster(&cluster).await;
    let sampler = cluster.watch();
    cluster.trigger("one");
    cluster.trigger("two");
    let term = cluster.term().await;
    let mut times = Times::of("halt asked for to halt in force, 16 batches of 500 ms under way");
    for _ in 0..5 {
        eventually(IN_VAIN, "sixteen batches are under way", async || {
            (under_way(&cluster).await.0 == LANES).then_some(())
        })
        .await;
        let asked = cluster.store_clock().await;
        let halted = cluster.command(&["halt", "--reason", "measured"]).ok();
        let in_force = cluster.since(asked, "select halted_at from bursar.fence where halted_at is not null").await;
        times.push(in_force);
        assert!(halted.stdout.contains("settlement"), "{}", halted.stdout);
        // In force: whatever was under way has ended, and nothing ends after it.
        assert_eq!(under_way(&cluster).await.0, 0);
        let later = "select count(*) from bursar.batch b join bursar.fence f using (election) where b.committed_at > f.halted_at";
        assert_eq!(cluster.database().value::<i64>(later).await, 0);
        let settled = cluster.settled().await;
        crate::support::holds_for(Duration::from_secs(1), "nothing is settled while halted", async || {
            let now = cluster.settled().await;
            if now == settled { Ok(()) } else { Err(format!("{now} after {settled}")) }
        })
        .await;
        assert_eq!(cluster.leader().await, Some(leader), "the leader stays");
        assert_eq!(cluster.term().await, term);
        cluster.command(&["resume", "--reason", "measured"]).ok();
        cluster.wait_settled(settled + 2 * LANES, IN_VAIN).await;
    }
    times.assert_at_most(BATCH + BEYOND);
    cluster.assert_sound().await;
    sampler.finish();
}
