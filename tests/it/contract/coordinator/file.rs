//! What is peculiar to leases in a SQLite file: another boot, whose file it is, and who holds it.

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions};

use super::*;

async fn by_hand(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).create_if_missing(true).connect().await.expect("it can be opened")
}

async fn execute(connection: &mut SqliteConnection, statements: &str) {
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(connection).await.expect("understood");
}

async fn refusal(path: &Path) -> String {
    on_sqlite(path)().grant(TTL).await.expect_err("refused").to_string()
}

#[tokio::test]
async fn what_another_boot_has_left_is_lapsed() {
    let path = lease_file();
    let port = on_sqlite(&path)();
    let election = election("booted");
    let first = lease(&*port).await;
    let (_, won) = win(&*port, &election, first).await;
    execute(&mut by_hand(&path).await, "update lease set boot_id = 'another'").await;
    let state = read(&*port, &election).await;
    assert_eq!((state.leader, state.term), (None, term(1)), "the term stays");
    assert_eq!(port.renew(first).await.expect("an answer"), RenewOutcome::Gone);
    let second = lease(&*port).await;
    let outcome = campaign(&*port, &record(&election, "second", second, 2), Vacancy::Absent, won).await;
    assert!(matches!(outcome, CampaignOutcome::Won { .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_file_that_is_not_the_lease_file_is_refused_with_what_to_do() {
    let text = lease_file();
    std::fs::write(&text, "this is no database, and long enough to have a header of one. ".repeat(20)).expect("ours");
    let said = refusal(&text).await;
    assert!(said.contains("not a database") && said.contains("may be deleted"), "{said}");

    let foreign = lease_file();
    execute(&mut by_hand(&foreign).await, "create table theirs (id integer)").await;
    let said = refusal(&foreign).await;
    assert!(said.contains("of another program") && said.contains("move it away"), "{said}");

    let newer = lease_file();
    lease(&*on_sqlite(&newer)()).await;
    execute(&mut by_hand(&newer).await, "pragma user_version = 2").await;
    let said = refusal(&newer).await;
    assert!(said.contains("schema 2, this release knows 1"), "{said}");

    let nowhere = lease_file().join("below");
    let said = refusal(&nowhere).await;
    assert!(said.contains("make its folder"), "{said}");
}

#[tokio::test]
async fn a_file_that_was_deleted_is_made_anew_and_its_leases_are_gone() {
    let path = lease_file();
    let port = on_sqlite(&path)();
    let first = lease(&*port).await;
    for ending in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{ending}", path.display())).expect("it is there");
    }
    assert_eq!(port.renew(first).await.expect("an answer"), RenewOutcome::Gone);
    assert_ne!(lease(&*port).await, first);
}

#[tokio::test]
async fn a_file_that_is_locked_by_a_process_is_an_error_that_names_it_and_ends_nobody_else() {
    let path = lease_file();
    let settings = SqliteCoordinatorSettings { path: path.clone(), ttl: Duration::from_secs(1) };
    let port = SqliteCoordinator::new(settings);
    lease(&port).await;
    let mut holder = by_hand(&path).await;
    execute(&mut holder, "begin immediate").await;
    let pid = std::process::id().to_string();
    let first = port.grant(TTL).await.expect_err("locked").to_string();
    assert!(first.contains("locked by process") && first.contains(&pid), "{first}");
    // Reads wait for no writer.
    read(&port, &election("read")).await;
    let over = async || {
        let error = port.grant(TTL).await.expect_err("locked").to_string();
        error.contains("another connection of it is stuck").then_some(error)
    };
    let said = crate::support::eventually(Duration::from_secs(10), "patience is over", over).await;
    assert!(said.contains("this process"), "{said}");
    execute(&mut holder, "rollback").await;
    lease(&port).await;
}
