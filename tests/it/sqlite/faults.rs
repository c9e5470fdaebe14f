//! What is wrong with a file is said in words that help, nothing is lost, and nothing is changed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bursar::store::sqlite::SqliteStore;
use bursar::store::{Entered, PlanSource, SettleOutcome, Store, StoreError, TenureLimits, UnitPick};

use super::ground::{
    accepted, claim, limits, mark, mine, number, opened, path, planned, raw, run, settings, store, tenure,
};
use crate::support::{always, scratch};

/// What opening a file is refused with; the file is as it was.
async fn refused(path: &Path) -> StoreError {
    let before = std::fs::read(path).ok();
    let error = SqliteStore::new(&settings(path)).open().await.expect_err("refused");
    assert_eq!(std::fs::read(path).ok(), before, "the file was changed");
    assert!(
        error.to_string().contains(&path.display().to_string()) || matches!(error, StoreError::Schema { .. }),
        "{error}"
    );
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_closes_a_file_last_leaves_no_log_beside_it() {
    let path = path();
    let log = PathBuf::from(format!("{}-wal", path.display()));
    // Two connections that close at one moment meet in some rounds only.
    for round in 0..40 {
        let store = store(&path).await;
        let (health, now, migrated, again) =
            tokio::join!(store.health(), store.now(), store.migrate(), store.migrate());
        assert!(health.is_ok() && now.is_ok() && migrated.is_ok() && again.is_ok(), "{health:?} {migrated:?}");
        assert!(log.exists(), "connections are open");
        store.close().await;
        assert!(!log.exists(), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_database_is_left_alone() {
    let path = path();
    std::fs::write(&path, "id,merchant,currency\n".repeat(300)).expect("written");
    let error = refused(&path).await.to_string();
    assert!(error.contains("no SQLite database") && error.contains("name another file"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_programs_database_is_left_alone() {
    let path = path();
    drop(std::fs::File::create(&path).expect("made"));
    let mut connection = raw(&path).await;
    run(&mut connection, "create table theirs (a integer); pragma application_id = 7").await.expect("theirs");
    sqlx::Connection::close(connection).await.expect("closed");
    let error = refused(&path).await.to_string();
    assert!(error.contains("another program's database") && error.contains("id 7"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_left_alone() {
    let path = path();
    store(&path).await.close().await;
    let mut connection = raw(&path).await;
    run(&mut connection, "insert into schema_migration (version, name, checksum, applied_at) values (99, 'n', 'c', 0)")
        .await
        .expect("a newer release");
    sqlx::Connection::close(connection).await.expect("closed");
    let error = refused(&path).await;
    assert!(matches!(error, StoreError::Schema { found: 99, .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_there_is_made_only_where_that_was_asked_for() {
    let path = path();
    let mut asked = settings(&path);
    asked.create = false;
    let error = SqliteStore::new(&asked).open().await.expect_err("refused").to_string();
    assert!(error.contains("no such file") && error.contains("bursar migrate"), "{error}");
    assert!(!path.exists());
    asked.path = path.with_file_name("no-such-folder").join("bursar.db");
    asked.create = true;
    let error = SqliteStore::new(&asked).open().await.expect_err("refused").to_string();
    assert!(error.contains("cannot be made") && error.contains("must exist"), "{error}");
    asked.path = scratch::folder("sqlite");
    let error = SqliteStore::new(&asked).open().await.expect_err("refused").to_string();
    assert!(error.contains("is a directory"), "{error}");
    let store = store(&path).await;
    let (found, now) = store.migrate().await.expect("nothing to do");
    assert!(found == 0 && now > 0, "what opening the file did is told: {found}, {now}");
    assert_eq!(number(&path, "select count(*) from deployment").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_taken_away_or_replaced_is_worked_on_no_more_until_it_is_back() {
    let path = path();
    let store = store(&path).await;
    let mine = claim(1);
    let tenure = tenure(&store, &mine).await;
    let (away, copy) = (path.with_file_name("away.db"), path.with_file_name("copy.db"));
    std::fs::copy(&path, &copy).expect("an older copy");
    std::fs::rename(&path, &away).expect("taken away");
    for what in ["taken away", "replaced"] {
        let tried =
            [store.health().await.map(|_| ()), tenure.pulse().await.map(|_| ()), tenure.recover().await.map(|_| ())];
        for tried in tried {
            let error = tried.expect_err(what);
            assert!(!error.is_passing() && error.to_string().contains("put it back"), "{what}: {error}");
        }
        if what == "taken away" {
            std::fs::rename(&copy, &path).expect("replaced");
        }
    }
    std::fs::rename(&away, &path).expect("put back");
    store.health().await.expect("it is the file that is known");
    assert!(matches!(tenure.recover().await.expect("an answer"), Entered::Mine(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_a_second_name_is_left_alone() {
    let path = path();
    store(&path).await;
    let second = path.with_file_name("second.db");
    std::fs::hard_link(&path, &second).expect("linked");
    let error = refused(&second).await;
    assert!(!error.is_passing() && error.to_string().contains("hard links"), "{error}");
    assert!(!second.with_file_name("second.db-wal").exists(), "it was not even opened");
    std::fs::remove_file(&second).expect("removed");
    store(&path).await.health().await.expect("one name is enough");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_the_files_lock_is_the_stores_trouble_and_never_a_verdict_on_a_batch() {
    let path = path();
    let store = store(&path).await;
    let mine_now = claim(1);
    accepted(&store, &mine_now).await;
    let lineage = store.health().await.expect("a healthy store").lineage;
    let short = TenureLimits { lock_timeout: Duration::from_millis(200), ..limits() };
    let leads = store.tenure(&mine_now, short, lineage, always()).await.expect("a tenure");
    let run_of_one = planned(leads.as_ref(), "probe", &["a"]).await;
    let all = UnitPick::Fresh { after: 0, limit: 10 };
    let mut import = raw(&path).await;
    run(&mut import, "begin immediate").await.expect("the lock is free");
    let error = leads.settle(&run_of_one, all.clone(), &mark()).await.expect_err("it waits in vain");
    assert!(error.is_passing() && error.is_trouble_of_the_store(), "{error:?}");
    run(&mut import, "rollback").await.expect("it ends");
    assert!(matches!(mine(leads.settle(&run_of_one, all, &mark()).await), SettleOutcome::Settled(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_make_one_file_at_once_make_it_once() {
    let path = path();
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let path = path.clone();
        opening.spawn(async move { store(&path).await });
    }
    assert_eq!(opening.join_all().await.len(), 4, "each can use it");
    assert_eq!(number(&path, "select count(*) from deployment").await, 1);
}

/// A disk of its own, as small as is asked for. Only root may.
struct Disk(PathBuf);

impl Disk {
    fn of(size: &str) -> Self {
        let folder = scratch::folder("disk");
        let disk = Self(folder);
        disk.mount(&format!("size={size}"));
        disk
    }

    fn mount(&self, options: &str) {
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(&self.0)
            .output()
            .expect("mount can be started");
        assert!(output.status.success(), "this test needs root: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn file(&self) -> PathBuf {
        self.0.join("bursar.db")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a connection may still be closing.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_said_loses_nothing_and_is_over_when_there_is_room() {
    let disk = Disk::of("1m");
    let path = disk.file();
    let store = store(&path).await;
    let tenure = tenure(&store, &claim(1)).await;
    let run = planned(tenure.as_ref(), "probe", &["a"]).await;
    let other = opened(tenure.as_ref(), "other").await;
    let ballast = disk.0.join("ballast");
    let filled = Command::new("dd")
        .arg("if=/dev/zero")
        .arg(format!("of={}", ballast.display()))
        .args(["bs=4k", "count=10000"])
        .output()
        .expect("dd can be started");
    assert!(!filled.status.success(), "the disk is full");
    let keys: Vec<String> = (0..5_000).map(|key| format!("{key:0200}")).collect();
    let source = PlanSource::Keys(keys);
    let error = tenure.plan_page(&other, &source, None, 10_000).await.expect_err("no room");
    assert!(matches!(&error, StoreError::TryAgain { code, .. } if code == "53100"), "{error:?}");
    assert!(error.is_trouble_of_the_store() && error.to_string().contains("make room"), "{error}");
    assert_eq!(number(&path, "select count(*) from unit").await, 1, "nothing of it");
    std::fs::remove_file(&ballast).expect("room again");
    mine(tenure.plan_page(&other, &PlanSource::Keys(vec!["k".to_owned()]), None, 10).await);
    let settled = tenure.settle(&run, UnitPick::Fresh { after: 0, limit: 1 }, &mark()).await;
    assert!(matches!(settled, Ok(Entered::Mine(_))), "{settled:?}");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_on_a_read_only_disk_is_said() {
    let disk = Disk::of("4m");
    let path = disk.file();
    store(&path).await.close().await;
    disk.mount_again("remount,ro");
    let error = SqliteStore::new(&settings(&path)).open().await.err();
    let error = match error {
        Some(error) => error,
        None => SqliteStore::new(&settings(&path)).health().await.expect_err("it cannot be written"),
    };
    assert!(matches!(error, StoreError::ReadOnly { .. } | StoreError::Unfit { .. }), "{error:?}");
    assert!(error.to_string().contains("write"), "{error}");
    disk.mount_again("remount,rw");
    store(&path).await.health().await.expect("over");
}

impl Disk {
    fn mount_again(&self, options: &str) {
        let output = Command::new("mount").args(["-o", options]).arg(&self.0).output().expect("mount can be started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
