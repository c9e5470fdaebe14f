//! Renewals while everything else is busy: connections, workers, the processors themselves.

use std::time::Duration;

use bursar::clock::boottime;

use super::{IN_VAIN, Times, settled_cluster};
use crate::support::cluster::ELECTION;
use crate::support::{Calls, Job, Setup, eventually, measured, schedule};

/// Everything is busy for so long.
const BUSY: Duration = Duration::from_secs(40);
/// And is watched for so long, from when all of it has begun.
const WATCHED: Duration = Duration::from_secs(30);
const TTL: u64 = 5;
/// Batches at a time that sixteen connections of a process are good for: four are for control, one for the sweep.
const BATCHES: i64 = 11;

#[tokio::test]
async fn no_renewal_is_late_while_handlers_hold_every_connection_and_compute_without_yielding() {
    let calls = Calls::none_yet();
    let busy = BUSY.as_millis().to_string();
    let slow = |name: &str| Job::probe(name, 8).batch(1, 8).set("wait_ms", &busy);
    let jobs =
        [slow("slow-one"), slow("slow-two"), Job::calling("computing", 2, &calls).batch(2, 1).set("spin_ms", &busy)];
    let setup = Setup::new(2, &schedule(&jobs)).ttl(TTL).key("database", "max_connections", "16");
    let cluster = setup.start().await;
    let leader = settled_cluster(&cluster).await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    cluster.trigger("computing");
    cluster.trigger("slow-one");
    cluster.trigger("slow-two");
    let replica = cluster.replica(leader);
    let in_transaction = "select count(*) from pg_stat_activity
                           where datname = current_database() and state = 'idle in transaction'";
    eventually(IN_VAIN, "every connection for batches is in use", async || {
        (cluster.database().value::<i64>(in_transaction).await >= BATCHES && calls.all().len() == 2).then_some(())
    })
    .await;

    let begun = boottime();
    let renewals_before = replica.metric("bursar_lease_renewal_seconds_count", &[]).await.expect("it answers");
    let mut answers = Times::of("a scrape of the busy leader");
    let mut least = f64::INFINITY;
    while boottime().since(begun) < WATCHED {
        let asked = boottime();
        let metrics = replica.metrics().await.expect("it answers while it is busy");
        answers.push(boottime().since(asked));
        assert_eq!(metrics.value("bursar_leader", &[("election", ELECTION)]), Some(1.0));
        assert_eq!(metrics.value("bursar_session_state", &[("state", "live")]), Some(1.0), "never suspect");
        least = least.min(metrics.value("bursar_session_remaining_seconds", &[]).expect("the series exists"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let busy_for = boottime().since(begun).as_secs_f64();
    let metrics = replica.metrics().await.expect("it answers");
    let renewals =
        metrics.value("bursar_lease_renewal_seconds_count", &[]).expect("the series exists") - renewals_before;
    measured(&format!(
        "busy for {busy_for:.1} s: {renewals} renewals, never less than {least:.2} s of the session left"
    ));
    answers.assert_at_most(Duration::from_secs(1));
    assert!(renewals >= busy_for - 2.0, "{renewals} renewals in {busy_for} s: one a second was to be sent");
    // A renewal is due each second, and the session lasts for 4 s from the sending of the last: less than 2.5 s left would
    // mean one half a second late.
    assert!(least >= 2.5, "{least} s were left at the least");
    assert!(!replica.log().contains("suspect"), "{}", replica.log());
    assert_eq!(cluster.term().await, term);

    cluster.wait_settled(2, BUSY + IN_VAIN).await;
    cluster.assert_sound().await;
    sampler.finish();
}
