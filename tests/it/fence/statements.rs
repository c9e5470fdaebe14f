//! Every statement of the store, and of the coordinator beside it, is understood by a migrated database.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, SqlSafeStr};

use super::ground::migrated;

/// Where the statements for PostgreSQL stand.
const FOLDERS: [&str; 2] = ["src/store/postgres/sql", "src/leadership/database/postgres/sql"];

/// Files of several statements, sent in the simple protocol: they are run by the tests that open sessions and migrate.
const SEVERAL: [&str; 4] = ["session.sql", "session_control.sql", "session_command.sql", "migrate_table.sql"];

#[tokio::test(flavor = "multi_thread")]
async fn every_file_can_be_prepared_and_says_what_it_is_for() {
    let database = migrated().await;
    let mut connection = database.connect().await;
    let mut seen = 0;
    let mut wrong = Vec::new();
    let entries = FOLDERS.iter().flat_map(|folder| std::fs::read_dir(folder).expect("the folder"));
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        seen += 1;
        if !text.starts_with("-- ") {
            wrong.push(format!("{name}: a header is missing"));
        }
        if SEVERAL.contains(&name.as_str()) {
            continue;
        }
        if let Err(error) = connection.prepare(AssertSqlSafe(text).into_sql_str()).await {
            wrong.push(format!("{name}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(seen > 40, "{seen} files");
}

#[tokio::test]
async fn every_file_of_the_lease_can_be_prepared_and_says_what_it_is_for() {
    let path = crate::support::scratch::folder("lease").join("lease");
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut connection = options.connect().await.expect("a new file");
    let folder = "src/leadership/database/sqlite/sql";
    let schema = std::fs::read_to_string(format!("{folder}/schema.sql")).expect("UTF-8");
    sqlx::raw_sql(AssertSqlSafe(schema)).execute(&mut connection).await.expect("a new file takes the schema");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        assert!(text.starts_with("-- "), "{}: a header is missing", path.display());
        seen += 1;
        if path.ends_with("schema.sql") {
            continue;
        }
        let prepared = connection.prepare(AssertSqlSafe(text).into_sql_str()).await;
        assert!(prepared.is_ok(), "{}: {:?}", path.display(), prepared.err());
    }
    assert!(seen > 15, "{seen} files");
}

#[tokio::test]
async fn no_check_of_the_audit_is_compiled_before_it_is_run() {
    let database = migrated().await;
    let mut connection = database.connect().await;
    let folder = std::path::Path::new(FOLDERS[0]);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("UTF-8");
    connection.execute("begin").await.expect("the server answers");
    connection.execute(AssertSqlSafe(read("audit_planner.sql")).into_sql_str()).await.expect("the settings");
    for name in ["audit_journals_balance.sql", "audit_finals_are_posted.sql", "audit_no_stale_write.sql"] {
        let explained = format!("explain {}", read(name).replace("$1", "20"));
        let plan: Vec<(String,)> =
            sqlx::query_as(AssertSqlSafe(explained)).fetch_all(&mut connection).await.expect("the plan");
        // With a cost beyond all others for a nested loop, and so beyond the one from which on it compiles.
        assert!(plan.iter().all(|(line,)| !line.starts_with("JIT")), "{name}: {plan:#?}");
    }
}

/// What is asked every few seconds, or for each page of a plan, must not walk over everything that ever was. With walking made
/// dear, what still walks has no index to go along.
#[tokio::test]
async fn what_is_asked_all_the_time_goes_along_an_index() {
    let database = migrated().await;
    let mut connection = database.connect().await;
    let folder = std::path::Path::new(FOLDERS[0]);
    connection.execute("set enable_seqscan = off").await.expect("the server answers");
    let mut text = std::fs::read_to_string(folder.join("runs.sql")).expect("UTF-8");
    for (name, value) in [
        ("$1::text", "null"),
        ("$2::text", "null"),
        ("$3::bigint", "null"),
        ("$4::bigint", "null"),
        ("$5", "20"),
        ("$6", "false"),
    ] {
        text = text.replace(name, value);
    }
    for name in ["$1", "$2", "$3", "$4"] {
        text = text.replace(name, "null");
    }
    let plan: Vec<(String,)> =
        sqlx::query_as(AssertSqlSafe(format!("explain {text}"))).fetch_all(&mut connection).await.expect("the plan");
    assert!(plan.iter().any(|(line,)| line.contains("run_by_due")), "{plan:#?}");
}
