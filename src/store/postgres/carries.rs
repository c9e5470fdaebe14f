//! Which jobs have open carries.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::columns::{count, job_name};
use super::error::at;
use crate::store::{JobCarries, StoreError};

const OPERATION: &str = "carries";

/// Jobs with open carries, by name.
///
/// # Errors
/// Any fault of the store.
pub(super) async fn carries(connection: &mut PgConnection) -> Result<Vec<JobCarries>, StoreError> {
    let rows = sqlx::query(include_str!("sql/carries.sql")).fetch_all(connection).await.map_err(at(OPERATION))?;
    let read = |row: &PgRow| -> Result<JobCarries, sqlx::Error> {
        Ok(JobCarries { job: job_name(row, "job")?, removed: row.try_get("removed")?, entries: count(row, "entries")? })
    };
    rows.iter().map(read).collect::<Result<_, _>>().map_err(at(OPERATION))
}
