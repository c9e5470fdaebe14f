//! What only replicas on files of SQLite can meet: one that is stopped inside of a write transaction of the lease file keeps the
//! others out, and no configuration at all.

use std::path::Path;

use super::*;
use crate::support::replica::BINARY;
use crate::support::{Launch, scratch};

/// A replica is stopped with the lease file's write lock, and holds every renewal up: it is ended by one of the others.
#[tokio::test]
async fn a_replica_stopped_with_the_lease_files_lock_is_ended_by_another_which_then_leads() {
    let cluster = Setup::new(3, &schedule(&[each_second()])).embedded().prepare().await;
    // Grant, registration and the campaign are behind it by then: it leads, and stops in a renewal.
    cluster.replica(0).set_chaos("lease.write.begun=stop@12");
    cluster.replica(0).start();
    cluster.wait_leader(READY).await;
    cluster.replica(1).start();
    cluster.replica(2).start();
    cluster.replica(0).wait_hit("lease.write.begun", TAKEOVER).await;
    let term = cluster.term().await;
    let stopped = boottime();
    let next = cluster.wait_work_above(term, TAKEOVER * 2).await;
    assert!(next > term);
    let took = boottime().since(stopped);
    assert!(took < TTL * 3, "it took {took:?}: a TTL of patience, and an election");
    assert!(!cluster.replica(0).wait_end(TAKEOVER).success(), "it was killed");
    let logs = [cluster.replica(1).log(), cluster.replica(2).log()].concat();
    assert!(logs.contains("ended a replica that held the lease file's lock"), "{logs}");
    let settled = cluster.settled().await;
    cluster.wait_settled(settled + 2, SETTLED).await;
    cluster.assert_sound().await;
}

/// A replica is stopped with the store's write lock and is the only one. Whoever is started then cannot even be listed in the
/// file, and a command waits: the newcomer leads once the lease has lapsed, ends the one that stands still, and both go on.
#[tokio::test]
async fn a_replica_started_beside_one_stopped_with_the_stores_lock_ends_it_and_leads() {
    let cluster = Setup::new(2, &schedule(&[each_second()])).embedded().prepare().await;
    cluster.replica(0).set_chaos("store.settle.before_commit=stop@2");
    cluster.replica(0).start();
    cluster.replica(0).wait_hit("store.settle.before_commit", SETTLED).await;
    let term = cluster.term().await;
    let started = boottime();
    cluster.replica(1).start();
    let halted = cluster.command(&["halt", "--reason", "waits for the lock"]);
    assert_eq!(halted.code(), Some(0), "{}", halted.stderr);
    let took = boottime().since(started);
    assert!(took < TTL * 4, "it took {took:?}: a TTL, an election, and the patience with who holds the lock");
    cluster.command(&["resume", "--reason", "it does"]).ok();
    assert!(cluster.wait_work_above(term, TAKEOVER).await > term);
    assert!(!cluster.replica(0).wait_end(TAKEOVER).success(), "it was killed");
    let log = cluster.replica(1).log();
    assert!(log.contains("ended a replica that stood still with the file's write lock"), "{log}");
    cluster.assert_sound().await;
}

/// In an empty folder, with nothing but the program.
#[tokio::test]
async fn without_any_configuration_a_replica_makes_its_files_and_takes_a_schedule_up_when_one_is_put_there() {
    let folder = scratch::folder("nothing");
    let launch = || Launch::new("bursar-alone", BINARY).folder(&folder).env("BURSAR__HTTP__LISTEN", "127.0.0.1:0");
    let replica = launch().arg("run").start();
    let log = || replica.log();
    eventually(READY, "it leads", async || log().contains("no schedule: jobs that the store has go on").then_some(()))
        .await;
    let command = |args: &[&str]| launch().args(args).finish();
    let status = eventually(READY, "the store is there and somebody leads", async || {
        let status = command(&["status", "--json"]);
        let shown: serde_json::Value = serde_json::from_str(&status.stdout).ok()?;
        let registered = shown["coordinator"]["replicas"][0]["address"].is_string();
        (status.code() == Some(0) && registered && shown["elections"][0]["leader"].is_string()).then_some(shown)
    })
    .await;
    assert_eq!(status["elections"][0]["election"], ELECTION, "{status}");
    for file in ["bursar.db", "bursar.db.lease"] {
        assert!(Path::new(&folder).join(file).exists(), "{file}");
    }
    assert!(log().contains("the store is reached store=\"bursar.db\""), "{}", log());
    let address = status["coordinator"]["replicas"][0]["address"].as_str().expect("it is registered").to_owned();
    let shown =
        reqwest::get(format!("http://{address}/status.json")).await.expect("it answers").text().await.expect("text");
    assert!(
        shown.contains(&format!("\"address\":\"{address}\",\"draining\"")),
        "the port that the system chose: {shown}"
    );
    let second = launch().arg("run").start();
    eventually(READY, "a second one says whom it follows", async || {
        second.log().contains("follows election=").then_some(())
    })
    .await;
    std::fs::write(folder.join("schedule.toml"), schedule(&[each_second()])).expect("the folder is ours");
    eventually(READY, "its job is in the store and runs", async || {
        let runs = command(&["runs", "list", "--json"]);
        (runs.code() == Some(0) && runs.stdout.contains("each-second")).then_some(())
    })
    .await;
    // A file that is missing at a start takes no job back, and one that is there and cannot be read is named.
    drop((replica, second));
    std::fs::rename(folder.join("schedule.toml"), folder.join("away.toml")).expect("the folder is ours");
    let newest = || {
        let runs = command(&["runs", "list", "--json"]).ok().json();
        runs[0]["id"].as_i64().unwrap_or_else(|| panic!("there are runs: {runs}"))
    };
    let before = newest();
    let replica = launch().arg("run").start();
    eventually(SETTLED, "the job goes on", async || (newest() > before + 2).then_some(())).await;
    assert!(replica.log().contains("no schedule: jobs that the store has go on"), "{}", replica.log());
    drop(replica);
    std::os::unix::fs::symlink("nowhere.toml", folder.join("schedule.toml")).expect("the folder is ours");
    let refused = launch().arg("run").finish();
    assert_eq!(refused.code(), Some(78), "{}", refused.stderr);
    assert!(refused.stderr.contains("schedule.toml"), "{}", refused.stderr);
}
