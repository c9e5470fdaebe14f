//! The read-only port of real replicas: health, readiness, metrics, status.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::support::cluster::ELECTION;
use super::support::{Cluster, Entries, Etcd, Metrics, Replica, Setup, eventually};

/// How long a start, with an election, may take on a busy machine.
const STARTED: Duration = Duration::from_secs(30);
/// How long any answer of the port may take.
const ANSWERED: Duration = Duration::from_secs(1);
/// Gauges that only a leader has anything in.
const LEADING: [&str; 3] = ["bursar_leader", "bursar_lease_remaining_seconds", "bursar_in_flight_units"];
/// A job that never fires while a test runs.
const NEVER: &str = "[[job]]\nname = \"yearly\"\ncron = \"0 0 29 2 *\"\nhandler = \"ledger\"\n";

async fn scrape(replica: &Replica) -> Metrics {
    replica.metrics().await.expect("the port answers")
}

fn assert_leads_nothing(metrics: &Metrics) {
    for name in LEADING {
        assert_eq!(metrics.all(name).len(), 1, "{name} is there, once");
        assert!(metrics.sum(name).abs() < f64::EPSILON, "{name} is 0");
    }
    for name in [
        "bursar_runs",
        "bursar_units",
        "bursar_payouts",
        "bursar_run_overdue",
        "bursar_oldest_pending_seconds",
        "bursar_oldest_payout_seconds",
        "bursar_receivers_stopped",
    ] {
        assert!(!metrics.all(name).is_empty(), "{name} is there");
        assert!(metrics.sum(name).abs() < f64::EPSILON, "{name} is 0");
    }
}

async fn two(setup: Setup<'_>) -> (Cluster, usize, usize) {
    let cluster = setup.start().await;
    let leader = cluster.wait_leader(STARTED).await;
    let follower = 1 - leader;
    cluster.replica(follower).wait_ready(STARTED).await;
    (cluster, leader, follower)
}

#[tokio::test]
async fn a_follower_is_ready_and_its_gauges_of_leading_are_there_with_0() {
    let (cluster, leader, follower) = two(Setup::new(2, NEVER)).await;
    cluster.replica(leader).wait_ready(STARTED).await;
    assert_leads_nothing(&scrape(cluster.replica(follower)).await);
    let leads = scrape(cluster.replica(leader)).await;
    assert!(leads.value("bursar_lease_remaining_seconds", &[("election", ELECTION)]) > Some(0.0));
    assert_eq!(leads.value("bursar_term", &[("election", ELECTION)]), Some(1.0));
    // Both know of the same schedule, and show its fingerprint.
    let fingerprints: BTreeSet<String> = [&leads, &scrape(cluster.replica(follower)).await]
        .into_iter()
        .flat_map(|metrics| metrics.all("bursar_schedule_info"))
        .map(|sample| sample.labels["fingerprint"].clone())
        .collect();
    assert_eq!(fingerprints.len(), 1);
    assert_eq!(fingerprints.first().map(String::len), Some(64));
}

#[tokio::test]
async fn a_leader_cut_from_the_coordinator_shows_nothing_of_leading_and_is_not_ready() {
    let (cluster, leader, follower) = two(Setup::new(2, NEVER).behind_proxies()).await;
    let old = cluster.replica(leader);
    old.cut_from_etcd();
    eventually(Duration::from_secs(10), "the old leader is none", async || (!old.leads(ELECTION).await).then_some(()))
        .await;
    assert_leads_nothing(&scrape(old).await);
    let (code, why) = old.readyz().await.expect("the port answers");
    assert_eq!(code, 503);
    assert!(why.contains("coordinator"), "{why}");
    assert_eq!(old.livez().await.map(|(code, _)| code), Some(200), "it lives all the same");
    assert_eq!(cluster.wait_other_leader(STARTED, &[leader]).await, follower);
    // It reads of the next one in the store, and goes on to show what it last heard from the coordinator: each with its age.
    let heard = format!("<code>{}</code>, term 1<span class=\"age\">", old.id());
    let read = format!("<code>{}</code>, term 2</td>", cluster.replica(follower).id());
    eventually(STARTED, "its page has both", async || {
        let url = format!("http://127.0.0.1:{}/", old.http_port());
        let page = reqwest::get(url).await.expect("the port answers").text().await.expect("text");
        (page.contains(&heard) && page.contains(&read)).then_some(())
    })
    .await;
    let status = old.status().await.expect("the port answers");
    let age = status["elections"][0]["leader_age_ms"].as_u64().expect("it had heard of one");
    // Nobody follows before the lease of 5 s is over, of which a fifth may have passed before the line was cut.
    assert!(age > 3_000 && status["store"]["status_age_ms"].as_u64() < Some(age), "{status}");
    old.heal();
    old.wait_ready(STARTED).await;
}

#[tokio::test]
async fn a_store_that_hangs_delays_no_answer_and_makes_the_replica_not_ready() {
    let (cluster, leader, _) = two(Setup::new(2, NEVER).behind_proxies()).await;
    let replica = cluster.replica(leader);
    replica.cut_from_database();
    let started = bursar::clock::boottime();
    let timely = async |path: &str| {
        let before = bursar::clock::boottime();
        let url = format!("http://127.0.0.1:{}{path}", replica.http_port());
        let answer = reqwest::get(url).await.expect("the port answers");
        let took = bursar::clock::boottime().since(before);
        assert!(took < ANSWERED, "{path} took {took:?}");
        (answer.status().as_u16(), answer.text().await.expect("text"))
    };
    loop {
        assert_eq!(timely("/livez").await.0, 200);
        timely("/metrics").await;
        let (_, status) = timely("/status.json").await;
        let status: Value = serde_json::from_str(&status).expect("JSON");
        assert!(status["store"]["checked_ms_ago"].is_u64(), "{status}");
        let (code, why) = timely("/readyz").await;
        if code == 503 {
            assert!(why.contains("store"), "{why}");
            break;
        }
        assert!(bursar::clock::boottime().since(started) < STARTED, "it stays ready without a store");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // One that has its store leads instead.
    cluster.wait_other_leader(STARTED, &[leader]).await;
    replica.heal();
    replica.wait_ready(STARTED).await;
}

#[tokio::test]
async fn many_merchants_and_runs_make_few_series_and_stand_in_no_label() {
    let schedule = "[[job]]\nname = \"often\"\ncron = \"0 0 29 2 *\"\nhandler = \"ledger\"\n";
    let cluster = Setup::new(1, schedule).start().await;
    cluster.wait_leader(STARTED).await;
    let file = Entries::new().bulk(1500, 1).write("many.csv");
    let file = file.to_string_lossy();
    cluster.command(&["import", &file, "--source", "adyen"]).ok();
    eventually(STARTED, "the first run is triggered", async || {
        (cluster.command(&["trigger", "often"]).code() == Some(0)).then_some(())
    })
    .await;
    for _ in 1..20 {
        cluster.command(&["trigger", "often"]).ok();
    }
    let replica = cluster.replica(0);
    let metrics = eventually(STARTED, "the entries are settled", async || {
        let metrics = replica.metrics().await?;
        (metrics.value("bursar_units_settled_total", &[])? >= 1500.0).then_some(metrics)
    })
    .await;
    assert!(metrics.series() < 1000, "{} series", metrics.series());
    let allowed =
        ["election", "job", "operation", "reason", "state", "outcome", "le", "fingerprint", "version", "needs_resume"];
    let keys: BTreeSet<&str> = metrics.labels().map(|(key, _)| key).collect();
    assert!(keys.iter().all(|key| allowed.contains(key)), "{keys:?}");
    let log = replica.log();
    assert!(!log.contains("merchant"), "no merchant is logged");
    cluster.assert_audited();
}

#[tokio::test]
async fn a_replica_without_a_coordinator_says_so_waits_and_leaves_within_a_second() {
    let etcd = Etcd::start(1);
    let cluster = Setup::new(1, NEVER).on_etcd(&etcd).prepare().await;
    etcd.kill_all();
    let replica = cluster.replica(0);
    replica.start();
    let why = eventually(STARTED, "the replica says why it is not ready", async || {
        let (code, why) = replica.readyz().await?;
        (code == 503 && why.contains("coordinator") && !why.contains("store")).then_some(why)
    })
    .await;
    assert_eq!(replica.livez().await.map(|(code, _)| code), Some(200), "{why}");
    assert!(scrape(replica).await.value("bursar_coordinator_up", &[]) == Some(0.0));
    replica.term();
    let status = replica.wait_end(Duration::from_secs(1));
    assert!(status.success(), "{status}: {}", replica.log());
}

#[tokio::test]
async fn a_replica_without_a_store_says_so_waits_and_takes_it_up_when_it_comes() {
    let cluster = Setup::new(1, NEVER).behind_proxies().prepare().await;
    let replica = cluster.replica(0);
    replica.database_line().refuse();
    replica.start();
    let not_ready = async || {
        let (code, why) = replica.readyz().await?;
        (code == 503 && why.contains("store")).then_some(())
    };
    eventually(STARTED, "the replica says that it has no store", not_ready).await;
    replica.term();
    let status = replica.wait_end(Duration::from_secs(1));
    assert!(status.success(), "{status}: {}", replica.log());
    replica.start();
    eventually(STARTED, "the replica says that it has no store", not_ready).await;
    replica.heal();
    replica.wait_ready(STARTED).await;
    cluster.wait_leader(STARTED).await;
}

#[tokio::test]
async fn workers_that_are_stuck_are_not_alive_and_the_process_ends_itself() {
    let schedule = "[[job]]\nname = \"stuck\"\ncron = \"0 0 29 2 *\"\nhandler = \"probe\"\n[job.probe]\nunits = 1\nwedge = [\"unit-00000\"]\n";
    let cluster = Setup::new(1, schedule).start().await;
    cluster.wait_leader(STARTED).await;
    let replica = cluster.replica(0);
    eventually(STARTED, "the run is triggered", async || {
        (cluster.command(&["trigger", "stuck"]).code() == Some(0)).then_some(())
    })
    .await;
    let why = eventually(STARTED, "it is not alive", async || {
        let (code, why) = replica.livez().await?;
        (code == 503).then_some(why)
    })
    .await;
    assert!(why.contains("workers"), "{why}");
    assert!(replica.metrics().await.is_some(), "metrics are answered all the same");
    let status = replica.wait_end(STARTED);
    assert_eq!(status.code(), Some(70), "{}", replica.log());
    assert!(replica.log().contains("workers_stuck"), "{}", replica.log());
}

#[tokio::test]
async fn a_second_signal_ends_a_replica_at_once() {
    let cluster = Setup::new(1, NEVER).chaos("tenure.teardown.start=sleep:60000").start().await;
    cluster.wait_leader(STARTED).await;
    let replica = cluster.replica(0);
    replica.term();
    let draining = async || {
        let (code, why) = replica.readyz().await?;
        (code == 503 && why.contains("draining")).then_some(())
    };
    eventually(STARTED, "it is draining", draining).await;
    replica.term();
    assert_eq!(replica.wait_end(Duration::from_secs(1)).code(), Some(143), "{}", replica.log());
}

#[tokio::test]
async fn what_is_not_there_names_what_is_and_the_status_shows_no_definition() {
    let cluster = Setup::new(1, NEVER).start().await;
    cluster.wait_leader(STARTED).await;
    let replica = cluster.replica(0);
    let answer = reqwest::get(format!("http://127.0.0.1:{}/nothing", replica.http_port())).await.expect("it answers");
    assert_eq!(answer.status().as_u16(), 404);
    assert!(answer.text().await.expect("text").contains("/status.json"));
    let status = eventually(STARTED, "the store's status is shown", async || {
        let status = replica.status().await?;
        status["store"]["status"]["jobs"].as_array().is_some_and(|jobs| !jobs.is_empty()).then_some(status)
    })
    .await;
    assert_eq!(status["elections"][0]["leading"], true, "{status}");
    assert_eq!(status["store"]["status"]["jobs"][0]["job"], "yearly");
    assert!(status["store"]["status"]["jobs"][0].get("definition").is_none(), "{status}");
    assert!(status["store"]["status_age_ms"].is_u64());
}

#[tokio::test]
async fn a_broken_schedule_is_refused_while_the_old_one_goes_on_and_a_repaired_one_is_taken() {
    let cluster = Setup::new(1, NEVER).start().await;
    cluster.wait_leader(STARTED).await;
    let replica = cluster.replica(0);
    let reloads = async |outcome: &str| {
        scrape(replica).await.value("bursar_schedule_reloads_total", &[("outcome", outcome)]).unwrap_or(0.0)
    };
    replica.write_schedule("[[job]]\nname = \"yearly\"\n");
    eventually(STARTED, "the broken file is refused", async || (reloads("refused").await > 0.0).then_some(())).await;
    let status = replica.status().await.expect("the port answers");
    assert!(status["schedule"]["refused"].as_str().is_some_and(|why| why.contains("cron")), "{status}");
    assert_eq!(status["schedule"]["jobs"][0]["job"], "yearly");
    assert!(replica.leads(ELECTION).await);
    let both = format!(
        "{NEVER}\n{}",
        NEVER.replace("yearly", "other").replace("\"ledger\"\n", "\"ledger\"\n[job.ledger]\nsources = [\"a\"]\n")
    );
    replica.write_schedule(&both.replacen("\"ledger\"\n", "\"ledger\"\n[job.ledger]\nsources = [\"b\"]\n", 1));
    eventually(STARTED, "the repaired file is taken", async || (reloads("taken").await > 0.0).then_some(())).await;
    eventually(STARTED, "the new job is in the store", async || {
        let status = cluster.command(&["status", "--json"]).ok().json();
        (status["jobs"].as_array()?.len() == 2).then_some(())
    })
    .await;
    assert!(replica.status().await.expect("the port answers")["schedule"]["refused"].is_null());
}
