//! Whether a replica could lead on this database: what the fence relies on, looked at before anything relies on it.

use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::error::{at, is_lost};
use super::lineage;
use super::migrate::SCHEMA;
use super::sessions::Held;
use super::store::PgStore;
use super::within::{HEALTH, within};
use crate::store::{Health, StoreError};

const OPERATION: &str = "health";

/// What is said of a pooler that hands out another server session per transaction.
pub(super) const POOLER: &str = "transactions of one connection run in different server sessions: a pooler in transaction \
     mode stands in between, so that sessions can be neither limited nor ended; connect to PostgreSQL directly, or set the \
     pooler to session mode";

/// What is known of the way to the database.
#[derive(Debug, Default)]
pub(super) struct Fitness {
    /// The control pool's count of opened sessions at which the way was last found to be direct.
    direct_at: AtomicU64,
}

/// The health check: bounded, and every reason against leading is an error.
pub(super) async fn health(store: &PgStore) -> Result<Health, StoreError> {
    within(OPERATION, HEALTH, async {
        let mut held = store.control.acquire(OPERATION).await?;
        let checked = check(store, &mut held).await;
        match &checked {
            Err(error) if is_lost(error) => drop(held),
            Ok(_) | Err(_) => held.give_back(),
        }
        checked
    })
    .await
}

async fn check(store: &PgStore, held: &mut Held) -> Result<Health, StoreError> {
    let opened = store.control.opened();
    if store.fitness.direct_at.load(Ordering::SeqCst) != opened {
        no_pooler(store, held).await?;
        store.fitness.direct_at.store(opened, Ordering::SeqCst);
    }
    look(held.connection()).await
}

async fn look(connection: &mut PgConnection) -> Result<Health, StoreError> {
    let row = sqlx::query(include_str!("sql/health.sql")).fetch_one(&mut *connection).await.map_err(at(OPERATION))?;
    let found = Found::read(&row).map_err(at(OPERATION))?;
    if found.in_recovery {
        return Err(StoreError::ReadOnly {
            operation: OPERATION,
            detail: "it is a standby, not the primary".to_owned(),
        });
    }
    if found.read_only {
        return Err(StoreError::ReadOnly {
            operation: OPERATION,
            detail: "default_transaction_read_only is on".to_owned(),
        });
    }
    if !found.migrated {
        return Err(StoreError::Schema { found: 0, expected: SCHEMA });
    }
    let schema: i64 = sqlx::query_scalar(include_str!("sql/schema_version.sql"))
        .fetch_one(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    if schema != SCHEMA {
        return Err(StoreError::Schema { found: schema, expected: SCHEMA });
    }
    let strangers: Vec<String> = sqlx::query_scalar(include_str!("sql/peers_out_of_reach.sql"))
        .fetch_all(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    if !strangers.is_empty() {
        return Err(StoreError::Unfit {
            detail: format!(
                "role {} may not end the sessions of {}, which led before: use the same role for all replicas, or grant \
                 pg_signal_backend",
                found.role,
                strangers.join(", ")
            ),
        });
    }
    Ok(Health { now: found.now, lineage: lineage::read(connection, OPERATION).await? })
}

struct Found {
    now: DateTime<Utc>,
    in_recovery: bool,
    read_only: bool,
    migrated: bool,
    role: String,
}

impl Found {
    fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            now: row.try_get("now")?,
            in_recovery: row.try_get("in_recovery")?,
            read_only: row.try_get("read_only")?,
            migrated: row.try_get("migrated")?,
            role: row.try_get("role")?,
        })
    }
}

/// Marks three connections, one after the other, and reads the marks in the reverse order, in the simple protocol: behind
/// a pooler that lends server sessions per transaction at least one of them finds another's mark or none, whether it lends
/// the last one used or each in turn.
async fn no_pooler(store: &PgStore, first: &mut Held) -> Result<(), StoreError> {
    let mut second = store.command_session(OPERATION).await?;
    let mut third = store.command_session(OPERATION).await?;
    let mut marks = Vec::new();
    for held in [&mut *first, &mut second, &mut third] {
        marks.push(mark(held, include_str!("sql/mark_session.sql")).await?);
    }
    let mut own = true;
    for (held, mark_set) in [&mut third, &mut second, first].into_iter().zip(marks.iter().rev()) {
        own &= mark(held, include_str!("sql/read_mark.sql")).await? == *mark_set;
    }
    second.close(OPERATION).await;
    third.close(OPERATION).await;
    if own { Ok(()) } else { Err(StoreError::Unfit { detail: POOLER.to_owned() }) }
}

async fn mark(held: &mut Held, statement: &'static str) -> Result<Option<String>, StoreError> {
    let row = sqlx::raw_sql(statement).fetch_one(held.connection()).await.map_err(at(OPERATION))?;
    row.try_get("mark").map_err(at(OPERATION))
}
