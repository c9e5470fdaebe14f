//! Operators and calls: a person's word on what came of one, and what its unit becomes by it.
//!
//! Invariants: the file's write lock is held; the act is stamped with the term found; only a unit that is set aside is touched; the
//! act is written down in the transaction that does it.

use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::acts::{self, Act};
use super::columns::{instruction_state, json, maybe_time, time, unit_state};
use super::error::at;
use super::payout_acts::term_of;
use super::tx::{Done, raise};
use crate::domain::instruction::InstructionState;
use crate::domain::job::JobDefinition;
use crate::domain::unit::UnitState;
use crate::store::call_words::{NEVER_CALLED, call_ground};
use crate::store::{Actor, CallWord, ResolveGround, ResolveOutcome, StoreError, resolve_call};

const OPERATION: &str = "resolve_call";

/// A unit that an operator acts on, with its call where it was ever called.
struct Found {
    unit: i64,
    state: UnitState,
    call: Option<FoundCall>,
}

struct FoundCall {
    id: i64,
    key: String,
    state: InstructionState,
    ground: ResolveGround,
}

impl Found {
    fn read(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let call = match row.try_get::<Option<i64>, _>("id")? {
            None => None,
            Some(id) => {
                let definition: JobDefinition = json(row, "definition")?;
                let first_sent_at = maybe_time(row, "first_sent_at")?;
                let ground = call_ground(&definition, row.try_get("in_doubt")?, first_sent_at, time(row, "now")?);
                let (key, state) = (row.try_get("idempotency_key")?, instruction_state(row, "state")?);
                Some(FoundCall { id, key, state, ground })
            }
        };
        Ok(Self { unit: row.try_get("unit_id")?, state: unit_state(row, "unit_state")?, call })
    }
}

/// Takes a person's word on what came of a unit's call, in an open transaction.
pub(super) async fn resolve(
    connection: &mut SqliteConnection,
    (run, unit_key): (i64, &str),
    word: &CallWord,
    reason: &str,
    actor: &Actor,
) -> Result<Done<ResolveOutcome>, StoreError> {
    let election: Option<String> = sqlx::query_scalar(include_str!("sql/election_of_run.sql"))
        .bind(run)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(election) = election else { return Ok(Done::RollBack(ResolveOutcome::NotFound)) };
    let term = term_of(&mut *connection, OPERATION, &election).await?;
    let row = sqlx::query(include_str!("sql/call_lock.sql"))
        .bind(run)
        .bind(unit_key)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(row) = row else { return Ok(Done::RollBack(ResolveOutcome::NotFound)) };
    let found = Found::read(&row).map_err(at(OPERATION))?;
    let Some(call) = found.call else {
        let (state, why) = (InstructionState::Pending, NEVER_CALLED.to_owned());
        return Ok(Done::RollBack(ResolveOutcome::Refused { state, why }));
    };
    let now = match resolve_call(found.state, call.state, word, call.ground) {
        Ok(now) => now,
        Err(why) => return Ok(Done::RollBack(ResolveOutcome::Refused { state: call.state, why })),
    };
    let becomes = word.unit_becomes();
    let act = Act {
        action: "units resolve",
        target: &call.key,
        reason: Some(reason),
        election: Some(&election),
        term,
        details: Some(serde_json::json!({
            "run": run, "unit": unit_key, "was": call.state, "now": now, "unit_now": becomes, "word": word,
        })),
    };
    let act = acts::write(&mut *connection, OPERATION, actor, act).await?;
    raise(&mut *connection, OPERATION).await?;
    let told = sqlx::query(include_str!("sql/call_resolve.sql"))
        .bind(call.id)
        .bind(call.state.as_str())
        .bind(now.as_str())
        .bind(word.reference())
        .bind(act)
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?
        .rows_affected();
    let ended = end_unit(connection, (run, &election, term.unwrap_or(0)), found.unit, becomes).await;
    if (told, ended.map_err(at(OPERATION))?) != (1, 1) {
        let detail = format!("unit {unit_key} of run {run} is not as it was found: nothing is changed");
        return Err(StoreError::Broken { operation: OPERATION, detail });
    }
    Ok(Done::Commit(ResolveOutcome::Resolved { was: call.state, now }))
}

/// Ends a unit by a person's word, with the row of a batch, and its run where that was its last. Answers how many units.
async fn end_unit(
    connection: &mut SqliteConnection,
    (run, election, term): (i64, &str, i64),
    unit: i64,
    becomes: UnitState,
) -> Result<u64, sqlx::Error> {
    let batch: i64 = sqlx::query_scalar(include_str!("sql/batch_insert.sql"))
        .bind(run)
        .bind(election)
        .bind(term)
        .bind(1_i64)
        .bind(i64::from(becomes == UnitState::Settled))
        .bind(0_i64)
        .bind(i64::from(becomes == UnitState::Empty))
        .bind(0_i64)
        .bind(0_i64)
        .fetch_one(&mut *connection)
        .await?;
    let ended = sqlx::query(include_str!("sql/call_unit.sql"))
        .bind(unit)
        .bind(becomes.as_str())
        .bind(batch)
        .bind(term)
        .execute(&mut *connection)
        .await?
        .rows_affected();
    sqlx::query(include_str!("sql/call_run.sql")).bind(run).execute(connection).await?;
    Ok(ended)
}
