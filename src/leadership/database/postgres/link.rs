//! One connection, kept while it works: an attempt, connecting, sending and answer together, has one deadline, and whatever
//! fails drops the connection.

use std::sync::Arc;

use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::{ConnectOptions, Postgres};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::settings::PgCoordinatorSettings;
use crate::leadership::coordinator::CoordinatorError;
use crate::leadership::lease::ATTEMPT_LIMIT;
use crate::tls;

/// SQLSTATEs and classes of them that no waiting mends: credentials, rights, a database that is not there.
const REFUSALS: [&str; 4] = ["28", "42501", "3D000", "0LP01"];
/// A table or function that is not there: the schema is older than this release.
const NO_SCHEMA: [&str; 3] = ["42P01", "42883", "3F000"];

pub(super) struct Link {
    settings: Arc<PgCoordinatorSettings>,
    endpoint: String,
    connection: Mutex<Option<PgConnection>>,
}

type Asked<'q> = Query<'q, Postgres, PgArguments>;

impl Link {
    pub(super) fn new(settings: Arc<PgCoordinatorSettings>) -> Self {
        Self { endpoint: settings.endpoint(), settings, connection: Mutex::new(None) }
    }

    /// One attempt at one statement that answers with one row.
    pub(super) async fn row<T>(
        &self,
        query: Asked<'_>,
        read: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<T, CoordinatorError> {
        let rows = self.ask(query).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound);
        row.and_then(read).map_err(|error| self.failed(&error))
    }

    /// One attempt at one statement that answers with any number of rows.
    pub(super) async fn rows<T>(
        &self,
        query: Asked<'_>,
        read: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, CoordinatorError> {
        let rows = self.ask(query).await?;
        rows.iter().map(read).collect::<Result<_, _>>().map_err(|error| self.failed(&error))
    }

    /// The connection is taken out for the time of the attempt: dropped half way, its socket is closed.
    async fn ask(&self, query: Asked<'_>) -> Result<Vec<PgRow>, CoordinatorError> {
        let attempt = async {
            let mut kept = self.connection.lock().await;
            let mut connection = match kept.take() {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            let rows = query.fetch_all(&mut connection).await?;
            *kept = Some(connection);
            Ok(rows)
        };
        match timeout(ATTEMPT_LIMIT, attempt).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(_elapsed) => Err(CoordinatorError::Unknown { endpoint: self.endpoint.clone(), limit: ATTEMPT_LIMIT }),
        }
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = self.settings.current().await?.connect().await?;
        sqlx::raw_sql(include_str!("sql/session.sql")).execute(&mut connection).await?;
        Ok(connection)
    }

    /// The database's own words, without details, which may hold a row's content.
    fn failed(&self, error: &sqlx::Error) -> CoordinatorError {
        let endpoint = self.endpoint.clone();
        let Some(answer) = error.as_database_error() else {
            let mut why = error.to_string();
            if let Some(advice) = tls::advice(error, tls::DATABASE) {
                why = format!("{why}: {advice}");
            }
            return CoordinatorError::Unreachable { endpoint, why };
        };
        let state = answer.code().unwrap_or_default();
        let why = format!("{} ({state})", answer.message());
        if NO_SCHEMA.contains(&state.as_ref()) {
            let why = format!("{why}: the database has an older schema, run `bursar migrate`");
            CoordinatorError::Denied { endpoint, why }
        } else if state.starts_with("28") {
            let why =
                format!("{why}: look at the user and the password of [database], and at the server's pg_hba.conf");
            CoordinatorError::Denied { endpoint, why }
        } else if REFUSALS.iter().any(|refusal| state.starts_with(refusal)) {
            CoordinatorError::Denied { endpoint, why }
        } else {
            CoordinatorError::Unreachable { endpoint, why }
        }
    }
}
