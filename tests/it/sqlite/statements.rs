//! Every statement of the store is understood by a file that it made.

use sqlx::{AssertSqlSafe, Executor, SqlSafeStr};

use super::ground::{path, raw, store};

/// Files of several statements, which are run by every test that opens a file.
const SEVERAL: [&str; 2] = ["session.sql", "batch_table.sql"];

#[tokio::test(flavor = "multi_thread")]
async fn every_file_can_be_prepared_and_says_what_it_is_for() {
    let path = path();
    let _store = store(&path).await;
    let mut connection = raw(&path).await;
    // What a statement of the user's reads its units from is the session's own.
    let batch = std::fs::read_to_string("src/store/sqlite/sql/batch_table.sql").expect("UTF-8");
    sqlx::raw_sql(AssertSqlSafe(batch)).execute(&mut connection).await.expect("a temporary table");
    let mut seen = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir("src/store/sqlite/sql").expect("the folder") {
        let file = entry.expect("an entry").path();
        let name = file.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).expect("UTF-8");
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
