//! `command`: a process per unit, whose tree dies with the lease.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{IN_VAIN, job, led, on_servers};
use crate::support::orphans::alive;
use crate::support::{Cluster, Pair, Setup, eventually, scratch};

/// Writes down key, term and process, and does what it is told.
fn program(log: &Path, then: &str) -> PathBuf {
    let path = scratch::folder("program").join("settle");
    let text = format!(
        "#!/bin/sh\nread -r body\necho \"$BURSAR_IDEMPOTENCY_KEY $BURSAR_TERM $$ $body\" >> {log}\n\
         tries=$(grep -c \"^$BURSAR_IDEMPOTENCY_KEY \" {log})\n{then}\n",
        log = log.display()
    );
    fs::write(&path, text).expect("the folder is ours");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the file is ours");
    path
}

fn command(units: &str, program: &Path, rest: &str) -> String {
    format!("[job.command]\nunits = '''{units}'''\nprogram = \"{}\"\n{rest}", program.display())
}

/// What was started: key, term, process.
fn started(log: &Path) -> Vec<(String, i64, i32)> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let line = |line: &str| {
        let mut words = line.split(' ');
        let key = words.next().expect("a key").to_owned();
        let mut number = || words.next().and_then(|word| word.parse::<i64>().ok()).expect("a number");
        (key, number(), i32::try_from(number()).expect("a process"))
    };
    text.lines().map(line).collect()
}

async fn first_started(log: &Path) -> i32 {
    eventually(IN_VAIN, "the program runs", async || started(log).first().map(|first| first.2)).await
}

const ONE: &str = "select 'one' as key, jsonb_build_object('n', 1) as payload";

#[tokio::test]
async fn each_unit_is_a_process_and_what_it_exits_with_says_what_becomes_of_it() {
    let log = scratch::folder("started").join("log");
    let then =
        "case \"$body\" in *bad*) echo no such account >&2; exit 3;; *again*) [ $tries -gt 1 ] || exit 75;; esac";
    let units = "select k as key, jsonb_build_object('n', k) as payload from unnest('{a,again,bad,z}'::text[]) k";
    let (cluster, _) =
        led(on_servers(1, &job("settle", "command", 2, &command(units, &program(&log, then), "")))).await;
    let run = cluster.run_now("settle").await;
    let states: Vec<String> = cluster.units_shown(run).into_values().map(|(_, state)| state).collect();
    assert_eq!(states, ["settled", "settled", "set_aside", "settled"]);
    let bad = cluster.unit_shown(run, "bad").to_string();
    assert!(bad.contains("no such account"), "{bad}");
    assert_eq!(started(&log).len(), 5, "one was told to try again, and was");
    cluster.assert_sound().await;
}

/// The leader ends in some way while a program runs that never ends by itself and may not be run twice.
async fn held(pair: Pair, end: impl Fn(&Cluster, usize)) {
    let log = scratch::folder("started").join("log");
    let one = if pair == Pair::Embedded { "select 'one' as key, null as payload" } else { ONE };
    let tables = command(one, &program(&log, "sleep 600 & sleep 600"), "");
    let (cluster, leader) = led(Setup::new(2, &job("settle", "command", 2, &tables)).on(pair)).await;
    let run = cluster.open_now("settle");
    let process = first_started(&log).await;
    end(&cluster, leader);
    cluster.wait_other_leader(IN_VAIN, &[leader]).await;
    assert!(!alive(process), "it outlived the lease of its leader");
    cluster.wait_run_ended(run).await;
    let unit = cluster.unit_shown(run, "one");
    assert_eq!(unit["state"], "set_aside", "{unit}");
    assert!(unit.to_string().contains("held"), "{unit}");
    assert_eq!(started(&log).len(), 1, "it is not run again by itself");
    cluster.replica(leader).cont();
    cluster.assert_sound().await;
}

#[tokio::test]
async fn a_program_is_gone_and_its_unit_held_when_the_leader_is_killed() {
    held(Pair::EtcdPostgres, |cluster, leader| cluster.replica(leader).kill()).await;
}

#[tokio::test]
async fn on_sqlite_a_program_is_gone_and_its_unit_held_when_the_leader_is_killed_or_stopped() {
    tokio::join!(
        held(Pair::Embedded, |cluster, leader| cluster.replica(leader).kill()),
        held(Pair::Embedded, |cluster, leader| cluster.replica(leader).stop()),
    );
}

#[tokio::test]
async fn a_program_is_gone_and_its_unit_held_when_the_leader_is_stopped() {
    held(Pair::EtcdPostgres, |cluster, leader| cluster.replica(leader).stop()).await;
}

#[tokio::test]
async fn a_program_that_may_run_twice_is_gone_before_it_is_run_again() {
    let log = scratch::folder("started").join("log");
    // The second one looks whether the first is there, which is its first line's process.
    let then = format!(
        "if [ $tries -gt 1 ]; then kill -0 $(head -1 {} | cut -d' ' -f3) && exit 9; exit 0; fi\nsleep 600",
        log.display()
    );
    let tables = command(ONE, &program(&log, &then), "idempotent = true");
    let (cluster, leader) = led(on_servers(2, &job("settle", "command", 2, &tables))).await;
    let run = cluster.open_now("settle");
    first_started(&log).await;
    cluster.replica(leader).stop();
    cluster.wait_other_leader(IN_VAIN, &[leader]).await;
    cluster.wait_run_ended(run).await;
    let unit = cluster.unit_shown(run, "one");
    assert_eq!(unit["state"], "settled", "{unit}");
    let started = started(&log);
    assert!(started.len() == 2 && started[0].0 == started[1].0 && started[0].1 < started[1].1, "{started:?}");
    cluster.replica(leader).cont();
    eventually(Duration::from_secs(30), "the stopped one is back", async || cluster.replica(leader).readyz().await)
        .await;
    cluster.assert_sound().await;
}
