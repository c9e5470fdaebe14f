//! Starts that go wrong: what is away is waited for and said, what is wrong is refused with its name.

use std::time::Duration;

use bursar::clock::boottime;

use super::{READY, SETTLED, TAKEOVER, assert_lives};
use crate::support::cluster::migrated_database;
use crate::support::{Cluster, EVERY_SECOND, Job, Postgres, Replica, Setup, eventually, schedule};

/// What SIGTERM may take where nothing has begun, on a busy machine; a second is promised.
const AT_ONCE: Duration = Duration::from_secs(2);
/// The exit code of wrong configuration or set-up.
const WRONG_SET_UP: Option<i32> = Some(78);

fn each_second() -> String {
    schedule(&[Job::probe("each-second", 1).cron(EVERY_SECOND)])
}

/// Waits until it says on its port why it is not ready.
async fn wait_not_ready(replica: &Replica, words: &str) {
    eventually(READY, &format!("it is not ready: {words}"), async || {
        replica.assert_running();
        let (status, text) = replica.readyz().await?;
        (status == 503 && text.contains(words)).then_some(())
    })
    .await;
}

/// SIGTERM, and sees it gone at once and in good order.
fn assert_ends_at_once(replica: &Replica) {
    let told = boottime();
    replica.term();
    let status = replica.wait_end(READY);
    let took = boottime().since(told);
    assert!(status.success(), "{status}: {}", replica.log());
    assert!(took <= AT_ONCE, "it took {took:?} to obey:\n{}", replica.log());
}

/// A line of the log that warns and has these words.
fn warns(replica: &Replica, words: &str) -> bool {
    replica.log().lines().any(|line| (line.contains("WARN") || line.contains("ERROR")) && line.contains(words))
}

#[tokio::test]
async fn a_replica_without_its_database_says_so_waits_and_obeys_sigterm() {
    // Packets dropped, and connections refused.
    for refused in [false, true] {
        let cluster = Setup::new(1, &each_second()).behind_proxies().prepare().await;
        let replica = cluster.replica(0);
        let away = || if refused { replica.database_line().refuse() } else { replica.database_line().cut() };
        away();
        replica.start();
        wait_not_ready(replica, "store").await;
        eventually(READY, "it says why", async || warns(replica, "the store cannot be used yet").then_some(())).await;
        assert_lives(replica).await;
        assert_ends_at_once(replica);
        // Again, and this time the database comes.
        replica.start();
        wait_not_ready(replica, "store").await;
        replica.heal();
        replica.wait_ready(READY).await;
        cluster.wait_leader(READY).await;
        cluster.wait_settled(1, SETTLED).await;
        cluster.assert_sound().await;
    }
}

#[tokio::test]
async fn a_replica_without_its_coordinator_says_so_waits_and_obeys_sigterm() {
    for refused in [false, true] {
        let cluster = Setup::new(1, &each_second()).behind_proxies().prepare().await;
        let replica = cluster.replica(0);
        for line in replica.etcd_lines() {
            if refused { line.refuse() } else { line.cut() }
        }
        replica.start();
        wait_not_ready(replica, "coordinator").await;
        eventually(READY, "it says why", async || warns(replica, "coordinator").then_some(())).await;
        assert_lives(replica).await;
        // Not a line for each try.
        let lines = replica.log().lines().filter(|line| line.contains("WARN")).count();
        assert!(lines < 50, "{lines} warnings:\n{}", replica.log());
        assert_ends_at_once(replica);
        replica.start();
        wait_not_ready(replica, "coordinator").await;
        replica.heal();
        replica.wait_ready(READY).await;
        cluster.wait_leader(READY).await;
        cluster.wait_settled(1, SETTLED).await;
        cluster.assert_sound().await;
    }
}

#[tokio::test]
async fn a_pooler_in_transaction_mode_is_refused_with_the_reason() {
    let server = Postgres::shared();
    let pooler = server.pooler();
    let cluster = Setup::new(1, &each_second()).through_port(pooler.port()).prepare().await;
    let replica = cluster.replica(0);
    replica.start();
    let status = replica.wait_end(READY);
    assert_eq!(status.code(), WRONG_SET_UP, "{}", replica.log());
    let log = replica.log();
    assert!(log.contains("a pooler in transaction mode") && log.contains("session mode"), "{log}");
    let terms: i64 = cluster.database().value("select count(*) from bursar.term_history").await;
    assert_eq!(terms, 0, "it never led");
}

#[tokio::test]
async fn another_isolation_as_the_roles_default_changes_nothing() {
    for isolation in ["repeatable read", "serializable"] {
        let database = migrated_database(Postgres::shared()).await;
        let statement = format!("alter database {} set default_transaction_isolation = '{isolation}'", database.name());
        database.execute(&statement).await;
        let calls = crate::support::Calls::none_yet();
        let jobs = [Job::probe("in-store", 300).batch(10, 2), Job::calling("outside", 20, &calls).batch(5, 1)];
        let cluster = Setup::new(2, &schedule(&jobs)).steady().on_database(database).start().await;
        let leader = cluster.wait_leader(READY).await;
        cluster.replica(1 - leader).wait_ready(READY).await;
        let inside = cluster.run_now("in-store").await;
        // Another leader, so that the fence is advanced past a term that worked.
        let term = cluster.term().await;
        cluster.replica(leader).term();
        cluster.wait_work_above(term, TAKEOVER).await;
        let outside = cluster.run_now("outside").await;
        for run in [inside, outside] {
            assert_eq!(cluster.run_shown(run)["summary"]["state"], "complete", "{isolation}");
        }
        cluster.command(&["halt", "--reason", "a look"]).ok();
        cluster.command(&["resume", "--reason", "looked"]).ok();
        cluster.assert_sound().await;
    }
}

#[tokio::test]
async fn a_database_of_another_schema_is_not_led_on_until_it_is_migrated() {
    // Of an earlier release, or none at all.
    let empty = Postgres::shared().fresh_database().await;
    let cluster = Setup::new(1, &each_second()).steady().on_database(empty).prepare().await;
    let replica = cluster.replica(0);
    let status = cluster.command(&["status"]);
    assert_eq!(status.code(), WRONG_SET_UP, "{}{}", status.stdout, status.stderr);
    assert!(status.stderr.contains("migrate"), "it says what to do: {}", status.stderr);
    replica.start();
    wait_not_ready(replica, "schema").await;
    cluster.command(&["migrate"]).ok();
    replica.wait_ready(READY).await;
    cluster.wait_leader(READY).await;
    cluster.wait_settled(1, SETTLED).await;

    // Of a later release, under a replica that leads: it leads no more.
    let later = "insert into bursar.schema_migration (version, name, checksum) select max(version) + 1, 'later', '' from bursar.schema_migration";
    cluster.database().execute(later).await;
    wait_not_ready(replica, "schema").await;
    eventually(TAKEOVER, "it leads no more", async || cluster.leader().await.is_none().then_some(())).await;
    for command in [&["status"][..], &["audit"], &["migrate"]] {
        let done = cluster.command(command);
        assert_eq!(done.code(), WRONG_SET_UP, "{command:?}: {}{}", done.stdout, done.stderr);
    }
    cluster.database().execute("delete from bursar.schema_migration where name = 'later'").await;
    replica.wait_ready(READY).await;
    cluster.wait_leader(TAKEOVER).await;
    cluster.assert_sound().await;
}

/// Sees that each of these stands in what was said, and the exit code is that of a wrong configuration.
fn assert_refused(cluster: &Cluster, command: &[&str], words: &[&str]) {
    let done = cluster.command(command);
    let said = format!("{}{}", done.stdout, done.stderr);
    assert_eq!(done.code(), WRONG_SET_UP, "{said}");
    for words in words {
        assert!(said.contains(words), "{words} is said:\n{said}");
    }
}

#[tokio::test]
async fn every_unknown_key_is_named_at_the_start_with_the_nearest_known_one() {
    let text = each_second().replacen("cron =", "misfires = \"skip\"\ncron =", 1)
        + "\n[[job]]\nname = \"other\"\ncorn = \"0 0 1 1 *\"\ncron = \"0 0 1 1 *\"\nhandler = \"probe\"\n[job.probe]\nunit = 3\n";
    let cluster = Setup::new(1, &text).prepare().await;
    let replica = cluster.replica(0);
    replica.set("", "shedule", "\"x\"");
    replica.set("coordinator", "lease_tll", "\"5s\"");
    replica.set("databse", "url", "\"postgres://localhost/x\"");
    replica.set_env("BURSAR__HTTP__LISTN", "127.0.0.1:1");
    let named = [
        ("bursar.toml:", "shedule", "schedule"),
        ("bursar.toml:", "coordinator.lease_tll", "lease_ttl"),
        ("bursar.toml:", "databse", "database"),
        ("", "BURSAR__HTTP__LISTN", "listen"),
        ("schedule.toml:", "misfires", "misfire"),
        ("schedule.toml:", "corn", "cron"),
        ("schedule.toml:", "unit", "units"),
    ];
    for command in [&["run"][..], &["check"]] {
        let done = cluster.command(command);
        assert_eq!(done.code(), WRONG_SET_UP, "{}{}", done.stdout, done.stderr);
        for (place, key, near) in named {
            let line = done.stderr.lines().find(|line| {
                line.contains(place) && line.contains(key) && line.contains("unknown") && line.contains(near)
            });
            assert!(line.is_some(), "{key} is named, with {near}:\n{}", done.stderr);
        }
    }
    assert_refused(&cluster, &["run"], &["coordinator.lease_tll", "corn"]);
    assert_eq!(cluster.database().sessions().await, 0, "nothing was begun");
}
