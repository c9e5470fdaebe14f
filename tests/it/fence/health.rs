//! What keeps a replica from leading on a database is found out and named.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use bursar::store::{Store, StoreError};

use super::ground::{accepted, claim, migrated, open};
use crate::support::{Launch, Postgres, eventually, eventually_blocking, ports, scratch};

/// This release's schema.
const SCHEMA: i64 = 13;

#[tokio::test(flavor = "multi_thread")]
async fn a_migrated_primary_is_healthy() {
    let database = migrated().await;
    let store = open(&database.url());
    let (first, second) = (store.health().await.expect("healthy"), store.health().await.expect("healthy"));
    assert_eq!(first.lineage.system_identifier, second.lineage.system_identifier);
    assert!(second.lineage.timeline >= 1 && second.lineage.position >= first.lineage.position);
    assert!(second.now > first.now);
    eventually(Duration::from_secs(10), "what the check opened beside its session is closed", async || {
        (database.sessions().await == 1).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_schema_is_refused() {
    let database = Postgres::shared().fresh_database().await;
    let store = open(&database.url());
    assert_eq!(store.health().await, Err(StoreError::Schema { found: 0, expected: SCHEMA }));
    assert_eq!(store.migrate().await, Ok((0, SCHEMA)));
    assert_eq!(store.migrate().await, Ok((SCHEMA, SCHEMA)), "a second time there is nothing to do");
    store.health().await.expect("healthy");
    let later = SCHEMA + 1;
    database
        .execute(&format!(
            "insert into bursar.schema_migration (version, name, checksum) values ({later}, 'later', '')"
        ))
        .await;
    assert_eq!(store.health().await, Err(StoreError::Schema { found: later, expected: SCHEMA }));
    assert_eq!(store.migrate().await, Err(StoreError::Schema { found: later, expected: SCHEMA }));
    database
        .execute(
            "delete from bursar.schema_migration where name = 'later'; update bursar.schema_migration set checksum = ''",
        )
        .await;
    let changed = store.migrate().await.expect_err("another file");
    assert!(matches!(changed, StoreError::Unfit { .. }), "{changed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_migrations_at_once_apply_each_file_once() {
    let database = Postgres::shared().fresh_database().await;
    let (one, two) = (open(&database.url()), open(&database.url()));
    let (first, second) = tokio::join!(one.migrate(), two.migrate());
    let (first, second) = (first.expect("migrated"), second.expect("migrated"));
    assert_eq!(first.1, second.1);
    assert_eq!((first.0.min(second.0), first.0.max(second.0)), (0, first.1), "one found nothing, the other all of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_database_is_refused() {
    let database = migrated().await;
    database.execute(&format!("alter database {} set default_transaction_read_only = on", database.name())).await;
    let error = open(&database.url()).health().await.expect_err("read-only");
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_not_end_its_predecessors_sessions_is_refused() {
    let database = migrated().await;
    let store = open(&database.url());
    accepted(&store, &claim(1)).await;
    store.health().await.expect("its own role's sessions it may end");
    database
        .execute(
            "alter table bursar.term_history disable trigger user; update bursar.term_history set role = 'postgres'",
        )
        .await;
    let error = store.health().await.expect_err("a superuser's sessions it may not").to_string();
    assert!(error.contains("may not end the sessions of postgres"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_is_out_of_reach_and_comes_back() {
    let server = Postgres::start();
    let database = super::ground::migrated_on(&server).await;
    let store = open(&database.url());
    store.open_control().await.expect("open");
    store.health().await.expect("healthy");
    server.stop();
    let error = store.health().await.expect_err("away");
    assert!(error.is_passing(), "{error}");
    server.start_again();
    store.health().await.expect("dead sessions are replaced without a word");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_in_transaction_mode_is_refused_however_it_lends_its_sessions() {
    let database = migrated().await;
    let pooler = database_pooler("transaction", "");
    refused(&database.url_through(pooler.1)).await;
    let in_turn = database_pooler("transaction", "server_round_robin = 1\nmin_pool_size = 8\n");
    refused(&database.url_through(in_turn.1)).await;
    let single = database_pooler("transaction", "default_pool_size = 1\n");
    refused(&database.url_through(single.1)).await;
    let session = database_pooler("session", "");
    open(&database.url_through(session.1)).health().await.expect("a pooler in session mode keeps sessions apart");
}

async fn refused(url: &str) {
    for _ in 0..3 {
        let error = open(url).health().await.expect_err("a pooler in between");
        assert!(matches!(error, StoreError::Unfit { .. }), "{error}");
        assert!(error.to_string().contains("pooler in transaction mode"), "{error}");
    }
}

/// A pgbouncer before the shared server, in a mode, with further settings.
fn database_pooler(mode: &str, settings: &str) -> (crate::support::Process, u16) {
    let folder = scratch::folder("pgbouncer");
    let port = ports::free_port();
    let users = folder.join("users.txt");
    fs::write(&users, "\"bursar\" \"\"\n").expect("the folder is new");
    let configuration = folder.join("pgbouncer.ini");
    let text = format!(
        "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = {mode}\n{settings}",
        Postgres::shared().port(),
        users.display()
    );
    fs::write(&configuration, text).expect("the folder is new");
    let everybody = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&folder, everybody).expect("the folder is ours");
    let process = Launch::new("pgbouncer", "pgbouncer").arg(&configuration).folder(&folder).user("postgres").start();
    eventually_blocking(Duration::from_secs(20), "pgbouncer listens", || {
        assert!(process.is_running(), "pgbouncer has ended:\n{}", process.log_tail(40));
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok().then_some(())
    });
    (process, port)
}
