//! A process that stands still with the write lock: a listed replica is ended by whoever advances, any other is named.
//!
//! The process is this test binary once more, running one test that no ordinary run chooses.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bursar::store::sqlite::SqliteStore;
use bursar::store::{AdvanceOutcome, Store};
use rustix::process::{Pid, Signal, kill_process};

use super::ground::{BOUND, accepted, claim, leader, path, raw, run, settings, store};

const FILE: &str = "BURSAR_TEST_SQLITE_FILE";
const LISTED: &str = "BURSAR_TEST_SQLITE_LISTED";
const HOLDS: &str = "holds the lock";

/// What the other process does: it opens the store, takes the write lock, says so, and keeps it.
#[tokio::test]
#[ignore = "the process that the other tests of this file start"]
async fn a_process_that_holds_the_lock() {
    let Some(file) = std::env::var_os(FILE).map(PathBuf::from) else { return };
    let mut settings = settings(&file);
    settings.replica = "replica-b".to_owned();
    settings.is_replica = std::env::var_os(LISTED).is_some();
    SqliteStore::new(&settings).open().await.expect("the file can be used");
    let mut connection = raw(&file).await;
    run(&mut connection, "begin immediate; update fenced_seq set value = value + 1").await.expect("the lock");
    // Past the harness, which keeps what a test prints.
    writeln!(std::io::stdout(), "{HOLDS}").expect("the other test reads it");
    tokio::time::sleep(Duration::from_mins(2)).await;
}

/// The other process, once it holds the lock; it ends with this value.
struct Holder(Child);

impl Holder {
    fn of(file: &Path, listed: bool) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command
            .args(["sqlite::holder::a_process_that_holds_the_lock", "--exact", "--ignored", "--nocapture"])
            .env(FILE, file)
            .current_dir(std::env::current_dir().expect("a folder"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if listed {
            command.env(LISTED, "1");
        }
        let mut holder = Self(command.spawn().expect("this binary can be started"));
        let output = holder.0.stdout.take().expect("piped");
        let says = BufReader::new(output).lines().map_while(Result::ok).any(|line| line.contains(HOLDS));
        assert!(says, "the process ended without the lock");
        holder
    }

    fn stop(&self) {
        self.signal(Signal::STOP);
    }

    fn signal(&self, signal: Signal) {
        // Not the program `kill`, which a bare Debian lacks.
        kill_process(Pid::from_child(&self.0), signal).expect("it was not waited for");
    }

    fn lives(&mut self) -> bool {
        self.0.try_wait().expect("asked").is_none()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_replica_that_stands_still_with_the_lock_is_ended_by_the_next_leader() {
    let path = path();
    let store = store(&path).await;
    accepted(&store, &claim(1)).await;
    let mut holder = Holder::of(&path, true);
    holder.stop();
    let outcome = store.advance(&claim(2), &leader(), BOUND).await.expect("the lock came free");
    assert_eq!(outcome, AdvanceOutcome::Accepted { halt: None });
    crate::support::eventually(Duration::from_secs(5), "the replica is gone", async || (!holder.lives()).then_some(()))
        .await;
    assert_eq!(super::ground::number(&path, "select count(*) from term_history").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_replica_that_waits_with_the_lock_lives_until_it_is_stopped() {
    let path = path();
    let store = store(&path).await;
    accepted(&store, &claim(1)).await;
    let mut holder = Holder::of(&path, true);
    // Asleep, as in a call of the disk's: it computes nothing and writes nothing.
    let error =
        store.advance(&claim(2), &leader(), Duration::from_secs(3)).await.expect_err("it keeps the lock").to_string();
    assert!(holder.lives(), "it may be waiting for its disk: {error}");
    assert!(error.contains(&format!("process {}", holder.0.id())) && error.contains("disk"), "{error}");
    holder.stop();
    accepted(&store, &claim(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_that_keeps_the_lock_is_named_and_lives() {
    let path = path();
    let store = store(&path).await;
    accepted(&store, &claim(1)).await;
    let mut holder = Holder::of(&path, false);
    holder.stop();
    let bound = Duration::from_secs(6);
    let error = store.advance(&claim(2), &leader(), bound).await.expect_err("it keeps the lock").to_string();
    assert!(error.contains(&format!("process {}", holder.0.id())), "{error}");
    assert!(error.contains("no replica of this store"), "{error}");
    assert!(holder.lives(), "a stranger is never ended");
    holder.signal(Signal::CONT);
}
