//! Reading the fence.

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{id, term};
use super::error::at;
use super::tx::halt_of;
use crate::domain::{ElectionName, TenureId};
use crate::store::{Fence, FenceHolder, StoreError};

/// Reads the fence of an election; `None` where nobody ever led.
pub(super) async fn read(
    connection: &mut SqliteConnection,
    operation: &'static str,
    election: &ElectionName,
) -> Result<Option<Fence>, StoreError> {
    let row = sqlx::query(include_str!("sql/fence.sql"))
        .bind(election.as_str())
        .fetch_optional(connection)
        .await
        .map_err(at(operation))?;
    row.as_ref().map(fence_of).transpose().map_err(at(operation))
}

fn fence_of(row: &SqliteRow) -> Result<Fence, sqlx::Error> {
    let holder = FenceHolder { term: term(row, "term")?, tenure_id: TenureId(id(row, "tenure_id")?) };
    Ok(Fence { holder, halt: halt_of(row)? })
}
