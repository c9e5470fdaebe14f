//! The store's own clock is stepped under a leader: forward is one turn of the misfire policy; back is nothing twice, and an alert
//! until the clock has passed where it was. Elections are in etcd, which keeps to its own.

use super::*;
use crate::support::{Etcd, FakeClock, Postgres, holds_for};

/// Fires each minute.
const EACH_MINUTE: &str = "* * * * *";

/// What became of the ticks of a job after a moment, in the order of ticks: the tick, and its run's state.
async fn since(cluster: &Cluster, job: &str, then: DateTime<Utc>) -> Vec<(DateTime<Utc>, String)> {
    let query =
        format!("select tick, state from bursar.run where job = '{job}' and tick > timestamptz '{then}' order by tick");
    let found: Vec<(DateTime<Utc>, String)> = cluster.database().rows(&query).await;
    for pair in found.windows(2) {
        assert!(pair[0].0 < pair[1].0, "two runs of a tick of {job}: {found:?}");
    }
    found
}

/// Up to when every job of each minute is evaluated at least, and the farthest.
async fn evaluated(cluster: &Cluster) -> (DateTime<Utc>, DateTime<Utc>) {
    cluster
        .database()
        .rows("select min(evaluated_until), max(evaluated_until) from bursar.job where name <> 'all'")
        .await[0]
}

/// Waits until what fell due by a step is on record for every job; gives the marks from before it.
async fn step(cluster: &Cluster, clock: &FakeClock, offset: &str) -> DateTime<Utc> {
    let (_, before) = evaluated(cluster).await;
    clock.set(offset);
    let now = cluster.store_clock().await;
    eventually(SOON, &format!("{offset}: every job is evaluated up to {now}"), async || {
        // A mark moves when a tick falls due, at most a minute before the clock; and all is worked off.
        let (least, _) = evaluated(cluster).await;
        (least >= now - TimeDelta::seconds(61)).then_some(())
    })
    .await;
    cluster.wait_no_open_run(SOON).await;
    before
}

/// Sees that each tick after a moment has one outcome, and that they are of one turn of each job's policy.
async fn assert_one_turn(cluster: &Cluster, before: DateTime<Utc>, least: usize, within_window: usize) {
    for job in ["latest", "skipping", "windowed"] {
        let found = since(cluster, job, before).await;
        assert!(found.len() >= least, "{job}: {} of {least} ticks are on record", found.len());
        for pair in found.windows(2) {
            assert_eq!(pair[1].0 - pair[0].0, TimeDelta::minutes(1), "{job}: a tick is missing after {}", pair[0].0);
        }
        let of = |wanted: &str| found.iter().filter(|(_, state)| state == wanted).count();
        // A minute that begins while this is looked at is on time, or in the same turn.
        let run = found.iter().position(|(_, state)| state == "complete").unwrap_or(found.len());
        let after = found.len() - run;
        assert!(found[run..].iter().all(|(_, state)| state == "complete"), "{job}: {found:?}");
        let expected = match job {
            "latest" => (1..=2, 0, found.len() - after, 0),
            "skipping" => (0..=1, found.len() - after, 0, 0),
            _ => {
                let coalesced = of("coalesced");
                assert!((within_window - 2..=within_window).contains(&coalesced), "{job}: {coalesced} in the window");
                (1..=2, 0, coalesced, found.len() - after - coalesced)
            }
        };
        assert!(expected.0.contains(&after), "{job}: {after} runs: {found:?}");
        assert_eq!((of("skipped"), of("coalesced"), of("missed")), (expected.1, expected.2, expected.3), "{job}");
    }
    let all = since(cluster, "all", before).await;
    assert!(all.len() >= least / 60 && all.iter().all(|(_, state)| state == "complete"), "{all:?}");
    assert!(all.windows(2).all(|pair| pair[1].0 - pair[0].0 == TimeDelta::hours(1)), "{all:?}");
    let order = "select count(*) from bursar.run one join bursar.run other
                     on one.job = 'all' and other.job = 'all' and one.tick < other.tick
                  where one.finished_at > other.finished_at";
    assert_eq!(cluster.number(order).await, 0, "run_all is in the order of ticks");
}

#[tokio::test]
async fn a_store_whose_clock_steps_an_hour_and_a_day_takes_one_turn_forward_and_runs_nothing_twice_back() {
    let clock = FakeClock::new();
    let server = Postgres::start_with(&[], &clock.env());
    let late = "misfire_grace = \"10s\"";
    let schedule = [
        job("latest", EACH_MINUTE, late, ""),
        job("skipping", EACH_MINUTE, &format!("{late}\nmisfire = \"skip\""), ""),
        job("windowed", EACH_MINUTE, &format!("{late}\ncatch_up_window = \"30m\""), ""),
        job("all", "0 * * * *", &format!("{late}\nmisfire = \"run_all\""), ""),
    ]
    .concat();
    let cluster = Setup::new(1, &schedule).steady().on_postgres(&server).on_etcd(Etcd::shared()).start().await;
    cluster.wait_leader(READY).await;
    let (replica, term) = (cluster.replica(0), cluster.term().await);
    eventually(READY, "the jobs are in the store", async || {
        (cluster.number("select count(*) from bursar.job").await == 4).then_some(())
    })
    .await;

    let before = step(&cluster, &clock, "+3600s").await;
    assert_one_turn(&cluster, before, 60, 30).await;

    // Back where it was: nothing is run again, nothing new is opened, and that is told as long as it lasts.
    let runs = "select count(*) from bursar.run";
    let (marks, opened) = (evaluated(&cluster).await, cluster.number(runs).await);
    clock.set("+0s");
    let held_back = async || replica.metric("bursar_ticks_held_back_seconds", &[("election", "settlement")]).await;
    eventually(SOON, "the metric says for how long ticks stand still", async || {
        held_back().await.filter(|seconds| (3000.0..3601.0).contains(seconds))
    })
    .await;
    eventually(SOON, "the log says so", async || {
        replica.log().contains("the store's clock was stepped back").then_some(())
    })
    .await;
    assert!(cluster.store_clock().await < marks.0, "the clock is behind the marks");
    let nothing_twice = async |before: (_, i64)| {
        holds_for(Duration::from_secs(3), "nothing twice, sweep by sweep", async || {
            let found = (evaluated(&cluster).await, cluster.number(runs).await);
            if found == before { Ok(()) } else { Err(format!("{found:?} after {before:?}")) }
        })
        .await;
    };
    nothing_twice((marks, opened)).await;

    // A day forward, past where it was: every minute between has its one outcome, and the alert is over.
    let before = step(&cluster, &clock, "+86400s").await;
    assert_eq!(before, marks.1);
    assert_one_turn(&cluster, before, 1380, 30).await;
    eventually(SOON, "the metric is 0 again", async || held_back().await.filter(|seconds| *seconds <= 0.0)).await;

    // And a day back.
    let (marks, opened) = (evaluated(&cluster).await, cluster.number(runs).await);
    clock.set("+0s");
    eventually(SOON, "the metric says a day", async || held_back().await.filter(|seconds| *seconds > 80_000.0)).await;
    nothing_twice((marks, opened)).await;
    assert_eq!((cluster.leader().await, cluster.term().await), (Some(0), term), "the same leader all the time");
    assert_eq!(replica.metric("bursar_duplicate_runs_prevented_total", &[]).await, Some(0.0));
    // The steps are in the store's times, so its history may read as out of order: only the audit judges.
    cluster.assert_audited();
}
