//! Health and metrics of leaders, followers, and replicas that could not lead.

use super::{READY, SETTLED, TAKEOVER, assert_lives};
use crate::support::cluster::ELECTION;
use crate::support::{Cluster, EVERY_SECOND, Entries, Job, LedgerJob, Metrics, Replica, Setup, eventually, schedule};

/// The gauges of leading, with their labels.
const OF_LEADING: &[(&str, &[(&str, &str)])] = &[
    ("bursar_leader", &[("election", ELECTION)]),
    ("bursar_lease_remaining_seconds", &[("election", ELECTION)]),
    ("bursar_in_flight_units", &[]),
];

fn of_leading(metrics: &Metrics) -> Vec<Option<f64>> {
    OF_LEADING.iter().map(|(name, labels)| metrics.value(name, labels)).collect()
}

async fn scrape(replica: &Replica) -> Metrics {
    eventually(READY, "a scrape", async || replica.metrics().await).await
}

#[tokio::test]
async fn the_gauges_of_leading_are_zero_after_a_demotion_and_on_whoever_never_led() {
    let job = Job::probe("long", 64).batch(8, 2).set("wait_ms", "600000");
    let setup = Setup::new(2, &schedule(&[job])).behind_proxies().steady();
    let cluster = setup.ttl(5).start().await;
    let old = cluster.wait_leader(READY).await;
    let (leader, follower) = (cluster.replica(old), cluster.replica(1 - old));
    follower.wait_ready(READY).await;
    let sampler = cluster.watch();
    assert_eq!(of_leading(&scrape(follower).await), [Some(0.0); 3], "there, and zero");
    cluster.trigger("long");
    eventually(SETTLED, "two batches are under way", async || {
        let values = of_leading(&scrape(leader).await);
        (values[0] == Some(1.0) && values[1] > Some(0.0) && values[2] == Some(16.0)).then_some(())
    })
    .await;

    leader.cut_from_etcd();
    let ended = eventually(TAKEOVER, "it leads no more", async || {
        let metrics = scrape(leader).await;
        (metrics.value("bursar_leader", &[("election", ELECTION)]) == Some(0.0)).then_some(metrics)
    })
    .await;
    assert_eq!(ended.value("bursar_lease_remaining_seconds", &[("election", ELECTION)]), Some(0.0));
    // What was in flight is gone with the tenure, which has its teardown budget.
    eventually(TAKEOVER, "the tenure has ended", async || {
        let metrics = scrape(leader).await;
        (metrics.sum("bursar_teardown_seconds_count") >= 1.0).then_some(())
    })
    .await;
    let after = scrape(leader).await;
    assert_eq!(of_leading(&after), [Some(0.0); 3]);
    for name in ["bursar_runs", "bursar_units", "bursar_oldest_pending_seconds"] {
        assert!(after.sum(name).abs() < f64::EPSILON, "{name} is the next leader's to tell");
    }
    leader.assert_running();
    cluster.wait_other_leader(TAKEOVER, &[old]).await;
    leader.heal();
    leader.wait_ready(READY).await;
    assert_eq!(of_leading(&scrape(leader).await), [Some(0.0); 3]);
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn metrics_stay_few_however_many_merchants_and_runs_there_are() {
    let jobs: Vec<Job> = (0..10).map(|n| Job::probe(&format!("job-{n}"), 2).cron(EVERY_SECOND)).collect();
    let text = schedule(&jobs) + &LedgerJob::new("daily").text();
    let cluster = Setup::new(2, &text).steady().start().await;
    cluster.wait_leader(READY).await;
    for replica in cluster.replicas() {
        replica.wait_ready(READY).await;
    }
    cluster.import(&Entries::new().bulk(5_000, 1), "psp").ok();
    let run = cluster.run_now("daily").await;
    assert_eq!(cluster.run_shown(run)["summary"]["units"]["settled"], 5_000);
    let ended = "select count(*) from bursar.run where state = 'complete'";
    eventually(SETTLED, "fifty runs have ended", async || {
        (cluster.database().value::<i64>(ended).await >= 50).then_some(())
    })
    .await;
    for replica in cluster.replicas() {
        let metrics = scrape(replica).await;
        assert!(metrics.series() < 1_000, "{}: {} series", replica.id(), metrics.series());
        for (key, value) in metrics.labels() {
            let closed = [
                "election",
                "job",
                "operation",
                "reason",
                "state",
                "outcome",
                "le",
                "fingerprint",
                "version",
                "needs_resume",
            ];
            assert!(closed.contains(&key), "{key} is no label of a small closed set");
            let of_one = value.starts_with("m0") || value.contains("EUR:") || value.contains("unit-");
            assert!(!of_one, "{key}={value:?} is a merchant's or a unit's");
        }
    }
    cluster.assert_sound().await;
}

/// Waits until it says that it is not ready, and why.
async fn why_not_ready(replica: &Replica, words: &str) -> String {
    eventually(TAKEOVER, &format!("{} is not ready: {words}", replica.id()), async || {
        let (status, text) = replica.readyz().await?;
        (status == 503 && text.contains(words)).then_some(text)
    })
    .await
}

#[tokio::test]
async fn a_follower_is_ready_and_only_who_could_not_lead_is_not() {
    let job = Job::probe("each-second", 1).cron(EVERY_SECOND);
    let cluster = Setup::new(2, &schedule(&[job])).steady().behind_proxies().start().await;
    let leader = cluster.wait_leader(READY).await;
    let follower = cluster.replica(1 - leader);
    follower.wait_ready(READY).await;
    let sampler = cluster.watch();
    assert!(!follower.leads(ELECTION).await);
    cluster.replica(leader).wait_ready(READY).await;

    follower.cut_from_database();
    let why = why_not_ready(follower, "store").await;
    assert!(!why.contains("coordinator"), "{why}");
    assert_lives(follower).await;
    assert_eq!(scrape(follower).await.value("bursar_store_up", &[]), Some(0.0));
    follower.heal();
    follower.wait_ready(READY).await;

    follower.cut_from_etcd();
    why_not_ready(follower, "coordinator").await;
    assert_lives(follower).await;
    assert_eq!(scrape(follower).await.value("bursar_coordinator_up", &[]), Some(0.0));
    follower.heal();
    follower.wait_ready(READY).await;
    assert_eq!(cluster.wait_leader(READY).await, leader, "the leader was left alone");
    assert_ready_means_eligible(&cluster, 1 - leader).await;
    cluster.assert_sound().await;
    sampler.finish();
}

/// Sees that a replica that says it is ready does lead when the other leaves.
async fn assert_ready_means_eligible(cluster: &Cluster, ready: usize) {
    let other = 1 - ready;
    cluster.replica(other).term();
    assert_eq!(cluster.wait_other_leader(TAKEOVER, &[other]).await, ready);
    assert!(cluster.replica(other).wait_end(TAKEOVER).success());
}
