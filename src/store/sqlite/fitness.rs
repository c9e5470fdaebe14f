//! Whether a replica could lead on this file: what the fence relies on, looked at before anything relies on it.

use sqlx::Row;

use super::columns::time;
use super::error::at;
use super::lineage;
use super::migrate::SCHEMA;
use super::store::{SqliteStore, finish};
use super::tx::{Done, Tx, read};
use super::within::{HEALTH, within};
use crate::store::{Health, StoreError};

const OPERATION: &str = "health";

/// The health check: bounded, and every reason against leading is an error. It takes no write lock: a long batch is no
/// reason to call a store unfit, and what cannot be written is told from the file's own modes and its first write.
pub(super) async fn health(store: &SqliteStore) -> Result<Health, StoreError> {
    within(OPERATION, HEALTH, async {
        writable(store)?;
        let mut tx = read(&store.control, OPERATION).await?;
        let looked = look(&mut tx).await;
        finish(tx, looked).await
    })
    .await
}

async fn look(tx: &mut Tx) -> Result<Done<Health>, StoreError> {
    let row = sqlx::query(include_str!("sql/health.sql")).fetch_one(tx.conn()).await.map_err(at(OPERATION))?;
    let schema: i64 = row.try_get("schema").map_err(at(OPERATION))?;
    if schema != SCHEMA {
        return Err(StoreError::Schema { found: schema, expected: SCHEMA });
    }
    let now = time(&row, "now").map_err(at(OPERATION))?;
    Ok(Done::RollBack(Health { now, lineage: lineage::read(tx.conn(), OPERATION).await? }))
}

/// Whether this user may write the file and the directory, where SQLite keeps the log.
fn writable(store: &SqliteStore) -> Result<(), StoreError> {
    let path = store.path();
    let place = path.parent().filter(|place| !place.as_os_str().is_empty());
    for (what, place) in [("file", Some(path)), ("directory", place)] {
        let Some(place) = place else { continue };
        // Asks by the right, opens nothing: closing a descriptor of the file would drop this process's locks on it.
        let modes = std::fs::metadata(place).map(|found| found.permissions().readonly());
        if matches!(modes, Ok(true)) {
            return Err(StoreError::ReadOnly {
                operation: OPERATION,
                detail: format!("the {what} {} may not be written: give this user the right to", place.display()),
            });
        }
    }
    Ok(())
}
