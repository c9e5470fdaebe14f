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

/// What is asked every few seconds, or for each page of a plan, must not walk over everything that ever was.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_all_the_time_goes_along_an_index() {
    let path = path();
    let _store = store(&path).await;
    let mut connection = raw(&path).await;
    let expected = [
        ("runs.sql", &["r USING INDEX run_open", "r USING COVERING INDEX run_by_due|r USING INDEX run_by_due"][..]),
        ("units_set_aside.sql", &["u USING INDEX unit_set_aside"]),
        ("payouts_unfinished.sql", &["i USING INDEX instruction_unfinished"]),
        ("plan_query_page.sql", &["u USING INDEX unit_pending", "u USING INDEX unit_set_aside"]),
        ("ticks_recorded.sql", &["r USING COVERING INDEX run_one_per_job_and_tick"]),
        ("jobs_lock.sql", &["j USING INDEX job_name_is_unique"]),
        ("ticks_insert.sql", &["j USING INTEGER PRIMARY KEY"]),
        ("jobs_evaluated.sql", &["job USING INTEGER PRIMARY KEY"]),
    ];
    for (name, parts) in expected {
        let text = std::fs::read_to_string(format!("src/store/sqlite/sql/{name}")).expect("UTF-8");
        let rows: Vec<(i64, i64, i64, String)> = sqlx::query_as(AssertSqlSafe(format!("explain query plan {text}")))
            .fetch_all(&mut connection)
            .await
            .expect("a plan");
        let plan: Vec<String> = rows.into_iter().map(|(.., line)| line).collect();
        for part in parts {
            let found = part.split('|').any(|one| plan.iter().any(|line| line.contains(one)));
            assert!(found, "{name}, {part}: {plan:#?}");
        }
        let whole = ["SCAN r", "SCAN u", "SCAN i", "SCAN j", "SCAN job"];
        assert!(!plan.iter().any(|line| whole.contains(&line.as_str())), "{name}: {plan:#?}");
    }
}
