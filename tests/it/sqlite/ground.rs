//! What the tests of SQLite stand on: a file of their own, the product's store on it, and raw connections that do what other
//! programs would.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bursar::domain::Claim;
use bursar::store::sqlite::{SqliteSettings, SqliteStore};
use bursar::store::{AdvanceOutcome, Store, TenureStore};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions};

pub use crate::fence::ground::{
    BOUND, actor, claim, definition, election, leader, limits, mark, mine, opened, planned, tick,
};
use crate::support::{always, scratch};

/// A path for a store of its own.
pub fn path() -> PathBuf {
    scratch::folder("sqlite").join("bursar.db")
}

pub fn settings(path: &Path) -> SqliteSettings {
    SqliteSettings { path: path.to_owned(), replica: "replica-a".to_owned(), create: true, is_replica: false }
}

/// The product's store on a file, made where it is missing.
pub async fn store(path: &Path) -> SqliteStore {
    let store = SqliteStore::new(&settings(path));
    store.open().await.expect("the file can be used");
    store
}

/// Advances and expects acceptance.
pub async fn accepted(store: &dyn Store, claim: &Claim) {
    let outcome = store.advance(claim, &leader(), BOUND).await.expect("an answer");
    assert_eq!(outcome, AdvanceOutcome::Accepted { halt: None }, "{claim}");
}

/// Advances and opens the tenure.
pub async fn tenure(store: &dyn Store, claim: &Claim) -> Arc<dyn TenureStore> {
    accepted(store, claim).await;
    let lineage = store.health().await.expect("a healthy store").lineage;
    store.tenure(claim, limits(), lineage, always()).await.expect("a tenure")
}

/// A connection as another program has it.
pub async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.expect("the file can be opened")
}

/// Runs statements of another program.
pub async fn run(connection: &mut SqliteConnection, statements: &str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(connection).await.map(|_| ())
}

/// One number.
pub async fn number(path: &Path, statement: &str) -> i64 {
    let mut connection = raw(path).await;
    sqlx::query_scalar(AssertSqlSafe(statement.to_owned())).fetch_one(&mut connection).await.expect(statement)
}
