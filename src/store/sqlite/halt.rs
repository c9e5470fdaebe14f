//! The kill switch. Halting and resuming are transactions of their own under the file's write lock: once one has committed,
//! every transaction that wrote before has ended and every later one finds the halt.
//!
//! Nobody is ended for it: batches under way commit, and the wait for them is bounded and reported.

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::acts::{self, Act};
use super::columns::{count, json, time};
use super::error::at;
use super::fence;
use super::lineage;
use super::store::{SqliteStore, finish};
use super::tx::{self, Done};
use super::within::{CONTROL, within};
use crate::clock;
use crate::domain::ElectionName;
use crate::store::{Actor, HaltReport, Lineage, StoreError};

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
}

/// Switches an election.
pub(super) async fn switch(
    store: &SqliteStore,
    switch: Switch,
    election: &ElectionName,
    reason: &str,
    actor: &Actor,
) -> Result<HaltReport, StoreError> {
    let operation = switch.as_str();
    let asked = clock::boottime();
    let mut tx = store.command_tx(operation).await?;
    let waited = clock::boottime().since(asked);
    let worked = within(operation, CONTROL, one(tx.conn(), switch, election, reason, actor)).await;
    let report = finish(tx, worked).await?;
    Ok(HaltReport { waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX), ..report })
}

async fn one(
    connection: &mut SqliteConnection,
    switch: Switch,
    election: &ElectionName,
    reason: &str,
    actor: &Actor,
) -> Result<Done<HaltReport>, StoreError> {
    let operation = switch.as_str();
    let by = format!("{}@{}", actor.user, actor.host);
    let turned = match switch {
        Switch::Halt => halt(connection, election, reason, &by, actor.user == ITSELF).await,
        Switch::Resume => sqlx::query(include_str!("sql/resume.sql"))
            .bind(election.as_str())
            .execute(&mut *connection)
            .await
            .map(|resumed| resumed.rows_affected() == 1),
    }
    .map_err(at(operation))?;
    if turned {
        tx::raise(connection, operation).await?;
    }
    let row = sqlx::query(include_str!("sql/on_the_wire.sql"))
        .bind(election.as_str())
        .fetch_one(&mut *connection)
        .await
        .map_err(at(operation))?;
    let on_the_wire = count(&row, "on_the_wire").map_err(at(operation))?;
    let term: Option<i64> = row.try_get("term").map_err(at(operation))?;
    let mut details = serde_json::json!({ "already": !turned, "on_the_wire": on_the_wire });
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
    let act = Act {
        action: operation,
        target: election.as_str(),
        reason: Some(reason),
        election: Some(election.as_str()),
        term,
        details: Some(details),
    };
    acts::write(connection, operation, actor, act).await?;
    Ok(Done::Commit(HaltReport { election: election.clone(), already: !turned, on_the_wire, waited_ms: 0 }))
}

/// Halts, also an election that nobody ever led. Answers whether anything changed.
async fn halt(
    connection: &mut SqliteConnection,
    election: &ElectionName,
    reason: &str,
    by: &str,
    by_itself: bool,
) -> Result<bool, sqlx::Error> {
    let halted = sqlx::query(include_str!("sql/halt.sql"))
        .bind(election.as_str())
        .bind(reason)
        .bind(by)
        .bind(by_itself)
        .execute(&mut *connection)
        .await?;
    let first = sqlx::query(include_str!("sql/halt_first.sql"))
        .bind(election.as_str())
        .bind(reason)
        .bind(by)
        .execute(connection)
        .await?;
    Ok(halted.rows_affected() + first.rows_affected() > 0)
}

/// Where the store stood when an operator last took a halt of the election back, and when; `None` where nobody did.
pub(super) async fn resumed_baseline(
    connection: &mut SqliteConnection,
    election: &ElectionName,
) -> Result<Option<(Lineage, DateTime<Utc>)>, StoreError> {
    let operation = "resumed_baseline";
    let row = sqlx::query(include_str!("sql/resumed_baseline.sql"))
        .bind(election.as_str())
        .fetch_optional(connection)
        .await
        .map_err(at(operation))?;
    let Some(row) = row else { return Ok(None) };
    let lineage: Lineage = json(&row, "lineage").map_err(at(operation))?;
    Ok(Some((lineage, time(&row, "at").map_err(at(operation))?)))
}

/// The elections that the store knows, in the order of their names.
pub(super) async fn elections(connection: &mut SqliteConnection) -> Result<Vec<ElectionName>, StoreError> {
    let operation = "elections";
    let names: Vec<String> =
        sqlx::query_scalar(include_str!("sql/elections.sql")).fetch_all(connection).await.map_err(at(operation))?;
    let election =
        |name| ElectionName::new(name).map_err(|error| StoreError::Broken { operation, detail: error.to_string() });
    names.into_iter().map(election).collect()
}
