//! One database of a server, as the product's role sees it and as a superuser sees and breaks it.

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::postgres::ROLE;

/// One database of a server.
#[derive(Debug, Clone)]
pub struct Database {
    name: String,
    port: u16,
}

impl Database {
    /// The database of that name on the server with that port.
    pub fn new(name: String, port: u16) -> Self {
        Self { name, port }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The product's address of it.
    pub fn url(&self) -> String {
        self.url_through(self.port)
    }

    /// The product's address of it through another port: a proxy's or a pooler's.
    pub fn url_through(&self, port: u16) -> String {
        format!("postgres://{ROLE}@127.0.0.1:{port}/{}", self.name)
    }

    /// The superuser's address of it.
    pub fn superuser_url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{}", self.port, self.name)
    }

    /// The address of it for another role, as an operator has one: with rights on everything, and owner of nothing.
    pub async fn as_second_role(&self) -> String {
        self.execute(
            "do $$ begin create role second_eyes login; exception when duplicate_object or unique_violation then null; end $$;
             grant usage on schema bursar to second_eyes;
             grant select, insert, update on all tables in schema bursar to second_eyes",
        )
        .await;
        format!("postgres://second_eyes@127.0.0.1:{}/{}", self.port, self.name)
    }

    /// The address of it for a role like the product's that may end the sessions of others, as `deploy/postgres/roles.sql` grants it.
    pub async fn as_signalling_role(&self) -> String {
        self.execute(&format!(
            "do $$ begin create role may_signal login in role {ROLE}, pg_signal_backend;
                   exception when duplicate_object or unique_violation then null; end $$"
        ))
        .await;
        format!("postgres://may_signal@127.0.0.1:{}/{}", self.port, self.name)
    }

    /// A connection as the product's role.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url()).await.expect("the server answers")
    }

    /// Runs statements as superuser: for breaking a store by hand, past its owner's triggers where they say so.
    ///
    /// # Panics
    /// When they fail.
    pub async fn execute(&self, statements: &str) -> u64 {
        let mut connection = PgConnection::connect(&self.superuser_url()).await.expect("the server answers");
        let outcome = sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut connection).await;
        connection.close().await.ok();
        outcome.unwrap_or_else(|error| panic!("{statements}: {error}")).rows_affected()
    }

    /// The rows of a query, read as superuser, as a tuple of columns each.
    ///
    /// # Panics
    /// When it fails or the columns are of other types.
    pub async fn rows<T>(&self, query: &str) -> Vec<T>
    where
        T: for<'r> sqlx::FromRow<'r, sqlx::postgres::PgRow> + Send + Unpin,
    {
        self.try_rows(query).await.unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    /// As [`Self::rows`], while the server may be away or the schema not there.
    ///
    /// # Errors
    /// What sqlx says.
    pub async fn try_rows<T>(&self, query: &str) -> Result<Vec<T>, sqlx::Error>
    where
        T: for<'r> sqlx::FromRow<'r, sqlx::postgres::PgRow> + Send + Unpin,
    {
        let mut connection = PgConnection::connect(&self.superuser_url()).await?;
        let rows = sqlx::query_as(AssertSqlSafe(query.to_owned())).fetch_all(&mut connection).await;
        connection.close().await.ok();
        rows
    }

    /// The one value of a query with one row and one column.
    ///
    /// # Panics
    /// When it fails or gives another number of rows.
    pub async fn value<T>(&self, query: &str) -> T
    where
        T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
    {
        let mut rows: Vec<(T,)> = self.rows(query).await;
        assert_eq!(rows.len(), 1, "{query}: one row was expected");
        rows.remove(0).0
    }

    /// How many sessions of the product's role are open on it.
    pub async fn sessions(&self) -> i64 {
        let query =
            format!("select count(*) from pg_stat_activity where datname = '{}' and usename = '{ROLE}'", self.name);
        self.value(&query).await
    }
}
