//! Edits of the schedule across restarts and takeovers: none fires a tick that lies in the past.

use chrono::{DateTime, TimeDelta, Timelike, Utc};

use super::{READY, SETTLED, TAKEOVER, kill_leader};
use crate::support::{Cluster, EVERY_SECOND, Etcd, Job, Setup, eventually, schedule};

/// Fires once a year, at that moment.
fn at(time: DateTime<Utc>) -> String {
    time.format("%-S %-M %-H %-d %-m *").to_string()
}

/// A moment a few seconds ago, at the store's clock, in whole seconds.
async fn just_past(cluster: &Cluster) -> DateTime<Utc> {
    cluster.store_clock().await.with_nanosecond(0).expect("0 is one") - TimeDelta::seconds(2)
}

/// Puts the job `moved` at that time, beside one that shows that the leader works.
fn with_moved_to(time: DateTime<Utc>) -> String {
    schedule(&[Job::probe("moved", 1).cron(&at(time)), Job::probe("each-second", 1).cron(EVERY_SECOND)])
}

/// Waits until the job row says what the schedule says.
async fn wait_in_force(cluster: &Cluster, time: DateTime<Utc>) {
    let query = format!(
        "select count(*) from bursar.job where name = 'moved' and definition -> 'timing' ->> 'cron' = '{}'",
        at(time)
    );
    eventually(TAKEOVER, "the edit is in force", async || {
        (cluster.database().value::<i64>(&query).await == 1).then_some(())
    })
    .await;
}

/// Waits until the other job has had two more ticks, which comes after whatever the edit would have fired.
async fn wait_two_ticks(cluster: &Cluster) {
    let settled = cluster.settled().await;
    cluster.wait_settled(settled + 2, SETTLED).await;
}

/// The runs of the job that was moved: tick and state.
async fn runs(cluster: &Cluster) -> Vec<(DateTime<Utc>, String)> {
    cluster.database().rows("select tick, state from bursar.run where job = 'moved' order by tick").await
}

#[tokio::test]
async fn a_job_that_an_edit_moves_into_the_past_does_not_fire_then_across_restart_and_takeover() {
    let etcd = Etcd::shared();
    let far = "2026-01-01T00:00:00Z".parse().expect("a time");
    let cluster = Setup::new(2, &with_moved_to(far)).steady().start().await;
    let leader = cluster.wait_leader(READY).await;
    cluster.replica(1 - leader).wait_ready(READY).await;
    let sampler = cluster.watch();
    wait_in_force(&cluster, far).await;
    let mut skipped = Vec::new();

    // While a leader works.
    let past = just_past(&cluster).await;
    cluster.write_schedule(&with_moved_to(past));
    wait_in_force(&cluster, past).await;
    wait_two_ticks(&cluster).await;
    skipped.push((past, "skipped".to_owned()));
    assert_eq!(runs(&cluster).await, skipped, "the tick is recorded as skipped");

    // Across a takeover.
    let past = just_past(&cluster).await;
    let term = cluster.term().await;
    kill_leader(&cluster, etcd, leader).await;
    cluster.write_schedule(&with_moved_to(past));
    cluster.wait_work_above(term, TAKEOVER).await;
    wait_in_force(&cluster, past).await;
    wait_two_ticks(&cluster).await;
    skipped.push((past, "skipped".to_owned()));
    assert_eq!(runs(&cluster).await, skipped);

    // While nobody is there.
    cluster.replica(1 - leader).term();
    assert!(cluster.replica(1 - leader).wait_end(TAKEOVER).success());
    let past = just_past(&cluster).await;
    cluster.write_schedule(&with_moved_to(past));
    cluster.replica(leader).start();
    cluster.wait_leader(READY).await;
    wait_in_force(&cluster, past).await;
    wait_two_ticks(&cluster).await;
    skipped.push((past, "skipped".to_owned()));
    assert_eq!(runs(&cluster).await, skipped);

    // A time to come fires once, with one run.
    let coming = just_past(&cluster).await + TimeDelta::seconds(10);
    cluster.write_schedule(&with_moved_to(coming));
    let complete = format!(
        "select count(*) from bursar.run where job = 'moved' and tick = timestamptz '{coming}' and state = 'complete'"
    );
    eventually(SETTLED, "the coming tick has its run", async || {
        (cluster.database().value::<i64>(&complete).await == 1).then_some(())
    })
    .await;
    skipped.push((coming, "complete".to_owned()));
    assert_eq!(runs(&cluster).await, skipped);
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn a_removed_job_keeps_its_row_and_runs_and_comes_back_without_the_ticks_between() {
    let both = schedule(&[Job::probe("gone", 1).cron(EVERY_SECOND), Job::probe("stays", 1).cron(EVERY_SECOND)]);
    let one = schedule(&[Job::probe("stays", 1).cron(EVERY_SECOND)]);
    let cluster = Setup::new(1, &both).steady().start().await;
    cluster.wait_leader(READY).await;
    let gone = "from bursar.run where job = 'gone' and state = 'complete'";
    let count = format!("select count(*) {gone}");
    eventually(SETTLED, "it ran twice", async || (cluster.database().value::<i64>(&count).await >= 2).then_some(()))
        .await;

    // Removed while nobody is there, and back while a leader works.
    let replica = cluster.replica(0);
    replica.term();
    assert!(replica.wait_end(TAKEOVER).success());
    cluster.write_schedule(&one);
    replica.start();
    let removed = "select count(*) from bursar.job where name = 'gone' and removed_at is not null";
    eventually(TAKEOVER, "the removal is in force", async || {
        (cluster.database().value::<i64>(removed).await == 1).then_some(())
    })
    .await;
    let removed_at: DateTime<Utc> =
        cluster.database().value("select removed_at from bursar.job where name = 'gone'").await;
    let stays = "select count(*) from bursar.run where job = 'stays' and state = 'complete'";
    let before: i64 = cluster.database().value(stays).await;
    eventually(SETTLED, "three ticks of the other", async || {
        (cluster.database().value::<i64>(stays).await >= before + 3).then_some(())
    })
    .await;
    let after = format!("select count(*) from bursar.run where job = 'gone' and tick > timestamptz '{removed_at}'");
    assert_eq!(cluster.database().value::<i64>(&after).await, 0, "what is removed does not fire");
    assert!(cluster.database().value::<i64>(&count).await >= 2, "its runs are kept");

    let back_at = cluster.store_clock().await;
    cluster.write_schedule(&both);
    let again = format!("select count(*) {gone} and tick > timestamptz '{back_at}'");
    eventually(SETTLED, "it runs again", async || (cluster.database().value::<i64>(&again).await >= 1).then_some(()))
        .await;
    let between = format!(
        "select count(*) from bursar.run where job = 'gone' and tick > timestamptz '{removed_at}' and tick <= timestamptz '{back_at}'"
    );
    assert_eq!(cluster.database().value::<i64>(&between).await, 0, "ticks of the time between are not run afterwards");
    let rows: i64 = cluster.database().value("select count(*) from bursar.job where name = 'gone'").await;
    assert_eq!(rows, 1, "it is the same job");
    cluster.assert_sound().await;
}
