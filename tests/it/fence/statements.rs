//! Every statement of the store is understood by a migrated database.

use sqlx::{AssertSqlSafe, Executor, SqlSafeStr};

use super::ground::migrated;

/// Files of several statements, sent in the simple protocol: they are run by the tests that open sessions and migrate.
const SEVERAL: [&str; 3] = ["session_control.sql", "session_command.sql", "migrate_table.sql"];

#[tokio::test(flavor = "multi_thread")]
async fn every_file_can_be_prepared_and_says_what_it_is_for() {
    let database = migrated().await;
    let mut connection = database.connect().await;
    let mut seen = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir("src/store/postgres/sql").expect("the folder") {
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
