//! Leaders that are killed shortly before a tick: it has one run, at its own time, and its lateness is on record.

use chrono::{DateTime, DurationRound, TimeDelta, Utc};

use super::{READY, TAKEOVER};
use crate::support::{Cluster, Job, Setup, eventually, repetitions, schedule};

/// So long before the tick the leader is killed.
const BEFORE: TimeDelta = TimeDelta::seconds(3);

/// How a series of kills is laid out.
#[derive(Clone, Copy)]
struct Kills {
    ttl: u64,
    /// Seconds from tick to tick: a takeover and a restart fit in.
    every: i64,
    times: usize,
}

/// Waits until the store's clock has come to that time.
async fn wait_for(cluster: &Cluster, time: DateTime<Utc>) {
    let left = (time - cluster.store_clock().await).to_std().unwrap_or_default();
    let since = bursar::clock::boottime();
    eventually(left + READY, &format!("it is {time}"), async || {
        (bursar::clock::boottime().since(since) >= left).then_some(())
    })
    .await;
}

/// Kills the leader three seconds before a tick, again and again.
async fn kill_before_ticks(kills: Kills) {
    let cron = format!("*/{} * * * * *", kills.every);
    let setup = Setup::new(3, &schedule(&[Job::probe("timely", 1).cron(&cron)])).ttl(kills.ttl);
    let cluster = setup.start().await;
    let mut leader = cluster.wait_leader(READY).await;
    for replica in cluster.replicas() {
        replica.wait_ready(READY).await;
    }
    let sampler = cluster.watch();
    let first = cluster.store_clock().await;
    let mut killed_before = Vec::new();
    while killed_before.len() < kills.times {
        let every = TimeDelta::seconds(kills.every);
        let now = cluster.store_clock().await;
        let mut tick = now.duration_trunc(every).expect("seconds of a minute") + every;
        if tick - now < BEFORE {
            tick += every;
        }
        wait_for(&cluster, tick - BEFORE).await;
        let killed_at = cluster.store_clock().await;
        if killed_at >= tick {
            // The machine was too busy: the next one.
            continue;
        }
        let term = cluster.term().await;
        cluster.replica(leader).kill();
        let dead = leader;
        leader = cluster.wait_other_leader(TAKEOVER, &[dead]).await;
        assert!(cluster.term().await > term);
        let settled =
            format!("select count(*) from bursar.run r where r.tick = timestamptz '{tick}' and r.state = 'complete'");
        eventually(TAKEOVER, "the tick's run has ended", async || {
            (cluster.database().value::<i64>(&settled).await == 1).then_some(())
        })
        .await;
        assert_recorded(&cluster, leader, tick, killed_at, kills.ttl).await;
        cluster.replica(dead).start();
        cluster.replica(dead).wait_ready(READY).await;
        killed_before.push(tick);
    }
    // No tick in all the time has more than one run, or none.
    let query =
        format!("select tick, count(*) from bursar.run where tick > timestamptz '{first}' group by tick order by tick");
    let runs: Vec<(DateTime<Utc>, i64)> = cluster.database().rows(&query).await;
    for pair in runs.windows(2) {
        assert_eq!(pair[1].0 - pair[0].0, TimeDelta::seconds(kills.every), "a tick is missing: {runs:?}");
    }
    assert!(runs.iter().all(|(_, count)| *count == 1), "{runs:?}");
    assert!(killed_before.iter().all(|tick| runs.iter().any(|(found, _)| found == tick)), "{runs:?}");
    cluster.assert_sound().await;
    sampler.finish();
}

/// Sees that the tick's run is of its time and says how late it was, as does the leader's metric.
async fn assert_recorded(cluster: &Cluster, leader: usize, tick: DateTime<Utc>, killed_at: DateTime<Utc>, ttl: u64) {
    let runs = cluster.command(&["runs", "list", "--job", "timely", "--limit", "10", "--json"]).ok().json();
    let run = runs
        .as_array()
        .expect("a list")
        .iter()
        .find(|run| run["tick"].as_str().and_then(|text| text.parse::<DateTime<Utc>>().ok()) == Some(tick));
    let run = run.unwrap_or_else(|| panic!("a run of {tick}: {runs}"));
    let at = |field: &str| run[field].as_str().and_then(|text| text.parse::<DateTime<Utc>>().ok()).expect("a time");
    assert_eq!(at("due_at"), tick, "its time is the tick's: {run}");
    let late = at("opened_at") - tick;
    let recorded = run["lateness_ms"].as_i64().expect("milliseconds");
    // Both are rounded.
    assert!((recorded - late.num_milliseconds()).abs() <= 1, "{run}");
    // Whoever was killed had renewed at most a fifth of the lease before.
    let least = TimeDelta::seconds(i64::try_from(ttl).expect("small")) * 4 / 5 - TimeDelta::seconds(1);
    assert!(at("opened_at") - killed_at >= least, "it was opened by the next leader: {run}, killed at {killed_at}");
    let lag = async || cluster.replica(leader).metric("bursar_tick_lag_seconds_sum", &[]).await;
    let lag = eventually(READY, "the leader's lag", lag).await;
    assert!(lag * 1000.0 + 1.0 >= late.as_seconds_f64() * 1000.0, "{lag} s are counted, {late} is recorded");
}

#[tokio::test]
async fn a_tick_whose_leader_was_killed_before_it_has_one_run_at_its_own_time() {
    let each = repetitions("leaders killed 3 s before a tick, TTL 10 s", 2, 5);
    let kills = if crate::support::long::long() {
        Kills { ttl: 10, every: 30, times: each }
    } else {
        Kills { ttl: 5, every: 15, times: each }
    };
    // Four clusters beside each other: as many kills in a quarter of the time.
    let clusters = if crate::support::long::long() { 4 } else { 1 };
    futures_util::future::join_all((0..clusters).map(|_| kill_before_ticks(kills))).await;
}
