//! The kill switch. Halting and resuming take an election's exclusive lock, each in a transaction of its own: once it has
//! committed, every transaction that began before has ended and every later one finds the halt.
//!
//! Nobody is ended for it: batches under way commit, and the wait for them is bounded and reported.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::postgres::PgConnection;
use sqlx::types::Json;

use super::acts::{self, Act};
use super::error::at;
use super::fence;
use super::lineage;
use super::store::{PgStore, finish};
use super::tx::Done;
use super::within::{CONTROL, within};
use crate::domain::ElectionName;
use crate::store::{Actor, HaltReport, Lineage, StoreError};

/// The longest wait for the transactions under way.
const WAIT: Duration = Duration::from_mins(1);

/// The user by which bursar halts by itself.
const ITSELF: &str = "bursar";

/// What is done to elections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    /// Halt.
    Halt,
    /// Resume.
    Resume,
}

impl Switch {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Halt => "halt",
            Self::Resume => "resume",
        }
    }

    const fn statement(self) -> &'static str {
        match self {
            Self::Halt => include_str!("sql/halt.sql"),
            Self::Resume => include_str!("sql/resume.sql"),
        }
    }
}

/// Switches an election.
pub(super) async fn switch(
    store: &PgStore,
    switch: Switch,
    election: &ElectionName,
    reason: &str,
    actor: &Actor,
) -> Result<HaltReport, StoreError> {
    let operation = switch.as_str();
    let mut tx = store.command_tx(operation).await?;
    let worked = within(operation, WAIT + CONTROL, one(tx.conn(), switch, election, reason, actor)).await;
    finish(tx, worked).await
}

async fn one(
    connection: &mut PgConnection,
    switch: Switch,
    election: &ElectionName,
    reason: &str,
    actor: &Actor,
) -> Result<Done<HaltReport>, StoreError> {
    let operation = switch.as_str();
    fence::lock_exclusive(connection, operation, election.as_str(), WAIT).await?;
    let by = format!("{}@{}", actor.user, actor.host);
    let query = sqlx::query_scalar(switch.statement()).bind(election.as_str());
    let query = match switch {
        Switch::Halt => query.bind(reason).bind(by.as_str()).bind(actor.user == ITSELF),
        Switch::Resume => query,
    };
    // The term found, where the switch was turned; nothing where it stood that way already.
    let turned: Option<i64> = query.fetch_optional(&mut *connection).await.map_err(at(operation))?;
    let row = sqlx::query(include_str!("sql/on_the_wire.sql"))
        .bind(election.as_str())
        .fetch_one(&mut *connection)
        .await
        .map_err(at(operation))?;
    let on_the_wire: i64 = row.try_get("on_the_wire").map_err(at(operation))?;
    let waited_ms: i64 = row.try_get("waited_ms").map_err(at(operation))?;
    let term: Option<i64> = row.try_get("term").map_err(at(operation))?;
    let mut details = serde_json::json!({ "already": turned.is_none(), "on_the_wire": on_the_wire });
    match switch {
        Switch::Halt => {}
        // What the operator accepts by resuming: the next leader compares with it (see `resumed_baseline`).
        Switch::Resume => {
            let lineage = lineage::read(&mut *connection, operation).await?;
            let holder = fence::read(&mut *connection, operation, election).await?.map(|fence| fence.holder);
            details["lineage"] = serde_json::json!(lineage);
            details["fence"] = serde_json::json!(holder);
        }
    }
    acts::write(
        connection,
        operation,
        actor,
        Act {
            action: operation,
            target: election.as_str(),
            reason: Some(reason),
            election: Some(election.as_str()),
            term,
            details: Some(details),
        },
    )
    .await?;
    Ok(Done::Commit(HaltReport {
        election: election.clone(),
        already: turned.is_none(),
        on_the_wire: u64::try_from(on_the_wire).unwrap_or(0),
        waited_ms: u64::try_from(waited_ms).unwrap_or(0),
    }))
}

/// Where the store stood when an operator last took a halt of the election back, and when; `None` where nobody did.
pub(super) async fn resumed_baseline(
    connection: &mut PgConnection,
    election: &ElectionName,
) -> Result<Option<(Lineage, DateTime<Utc>)>, StoreError> {
    let operation = "resumed_baseline";
    let row = sqlx::query(include_str!("sql/resumed_baseline.sql"))
        .bind(election.as_str())
        .fetch_optional(connection)
        .await
        .map_err(at(operation))?;
    let Some(row) = row else { return Ok(None) };
    let lineage: Json<Lineage> = row.try_get("lineage").map_err(at(operation))?;
    Ok(Some((lineage.0, row.try_get("at").map_err(at(operation))?)))
}

/// The elections that the store knows, in the order of their names.
pub(super) async fn elections(connection: &mut PgConnection) -> Result<Vec<ElectionName>, StoreError> {
    let operation = "elections";
    let names: Vec<String> =
        sqlx::query_scalar(include_str!("sql/elections.sql")).fetch_all(connection).await.map_err(at(operation))?;
    let election =
        |name| ElectionName::new(name).map_err(|error| StoreError::Broken { operation, detail: error.to_string() });
    names.into_iter().map(election).collect()
}
