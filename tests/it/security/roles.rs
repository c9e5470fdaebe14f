//! The roles of `deploy/postgres/roles.sql`: the one that runs can do all that a replica and an operator do, and nothing that
//! would rewrite what was; the one that reads only reads.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::READY;
use crate::support::postgres::programs;
use crate::support::receiver::Receiver;
use crate::support::replica::quoted;
use crate::support::{Cluster, Database, Entries, Launch, LedgerJob, Pair, Postgres, Replica, Setup, eventually};

/// What PostgreSQL says to one who may not.
const NOT_ALLOWED: &str = "42501";

/// What the role that runs would do to change what was, to say that another did it or when, or to become somebody.
const FORBIDDEN: [&str; 33] = [
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
    "update bursar.term_history set snapshot = pg_current_snapshot()",
    "update bursar.term_history set accepted_at = now()",
    "insert into bursar.term_history (election, term, tenure_id, replica, host, version, system_identifier, timeline, role)
     values ('e', 1, gen_random_uuid(), 'r', 'h', 'v', 's', 1, 'bob')",
    "delete from bursar.operator_act",
    "update bursar.operator_act set reason = ''",
    "insert into bursar.operator_act (role, os_user, host, action, target) values ('bob', 'bob', 'desk', 'halt', 'all')",
    "insert into bursar.operator_act (at, os_user, host, action, target) values (now(), 'bob', 'desk', 'halt', 'all')",
    "update bursar.import set sha256 = ''",
    "update bursar.import set at = now()",
    "update bursar.approval set at = now()",
    "update bursar.merchant_hold set held_at = now()",
    "update bursar.deployment set deployment_id = gen_random_uuid()",
    "delete from bursar.fence_reject",
    "insert into bursar.fence_reject (at, election, term, tenure_id, operation, replica)
     values (now(), 'e', 1, gen_random_uuid(), 'settle', 'r')",
    "insert into bursar.schema_migration select * from bursar.schema_migration",
    "truncate bursar.entry, bursar.unit cascade",
    "alter table bursar.posting disable trigger all",
    "drop table bursar.cordon",
    "create table bursar.mine (n int)",
    "set role bursar_owner",
    "create role somebody",
    "copy bursar.job to program 'cat'",
];

/// The file makes roles of the server, which all its databases share: two runs at a time would meet in the catalogue.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn roles(database: &Database) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/postgres/roles.sql");
    let run = Launch::new("roles", programs().join("psql")).args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"]);
    let said = run.arg(file).arg(database.superuser_url()).finish().ok().stdout;
    assert!(!said.contains("rows)") || said.contains("(0 rows)"), "{said}");
}

/// A role that may log in, with what stands behind it.
fn login(name: &str, rest: &str) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    Postgres::shared().psql(&format!(
        "do $$ begin create role {name} login {rest}; exception when duplicate_object then null; end $$"
    ));
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

/// A job whose statement fails as long as the switch is off.
const CLOSING: &str = "
[[job]]
name = \"close\"
cron = \"0 0 1 1 *\"
handler = \"sql\"
[job.retry]
max_attempts = 2
backoff = \"10ms..20ms\"
[job.sql]
units = '''select 'u' as key, '{}'::jsonb as payload'''
settle = '''select 1 / s.works from app.switch s, bursar_batch'''
";
const SWITCH: &str = "create schema app; create table app.switch (works int); insert into app.switch values (0);
    grant usage on schema app to bursar_run; grant select on app.switch to bursar_run";

/// A database with all roles and this release's schema, two replicas under the role that runs, and their receiver.
async fn ground(pair: Pair) -> (Database, Cluster, Receiver) {
    let database = Postgres::shared().fresh_database().await;
    roles(&database);
    let receiver = Receiver::start().await;
    let daily = LedgerJob::new("daily").paying(&receiver.url()).payout("idempotent", "true");
    let schedule = daily.text() + CLOSING;
    let cluster = Setup::new(2, &schedule).steady().on(pair).on_database(database.clone()).prepare().await;
    let first = cluster.replica(0);
    first.set("database", "url", &quoted(&url(&database, "bursar_owner")));
    first.command(&["migrate"]).ok();
    roles(&database);
    database.execute(SWITCH).await;
    for replica in cluster.replicas() {
        replica.set("database", "url", &quoted(&url(&database, "bursar_run")));
    }
    first.start();
    first.wait_leads().await;
    cluster.replica(1).start();
    cluster.replica(1).wait_ready(READY).await;
    (database, cluster, receiver)
}

/// All that an operator and a replica do in a day.
async fn a_day(cluster: &Cluster, receiver: &Receiver) {
    cluster.import(&Entries::new().capture("m1", "EUR", "10.00").capture("m2", "EUR", "7.00"), "psp").ok();
    cluster.run_now("daily").await;
    for command in [
        &["pause", "daily", "--reason", "r"] as &[&str],
        &["unpause", "daily", "--reason", "r"],
        &["merchant", "hold", "m1", "--reason", "r"],
        &["payouts", "release", "1", "--reason", "r"],
        &["merchant", "release", "m1", "--reason", "r"],
        &["cordon", "r1", "--reason", "r"],
        &["uncordon", "r1", "--reason", "r"],
        &["halt", "--reason", "r"],
        &["resume", "--reason", "r"],
    ] {
        cluster.command(command).ok();
    }
    let settled = async |what: &str, query: &str, wanted: i64| {
        eventually(READY, what, async || (cluster.number(query).await == wanted).then_some(())).await;
    };
    settled("both are paid", "select count(*) from bursar.instruction where state = 'paid'", 2).await;
    assert_eq!(receiver.log().len(), 2);
    // A unit that fails, and is tried again by hand once what it stumbled over is gone.
    let run = cluster.run_now("close").await;
    settled("it is set aside", "select count(*) from bursar.unit where key = 'u' and state = 'set_aside'", 1).await;
    cluster.database().execute("update app.switch set works = 1").await;
    cluster.command(&["units", "retry", &run.to_string(), "--all", "--reason", "r"]).ok();
    settled("it settles", "select count(*) from bursar.unit where key = 'u' and state = 'settled'", 1).await;
    // To the other replica, once that one may lead again.
    eventually(READY, "it is handed over", async || {
        (cluster.command(&["transfer", "--force", "--reason", "r"]).code() == Some(0)).then_some(())
    })
    .await;
    cluster.replica(1).wait_leads().await;
    cluster.import(&Entries::with_ids("n").capture("m1", "EUR", "3.00"), "psp").ok();
    cluster.run_now("daily").await;
    settled("the new leader pays too", "select count(*) from bursar.instruction where state = 'paid'", 3).await;
}

/// Two people under roles of their own: what one asks the other approves, and the store knows which was which.
fn two_people(cluster: &Cluster, database: &Database) {
    let entries = Entries::with_ids("w").capture("m9", "EUR", "1.00").write("more.csv");
    let import = cluster.import_file(&entries, "psp").ok().json()["import"]["id"].to_string();
    let desk = cluster.replica(0);
    desk.set("operator", "four_eyes", "true");
    for name in ["roles_ada", "roles_ben"] {
        login(name, "in role bursar_run");
    }
    desk.set("database", "url", &quoted(&url(database, "roles_ada")));
    let asked = desk.command(&["imports", "revert", &import, "--reason", "r", "--json"]).ok().json();
    let request = asked["request"].to_string();
    assert_eq!(desk.command(&["approve", &request]).code(), Some(1), "not by the one who asked");
    desk.set("database", "url", &quoted(&url(database, "roles_ben")));
    desk.command(&["approve", &request, "--reason", "r"]).ok();
    let history = desk.command(&["history", "--json"]).ok().json();
    let role = |action: &str| -> Value {
        let acts = history["acts"].as_array().expect("a list");
        acts.iter().find(|act| act["action"] == action).map_or(Value::Null, |act| act["role"].clone())
    };
    assert_eq!((role("ask: imports revert"), role("approve")), ("roles_ada".into(), "roles_ben".into()), "{history}");
}

async fn does_a_days_work_and_rewrites_nothing(pair: Pair) {
    let (database, cluster, receiver) = ground(pair).await;
    a_day(&cluster, &receiver).await;
    two_people(&cluster, &database);
    assert_forbidden(&database, "bursar_run", &FORBIDDEN).await;
    let desk = cluster.replica(0);
    desk.set("database", "url", &quoted(&url(&database, "bursar_reader")));
    for command in [
        &["status"] as &[&str],
        &["history"],
        &["audit"],
        &["runs", "list"],
        &["payouts", "list"],
        &["imports", "list"],
    ] {
        desk.command(command).ok();
    }
    let halt = desk.command(&["halt", "--reason", "r"]);
    assert_ne!(halt.code(), Some(0), "{}", halt.stdout);
    assert!(halt.stderr.contains(NOT_ALLOWED), "{}", halt.stderr);
    assert_forbidden(&database, "bursar_reader", &FORBIDDEN).await;
    assert_forbidden(
        &database,
        "bursar_reader",
        &["delete from bursar.cordon", "update bursar.unit set state = state"],
    )
    .await;
    cluster.replicas().iter().for_each(Replica::assert_running);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_that_runs_does_a_days_work_and_rewrites_nothing_and_the_one_that_reads_reads() {
    does_a_days_work_and_rewrites_nothing(Pair::EtcdPostgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_that_runs_holds_elections_in_the_database_too() {
    does_a_days_work_and_rewrites_nothing(Pair::PostgresAlone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_was_in_the_database_before_still_gets_in_and_finds_the_schema_closed() {
    let database = Postgres::shared().fresh_database().await;
    login("roles_neighbour", "");
    roles(&database);
    let mut neighbour = PgConnection::connect(&url(&database, "roles_neighbour")).await.expect("it still gets in");
    sqlx::raw_sql("create temporary table mine (n int)").execute(&mut neighbour).await.expect("as it could before");
    let looks = ["select * from bursar.entry", "select bursar.gate('e')"];
    assert_forbidden(&database, "roles_neighbour", &looks).await;
}
