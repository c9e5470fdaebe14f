//! Whether a replica could lead on this file: what the fence relies on, looked at before anything relies on it.

use sqlx::Row;

use super::columns::time;
use super::error::at;
use super::lineage;
use super::migrate::SCHEMA;
use super::store::{SqliteStore, finish};
use super::tx::{Done, Tx, begin_once, read};
use super::within::{HEALTH, within};
use crate::store::{Health, StoreError};

const OPERATION: &str = "health";

/// The health check: bounded, and every reason against leading is an error.
pub(super) async fn health(store: &SqliteStore) -> Result<Health, StoreError> {
    within(OPERATION, HEALTH, async {
        let mut tx = match begin_once(&store.control, OPERATION).await? {
            Some(tx) => tx,
            // Somebody writes: so it can be written, and a long batch is no reason to call a store unfit.
            None => read(&store.control, OPERATION).await?,
        };
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
