//! What a desk stands on: a store of either kind, with a way past its guards for breaking it by hand.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bursar::store::Store;
use bursar::store::postgres::{PgSettings, PgStore};
use bursar::store::sqlite::{SqliteSettings, SqliteStore};
use sqlx::postgres::PgRow;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, FromRow, Postgres as PgDriver, Row, Sqlite as SqliteDriver};

use crate::support::{Database, Postgres, eventually, scratch};

/// What both databases have a column for.
pub trait Value:
    for<'r> sqlx::Decode<'r, PgDriver>
    + sqlx::Type<PgDriver>
    + for<'r> sqlx::Decode<'r, SqliteDriver>
    + sqlx::Type<SqliteDriver>
    + Send
    + Unpin
{
}

impl Value for i64 {}
impl Value for String {}
impl Value for bool {}

/// A migrated store of one kind.
pub trait Ground: Clone {
    /// One of its own that is like the one that `make` made of a migrated one, once for each name.
    async fn like(name: &str, make: impl AsyncFnOnce(&Self)) -> Self;

    /// The store on it, as another process has it.
    fn store(&self) -> Arc<dyn Store>;

    /// The product's address of it.
    fn address(&self) -> String;

    /// Runs statements past every trigger, check and foreign key; answers how many rows they touched. Written for
    /// PostgreSQL; what is another thing on SQLite is said in [`Ground::words`].
    async fn broken_by(&self, statements: &str) -> u64;

    /// The rows of a query, as a tuple of columns each.
    async fn rows<T>(&self, query: &str) -> Vec<T>
    where
        T: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin;

    /// The one value of a query.
    async fn value<T: Value>(&self, query: &str) -> T;

    /// Which of two texts is this database's.
    fn words<'a>(postgres: &'a str, sqlite: &'a str) -> &'a str;
}

impl Ground for Database {
    async fn like(name: &str, make: impl AsyncFnOnce(&Self)) -> Self {
        let template = async |empty: &Self| {
            let store = empty.store();
            store.migrate().await.expect("an empty database is migrated");
            make(empty).await;
            store.close().await;
        };
        Postgres::shared().database_from(name, template).await
    }

    fn store(&self) -> Arc<dyn Store> {
        let settings = PgSettings { url: self.url().into(), replica: "desk".to_owned(), ..PgSettings::default() };
        Arc::new(PgStore::new(&settings).expect("the address is ours"))
    }

    fn address(&self) -> String {
        self.url()
    }

    async fn broken_by(&self, statements: &str) -> u64 {
        self.execute(&format!("set session_replication_role = replica; {statements}")).await
    }

    async fn rows<T>(&self, query: &str) -> Vec<T>
    where
        T: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin,
    {
        Self::rows(self, query).await
    }

    async fn value<T: Value>(&self, query: &str) -> T {
        Self::value(self, query).await
    }

    fn words<'a>(postgres: &'a str, _sqlite: &'a str) -> &'a str {
        postgres
    }
}

/// A file of SQLite.
#[derive(Debug, Clone)]
pub struct SqliteFile(PathBuf);

impl SqliteFile {
    /// A connection that minds no foreign key and no check.
    async fn connect(&self) -> SqliteConnection {
        SqliteConnectOptions::new()
            .filename(&self.0)
            .foreign_keys(false)
            .pragma("ignore_check_constraints", "on")
            .connect()
            .await
            .expect("the file is ours")
    }

    /// A statement for PostgreSQL in SQLite's words: without its schema and its casts.
    fn translated(statement: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(statement.replace("bursar.", "").replace("::bigint", ""))
    }
}

impl Ground for SqliteFile {
    async fn like(name: &str, make: impl AsyncFnOnce(&Self)) -> Self {
        static READY: tokio::sync::Mutex<Vec<(String, PathBuf)>> = tokio::sync::Mutex::const_new(Vec::new());
        let mut ready = READY.lock().await;
        let known = ready.iter().find(|(known, _)| known == name).map(|(_, template)| template.clone());
        let template = if let Some(template) = known {
            template
        } else {
            let file = Self(scratch::folder("sqlite").join("bursar.db"));
            let store = file.store();
            store.migrate().await.expect("a new file is migrated");
            make(&file).await;
            // The last connection that closes brings the log into the file and removes it.
            store.close().await;
            ready.push((name.to_owned(), file.0.clone()));
            file.0
        };
        // Its connections close in threads of their own.
        let mut log = template.clone().into_os_string();
        log.push("-wal");
        eventually(Duration::from_secs(10), "everything is in the file itself", async || {
            (!std::fs::exists(&log).expect("the folder is ours")).then_some(())
        })
        .await;
        let copy = scratch::folder("sqlite").join("bursar.db");
        std::fs::copy(template, &copy).expect("the folder is ours");
        Self(copy)
    }

    fn store(&self) -> Arc<dyn Store> {
        let settings = SqliteSettings {
            path: self.0.clone(),
            replica: "desk".to_owned(),
            create: true,
            ..SqliteSettings::default()
        };
        Arc::new(SqliteStore::new(&settings))
    }

    fn address(&self) -> String {
        format!("sqlite://{}", self.0.display())
    }

    async fn broken_by(&self, statements: &str) -> u64 {
        let mut connection = self.connect().await;
        let triggers = sqlx::query("select name from sqlite_schema where type = 'trigger'")
            .fetch_all(&mut connection)
            .await
            .expect("the schema is ours");
        for trigger in triggers {
            let drop = format!("drop trigger {}", trigger.get::<&str, _>(0));
            sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut connection).await.expect("the trigger is there");
        }
        let touched = sqlx::raw_sql(Self::translated(statements))
            .execute(&mut connection)
            .await
            .unwrap_or_else(|error| panic!("{statements}: {error}"))
            .rows_affected();
        connection.close().await.expect("nothing is open");
        touched
    }

    async fn rows<T>(&self, query: &str) -> Vec<T>
    where
        T: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin,
    {
        let mut connection = self.connect().await;
        let rows = sqlx::query_as(Self::translated(query)).fetch_all(&mut connection).await;
        connection.close().await.expect("nothing is open");
        rows.unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    async fn value<T: Value>(&self, query: &str) -> T {
        let mut rows: Vec<(T,)> = self.rows(query).await;
        assert_eq!(rows.len(), 1, "{query}: one row was expected");
        rows.remove(0).0
    }

    fn words<'a>(_postgres: &'a str, sqlite: &'a str) -> &'a str {
        sqlite
    }
}

/// Makes the tests of a module out of its cases, one set for each kind of store.
macro_rules! on_every_store {
    ($($case:ident),* $(,)?) => {
        mod on_postgres {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case::<crate::support::Database>().await;
                }
            )*
        }
        mod on_sqlite {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case::<crate::desk::SqliteFile>().await;
                }
            )*
        }
    };
}
pub(crate) use on_every_store;
