//! Operators and calls: a person's word on what came of one, and what its unit becomes by it.
//!
//! Invariants: the act holds the gate of the run's election shared and is stamped with the term found there; only a unit that is set
//! aside is touched; the act is written down in the transaction that does it.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::types::Json;

use super::acts::{self, Act};
use super::approvals::{self, Eyes};
use super::columns::{count, instruction_state, unit_state};
use super::error::at;
use super::payout_acts::gate;
use super::tx::Done;
use crate::domain::instruction::InstructionState;
use crate::domain::job::JobDefinition;
use crate::domain::unit::UnitState;
use crate::store::call_words::{NEVER_CALLED, call_ground, found_call};
use crate::store::{Actor, CallWord, GuardedAct, ResolveGround, ResolveOutcome, StoreError, resolve_call};

const OPERATION: &str = "resolve_call";

/// A unit that an operator acts on, locked, with its call where it was ever called.
struct Found {
    election: String,
    term: Option<i64>,
    unit: UnitState,
    call: Option<FoundCall>,
}

struct FoundCall {
    id: i64,
    key: String,
    state: InstructionState,
    ground: ResolveGround,
    /// In words.
    told: String,
}

impl FoundCall {
    fn read(row: &PgRow, unit: UnitState) -> Result<Option<Self>, sqlx::Error> {
        let Some(id) = row.try_get("id")? else { return Ok(None) };
        let (state, in_doubt) = (instruction_state(row, "state")?, row.try_get("in_doubt")?);
        let definition: Json<JobDefinition> = row.try_get("definition")?;
        let key: String = row.try_get("idempotency_key")?;
        let tries = u32::try_from(row.try_get::<i32, _>("attempts")?).unwrap_or(0);
        Ok(Some(Self {
            id,
            told: found_call(unit, (&key, tries), state, row.try_get("reason")?, in_doubt),
            key,
            state,
            ground: call_ground(&definition.0, in_doubt, row.try_get("first_sent_at")?, row.try_get("now")?),
        }))
    }
}

/// Locks a unit under the gate of its election.
async fn lock(connection: &mut PgConnection, run: i64, key: &str) -> Result<Option<Found>, StoreError> {
    let election: Option<String> = sqlx::query_scalar(include_str!("sql/election_of_run.sql"))
        .bind(run)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(election) = election else { return Ok(None) };
    let term = gate(&mut *connection, OPERATION, &election).await?;
    let row = sqlx::query(include_str!("sql/call_lock.sql"))
        .bind(run)
        .bind(key)
        .fetch_optional(connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(row) = row else { return Ok(None) };
    let unit = unit_state(&row, "unit_state").map_err(at(OPERATION))?;
    let call = FoundCall::read(&row, unit).map_err(at(OPERATION))?;
    Ok(Some(Found { election, term, unit, call }))
}

/// What a person's word on a call would find, locked; or why it is not taken.
pub(super) async fn look_at_call(
    connection: &mut PgConnection,
    run: i64,
    key: &str,
    word: &CallWord,
) -> Result<Result<String, String>, StoreError> {
    Ok(match lock(connection, run, key).await? {
        None => Err(format!("run {run} has no unit {key}")),
        Some(Found { call: None, .. }) => Err(NEVER_CALLED.to_owned()),
        Some(Found { unit, call: Some(call), .. }) => {
            resolve_call(unit, call.state, word, call.ground).map(|_| call.told)
        }
    })
}

/// Takes a person's word on what came of a unit's call, in an open transaction.
pub(super) async fn resolve(
    connection: &mut PgConnection,
    (run, unit_key): (i64, &str),
    word: &CallWord,
    reason: &str,
    actor: &Actor,
    eyes: Eyes,
) -> Result<Done<ResolveOutcome>, StoreError> {
    let Some(found) = lock(&mut *connection, run, unit_key).await? else {
        return Ok(Done::RollBack(ResolveOutcome::NotFound));
    };
    let Some(call) = found.call else {
        let (state, why) = (InstructionState::Pending, NEVER_CALLED.to_owned());
        return Ok(Done::RollBack(ResolveOutcome::Refused { state, why }));
    };
    let now = match resolve_call(found.unit, call.state, word, call.ground) {
        Ok(now) => now,
        Err(why) => return Ok(Done::RollBack(ResolveOutcome::Refused { state: call.state, why })),
    };
    if eyes == Eyes::One && approvals::are_on(&mut *connection, OPERATION).await? {
        let asks = GuardedAct::ResolveCall { run, unit: unit_key.to_owned(), key: call.key, word: word.clone() };
        let request = approvals::file(connection, OPERATION, &asks, &call.told, reason, actor).await?;
        return Ok(Done::Commit(ResolveOutcome::Waits { request }));
    }
    let unit = word.unit_becomes();
    let act = Act {
        action: "units resolve",
        target: &call.key,
        reason: Some(reason),
        election: Some(&found.election),
        term: found.term,
        details: Some(serde_json::json!({
            "run": run, "unit": unit_key, "was": call.state, "now": now, "unit_now": unit, "word": word,
        })),
    };
    let act = acts::write(&mut *connection, OPERATION, actor, act).await?;
    let row = sqlx::query(include_str!("sql/call_resolve.sql"))
        .bind(call.id)
        .bind(call.state.as_str())
        .bind(now.as_str())
        .bind(word.reference())
        .bind(act)
        .bind(found.term.unwrap_or(0))
        .bind(unit.as_str())
        .fetch_one(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let number = |column: &str| count(&row, column).map_err(at(OPERATION));
    if (number("told")?, number("units")?) != (1, 1) {
        let detail = format!("unit {unit_key} of run {run} is not as it was found: nothing is changed");
        return Err(StoreError::Broken { operation: OPERATION, detail });
    }
    // A statement of its own, after the unit as whoever retries units does it: what another word, or the run's end, commits
    // meanwhile is seen by the next one.
    sqlx::query(include_str!("sql/finish_lock.sql"))
        .bind(run)
        .bind(found.election.as_str())
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    sqlx::query(include_str!("sql/call_run.sql")).bind(run).execute(connection).await.map_err(at(OPERATION))?;
    Ok(Done::Commit(ResolveOutcome::Resolved { was: call.state, now }))
}
