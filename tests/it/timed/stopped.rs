//! A leader that is stopped while it holds the fence's lock, and goes on after three TTLs.

use std::time::Duration;

use bursar::clock::boottime;

use super::{IN_VAIN, Times, settled_cluster};
use crate::support::{Job, Setup, eventually, repetitions, schedule};

const TTL: u64 = 5;

#[tokio::test]
async fn from_the_stop_of_a_leader_that_holds_the_fence_to_the_first_work_and_from_going_on_to_following() {
    let job = Job::probe("in-store", 1).set("wait_ms", "20000");
    let cluster = Setup::new(2, &schedule(&[job])).ttl(TTL).start().await;
    let mut takeover = Times::of("SIGSTOP of a leader within its transaction to first work");
    let mut demotion = Times::of("SIGCONT of an old leader to following");
    for _ in 0..repetitions("timed: a leader stopped within its transaction", 2, 20) {
        let leader = settled_cluster(&cluster).await;
        let sampler = cluster.watch();
        let term = cluster.term().await;
        cluster.trigger("in-store");
        let holds = "select count(*) from pg_stat_activity
                      where datname = current_database() and state = 'idle in transaction'";
        eventually(IN_VAIN, "it is within its transaction", async || {
            (cluster.database().value::<i64>(holds).await > 0).then_some(())
        })
        .await;
        let stopped = boottime();
        cluster.replica(leader).stop();
        cluster.wait_work_above(term, IN_VAIN).await;
        takeover.push(boottime().since(stopped));
        eventually(IN_VAIN, "three TTLs pass", async || {
            (boottime().since(stopped) >= Duration::from_secs(3 * TTL)).then_some(())
        })
        .await;
        let continued = boottime();
        cluster.replica(leader).cont();
        eventually(IN_VAIN, "it knows that it follows", async || {
            let status = cluster.replica(leader).status().await?;
            (status["elections"][0]["phase"] == "observing").then_some(())
        })
        .await;
        demotion.push(boottime().since(continued));
        sampler.finish();
        cluster.wait_no_open_run(IN_VAIN).await;
    }
    takeover.assert_at_most(Duration::from_secs(TTL + 1));
    demotion.assert_at_most(Duration::from_secs(1));
    cluster.assert_sound().await;
}
