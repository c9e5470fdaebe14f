//! The roles of `deploy/postgres/roles.sql`: the one that runs can do all that a replica and an operator do, and nothing that
//! would rewrite what was; the one that reads only reads.

use std::path::Path;

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::support::postgres::programs;
use crate::support::replica::quoted;
use crate::support::{Cluster, Database, Entries, Launch, LedgerJob, Postgres, Setup};

/// What PostgreSQL says to one who may not.
const NOT_ALLOWED: &str = "42501";

/// What the role that runs would do to change what was, or to become somebody.
const FORBIDDEN: [&str; 22] = [
    "delete from bursar.journal",
    "update bursar.journal set run_id = run_id",
    "delete from bursar.posting",
    "update bursar.posting set amount = 1",
    "delete from bursar.entry",
    "delete from bursar.instruction",
    "delete from bursar.batch",
    "update bursar.batch set term = 0",
    "delete from bursar.run",
    "delete from bursar.fence",
    "delete from bursar.term_history",
    "delete from bursar.operator_act",
    "update bursar.operator_act set reason = ''",
    "delete from bursar.fence_reject",
    "insert into bursar.schema_migration select * from bursar.schema_migration",
    "truncate bursar.entry, bursar.unit cascade",
    "alter table bursar.posting disable trigger all",
    "drop table bursar.cordon",
    "create table bursar.mine (n int)",
    "set role bursar_owner",
    "create role somebody",
    "copy bursar.job to program 'cat'",
];

fn roles(database: &Database) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/postgres/roles.sql");
    let run = Launch::new("roles", programs().join("psql")).args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"]);
    let said = run.arg(file).arg(database.superuser_url()).finish().ok().stdout;
    assert!(!said.contains("rows)") || said.contains("(0 rows)"), "{said}");
}

fn url(database: &Database, role: &str) -> String {
    database.url().replace("bursar@", &format!("{role}@"))
}

async fn assert_forbidden(database: &Database, role: &str, statements: &[&str]) {
    let mut connection = PgConnection::connect(&url(database, role)).await.expect("it may connect");
    for statement in statements {
        let outcome = sqlx::raw_sql(AssertSqlSafe((*statement).to_owned())).execute(&mut connection).await;
        let error = outcome.err().unwrap_or_else(|| panic!("{role} may {statement}"));
        let code =
            error.as_database_error().and_then(sqlx::error::DatabaseError::code).unwrap_or_default().into_owned();
        assert_eq!(code, NOT_ALLOWED, "{role}: {statement}: {error}");
    }
}

/// All that an operator and a replica do in a day.
async fn a_day(cluster: &Cluster) {
    cluster.import(&Entries::new().capture("m1", "EUR", "10.00").capture("m2", "EUR", "7.00"), "psp").ok();
    cluster.run_now("daily").await;
    for command in [
        &["pause", "daily", "--reason", "r"] as &[&str],
        &["unpause", "daily", "--reason", "r"],
        &["merchant", "hold", "m1", "--reason", "r"],
        &["payouts", "release", "1", "--reason", "r"],
        &["merchant", "release", "m1", "--reason", "r"],
        &["cordon", "r0", "--reason", "r"],
        &["uncordon", "r0", "--reason", "r"],
        &["halt", "--reason", "r"],
        &["resume", "--reason", "r"],
        &["imports", "revert", "1", "--reason", "r"],
        &["audit"],
    ] {
        cluster.command(command).ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_that_runs_does_a_days_work_and_rewrites_nothing_and_the_one_that_reads_reads() {
    let database = Postgres::shared().fresh_database().await;
    roles(&database);
    let setup = Setup::new(1, &LedgerJob::new("daily").text()).steady().on_database(database.clone());
    let cluster = setup.prepare().await;
    let replica = cluster.replica(0);
    replica.set("database", "url", &quoted(&url(&database, "bursar_owner")));
    cluster.command(&["migrate"]).ok();
    roles(&database);
    replica.set("database", "url", &quoted(&url(&database, "bursar_run")));
    replica.start();
    replica.wait_leads().await;
    a_day(&cluster).await;
    assert_forbidden(&database, "bursar_run", &FORBIDDEN).await;
    replica.set("database", "url", &quoted(&url(&database, "bursar_reader")));
    for command in [
        &["status"] as &[&str],
        &["history"],
        &["audit"],
        &["runs", "list"],
        &["payouts", "list"],
        &["imports", "list"],
    ] {
        cluster.command(command).ok();
    }
    let halt = cluster.command(&["halt", "--reason", "r"]);
    assert_ne!(halt.code(), Some(0), "{}", halt.stdout);
    assert!(halt.stderr.contains(NOT_ALLOWED), "{}", halt.stderr);
    assert_forbidden(&database, "bursar_reader", &FORBIDDEN).await;
    assert_forbidden(
        &database,
        "bursar_reader",
        &["delete from bursar.cordon", "update bursar.unit set state = state"],
    )
    .await;
    replica.assert_running();
}
