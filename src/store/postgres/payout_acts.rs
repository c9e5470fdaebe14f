//! Operators and payouts: lists, a person's word on what came of one, releases, receivers, merchants on hold.
//!
//! Invariants: an act on a payout holds the gate of its election shared and is stamped with the term found there; one on a
//! receiver or a merchant belongs to no election and holds every gate. Nothing that is on the wire is touched. Each act is
//! written down in the transaction that does it.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::acts::{self, Act};
use super::approvals::{self, Eyes};
use super::columns::{count, currency, instruction_state, small_count};
use super::error::at;
use super::tx::Done;
use crate::domain::instruction::InstructionState;
use crate::store::approvals::{found_payout, found_release};
use crate::store::bounds::LIST_ROWS;
use crate::store::payout_words::keys_left;
use crate::store::{
    Actor, GuardedAct, HoldReport, MerchantHold, PayoutFilter, PayoutView, ReceiverView, ReleaseOutcome, Resolution,
    ResolveGround, ResolveOutcome, StoreError, resolve,
};

/// Payouts, in the order of ids.
pub(super) async fn payouts(
    connection: &mut PgConnection,
    filter: &PayoutFilter,
) -> Result<Vec<PayoutView>, StoreError> {
    let operation = "payouts";
    let rows = sqlx::query(include_str!("sql/payouts.sql"))
        .bind(filter.run)
        .bind(filter.state.map(InstructionState::as_str))
        .bind(filter.merchant.as_deref())
        .bind(filter.key.as_deref())
        .bind(filter.above)
        .bind(i64::from(filter.limit.clamp(1, LIST_ROWS)))
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    rows.iter().map(view).collect::<Result<_, _>>().map_err(at(operation))
}

fn view(row: &PgRow) -> Result<PayoutView, sqlx::Error> {
    let currency = currency(row, "currency")?;
    let body: Vec<u8> = row.try_get("body")?;
    Ok(PayoutView {
        id: row.try_get("id")?,
        key: row.try_get("idempotency_key")?,
        run: row.try_get("run_id")?,
        job: row.try_get("job")?,
        election: row.try_get("election")?,
        merchant: row.try_get("merchant")?,
        amount: currency.format(row.try_get::<i64, _>("amount")?),
        currency: currency.code().to_owned(),
        value_date: row.try_get("value_date")?,
        state: instruction_state(row, "state")?,
        reason: row.try_get("reason")?,
        release: row.try_get("release")?,
        attempts: small_count(row, "attempts")?,
        in_doubt: row.try_get("in_doubt")?,
        first_sent_at: row.try_get("first_sent_at")?,
        key_valid_until: row.try_get("key_valid_until")?,
        next_attempt_at: row.try_get("next_attempt_at")?,
        receiver: row.try_get("receiver")?,
        reference: row.try_get("external_reference")?,
        return_reference: row.try_get("return_reference")?,
        last_error: row.try_get("last_error")?,
        term: row.try_get("term")?,
        created_at: row.try_get("created_at")?,
        final_at: row.try_get("final_at")?,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

/// Takes the gate of an election shared and answers the term in force behind it.
pub(super) async fn gate(
    connection: &mut PgConnection,
    operation: &'static str,
    election: &str,
) -> Result<Option<i64>, StoreError> {
    sqlx::query(include_str!("sql/act_gate.sql"))
        .bind(election)
        .execute(&mut *connection)
        .await
        .map_err(at(operation))?;
    sqlx::query_scalar(include_str!("sql/act_term.sql"))
        .bind(election)
        .fetch_optional(connection)
        .await
        .map_err(at(operation))
}

/// Takes every gate shared.
async fn every_gate(connection: &mut PgConnection, operation: &'static str) -> Result<(), StoreError> {
    sqlx::query(include_str!("sql/revert_gates.sql")).execute(connection).await.map(|_| ()).map_err(at(operation))
}

/// A payout that an operator acts on, locked.
struct Found {
    id: i64,
    state: InstructionState,
    ground: ResolveGround,
    /// In words.
    told: String,
}

impl Found {
    fn read(row: &PgRow, word: &Resolution) -> Result<Self, sqlx::Error> {
        let state = instruction_state(row, "state")?;
        let tries = u32::try_from(row.try_get::<i32, _>("attempts")?).unwrap_or(0);
        Ok(Self {
            id: row.try_get("id")?,
            state,
            told: found_payout(state, row.try_get("reason")?, tries, row.try_get("in_doubt")?, word),
            ground: ResolveGround {
                never_sent: row.try_get("never_sent")?,
                expired: row.try_get("expired")?,
                key_valid_until: row.try_get("key_valid_until")?,
            },
        })
    }
}

/// Locks a payout under the gate of its election; answers that, the term in force and what is found.
async fn lock_payout(
    connection: &mut PgConnection,
    key: &str,
    word: &Resolution,
) -> Result<Option<(String, Option<i64>, Found)>, StoreError> {
    const OPERATION: &str = "resolve_payout";
    let election: Option<String> = sqlx::query_scalar(include_str!("sql/act_election_of_payout.sql"))
        .bind(key)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(election) = election else { return Ok(None) };
    let term = gate(&mut *connection, OPERATION, &election).await?;
    let row = sqlx::query(include_str!("sql/payout_lock.sql"))
        .bind(key)
        .fetch_one(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let found = Found::read(&row, word).map_err(at(OPERATION))?;
    Ok(Some((election, term, found)))
}

/// What a person's word on a payout would find, locked; or why it is not taken.
pub(super) async fn look_at_payout(
    connection: &mut PgConnection,
    key: &str,
    resolution: &Resolution,
) -> Result<Result<String, String>, StoreError> {
    let Some((_, _, found)) = lock_payout(connection, key, resolution).await? else {
        return Ok(Err(format!("there is no payout {key}")));
    };
    Ok(resolve(found.state, resolution, found.ground).map(|_| found.told))
}

/// Takes a person's word on what came of a payout, in an open transaction.
pub(super) async fn resolve_payout(
    connection: &mut PgConnection,
    key: &str,
    resolution: &Resolution,
    reason: &str,
    actor: &Actor,
    eyes: Eyes,
) -> Result<Done<ResolveOutcome>, StoreError> {
    const OPERATION: &str = "resolve_payout";
    let Some((election, term, found)) = lock_payout(&mut *connection, key, resolution).await? else {
        return Ok(Done::RollBack(ResolveOutcome::NotFound));
    };
    let now = match resolve(found.state, resolution, found.ground) {
        Ok(now) => now,
        Err(why) => return Ok(Done::RollBack(ResolveOutcome::Refused { state: found.state, why })),
    };
    if eyes == Eyes::One && approvals::are_on(&mut *connection, OPERATION).await? {
        let asks = GuardedAct::ResolvePayout { key: key.to_owned(), resolution: resolution.clone() };
        let request = approvals::file(connection, OPERATION, &asks, &found.told, reason, actor).await?;
        return Ok(Done::Commit(ResolveOutcome::Waits { request }));
    }
    let act = Act {
        action: "payouts resolve",
        target: key,
        reason: Some(reason),
        election: Some(&election),
        term,
        details: Some(serde_json::json!({ "was": found.state, "now": now, "word": resolution })),
    };
    let act = acts::write(&mut *connection, OPERATION, actor, act).await?;
    let reference = match resolution {
        Resolution::Paid(reference) | Resolution::Returned(reference) => Some(reference.as_str()),
        Resolution::NotPaid { bank_confirmed } => bank_confirmed.as_deref(),
    };
    let row = sqlx::query(include_str!("sql/payout_resolve.sql"))
        .bind(found.id)
        .bind(found.state.as_str())
        .bind(now.as_str())
        .bind(reference)
        .bind(act)
        .bind(term.unwrap_or(0))
        .fetch_one(connection)
        .await
        .map_err(at(OPERATION))?;
    let number = |column: &str| count(&row, column).map_err(at(OPERATION));
    let carries = u64::from(now != InstructionState::Paid);
    if (number("told")?, number("postings")?, number("carries")?) != (1, 1, carries) {
        let detail = format!("payout {key} is not as it was found: nothing is changed");
        return Err(StoreError::Broken { operation: OPERATION, detail });
    }
    Ok(Done::Commit(ResolveOutcome::Resolved { was: found.state, now }))
}

/// Locks what a release would let go, under the gate of its election; answers what is found in words, and the keys.
pub(super) async fn look_at_release(
    connection: &mut PgConnection,
    run: i64,
    keys: &[String],
) -> Result<Result<(String, Vec<String>), String>, StoreError> {
    const OPERATION: &str = "release_payouts";
    let election: Option<String> = sqlx::query_scalar(include_str!("sql/election_of_run.sql"))
        .bind(run)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(election) = election else { return Ok(Err(format!("there is no run {run}"))) };
    gate(&mut *connection, OPERATION, &election).await?;
    let keys: Vec<String> = sqlx::query_scalar(include_str!("sql/payouts_release_keys.sql"))
        .bind(run)
        .bind(keys)
        .fetch_all(connection)
        .await
        .map_err(at(OPERATION))?;
    Ok(Ok((found_release(keys.iter().map(String::as_str)), keys)))
}

/// Files the release of payouts of a run for another role, where there is anything to release.
async fn ask_to_release(
    connection: &mut PgConnection,
    run: i64,
    keys: &[String],
    reason: &str,
    actor: &Actor,
) -> Result<Done<ReleaseOutcome>, StoreError> {
    match look_at_release(&mut *connection, run, keys).await? {
        Err(_) => Ok(Done::RollBack(ReleaseOutcome::NotFound)),
        Ok((_, released)) if !keys_left(keys, &released).is_empty() => {
            Ok(Done::RollBack(ReleaseOutcome::Unmatched { keys: keys_left(keys, &released) }))
        }
        Ok((_, released)) if released.is_empty() => Ok(Done::RollBack(ReleaseOutcome::Released { payouts: 0 })),
        Ok((found, _)) => {
            let asks = GuardedAct::ReleasePayouts { run, keys: keys.to_vec() };
            let request = approvals::file(connection, "release_payouts", &asks, &found, reason, actor).await?;
            Ok(Done::Commit(ReleaseOutcome::Waits { request }))
        }
    }
}

/// Releases payouts of a run, in an open transaction.
pub(super) async fn release_payouts(
    connection: &mut PgConnection,
    run: i64,
    keys: &[String],
    reason: &str,
    actor: &Actor,
    eyes: Eyes,
) -> Result<Done<ReleaseOutcome>, StoreError> {
    const OPERATION: &str = "release_payouts";
    let election: Option<String> = sqlx::query_scalar(include_str!("sql/election_of_run.sql"))
        .bind(run)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(election) = election else { return Ok(Done::RollBack(ReleaseOutcome::NotFound)) };
    if eyes == Eyes::One && approvals::are_on(&mut *connection, OPERATION).await? {
        return ask_to_release(connection, run, keys, reason, actor).await;
    }
    let term = gate(&mut *connection, OPERATION, &election).await?;
    let released: Vec<String> = sqlx::query_scalar(include_str!("sql/payouts_release.sql"))
        .bind(run)
        .bind(keys)
        .fetch_all(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let left = keys_left(keys, &released);
    if !left.is_empty() {
        return Ok(Done::RollBack(ReleaseOutcome::Unmatched { keys: left }));
    }
    let payouts = released.len() as u64;
    let target = run.to_string();
    let act = Act {
        action: "payouts release",
        target: &target,
        reason: Some(reason),
        election: Some(&election),
        term,
        details: Some(serde_json::json!({ "keys": keys, "payouts": payouts })),
    };
    acts::write(connection, OPERATION, actor, act).await?;
    Ok(Done::Commit(ReleaseOutcome::Released { payouts }))
}

/// Receivers that are stopped, or refused the last of what they were sent.
pub(super) async fn receivers(connection: &mut PgConnection) -> Result<Vec<ReceiverView>, StoreError> {
    let operation = "receivers";
    let rows = sqlx::query(include_str!("sql/receivers.sql")).fetch_all(connection).await.map_err(at(operation))?;
    let read = |row: &PgRow| {
        Ok(ReceiverView {
            origin: row.try_get("origin")?,
            stopped_at: row.try_get("stopped_at")?,
            reason: row.try_get("reason")?,
            detail: row.try_get("detail")?,
            refusals: small_count(row, "refusals")?,
            needs_resume: row.try_get("needs_resume")?,
            next_probe_at: row.try_get("next_probe_at")?,
            term: row.try_get("term")?,
        })
    };
    rows.iter().map(read).collect::<Result<_, sqlx::Error>>().map_err(at(operation))
}

/// Ends a receiver's stop, in an open transaction. Answers whether there was one.
pub(super) async fn resume_receiver(
    connection: &mut PgConnection,
    origin: &str,
    reason: &str,
    actor: &Actor,
) -> Result<Done<bool>, StoreError> {
    const OPERATION: &str = "resume_receiver";
    every_gate(&mut *connection, OPERATION).await?;
    let resumed = sqlx::query(include_str!("sql/receiver_resume.sql"))
        .bind(origin)
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    if resumed.rows_affected() == 0 {
        return Ok(Done::RollBack(false));
    }
    act_on_none(connection, OPERATION, actor, ("receivers resume", origin, reason), None).await?;
    Ok(Done::Commit(true))
}

/// Puts a merchant on hold, in an open transaction.
pub(super) async fn hold_merchant(
    connection: &mut PgConnection,
    merchant: &str,
    reason: &str,
    actor: &Actor,
) -> Result<Done<HoldReport>, StoreError> {
    const OPERATION: &str = "hold_merchant";
    every_gate(&mut *connection, OPERATION).await?;
    let act = act_on_none(&mut *connection, OPERATION, actor, ("merchant hold", merchant, reason), None).await?;
    let added = sqlx::query(include_str!("sql/merchant_hold.sql"))
        .bind(merchant)
        .bind(reason)
        .bind(act)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let held = sqlx::query(include_str!("sql/merchant_hold_payouts.sql"))
        .bind(merchant)
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?
        .rows_affected();
    let row = sqlx::query(include_str!("sql/merchant_on_the_wire.sql"))
        .bind(merchant)
        .fetch_one(connection)
        .await
        .map_err(at(OPERATION))?;
    let on_the_wire = count(&row, "on_the_wire").map_err(at(OPERATION))?;
    Ok(Done::Commit(HoldReport { already: added.is_none(), held, on_the_wire }))
}

/// Ends a merchant's hold, in an open transaction.
pub(super) async fn release_merchant(
    connection: &mut PgConnection,
    merchant: &str,
    reason: &str,
    actor: &Actor,
) -> Result<Done<Option<u64>>, StoreError> {
    const OPERATION: &str = "release_merchant";
    every_gate(&mut *connection, OPERATION).await?;
    let gone = sqlx::query(include_str!("sql/merchant_release.sql"))
        .bind(merchant)
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    if gone.rows_affected() == 0 {
        return Ok(Done::RollBack(None));
    }
    let freed = sqlx::query(include_str!("sql/merchant_free_payouts.sql"))
        .bind(merchant)
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?
        .rows_affected();
    let details = serde_json::json!({ "payouts": freed });
    act_on_none(connection, OPERATION, actor, ("merchant release", merchant, reason), Some(details)).await?;
    Ok(Done::Commit(Some(freed)))
}

/// Merchants on hold.
pub(super) async fn merchant_holds(connection: &mut PgConnection) -> Result<Vec<MerchantHold>, StoreError> {
    let operation = "merchant_holds";
    let rows =
        sqlx::query(include_str!("sql/merchant_holds.sql")).fetch_all(connection).await.map_err(at(operation))?;
    let read = |row: &PgRow| {
        Ok(MerchantHold {
            merchant: row.try_get("merchant")?,
            reason: row.try_get("reason")?,
            held_at: row.try_get("held_at")?,
            by: row.try_get("by")?,
        })
    };
    rows.iter().map(read).collect::<Result<_, sqlx::Error>>().map_err(at(operation))
}

/// Writes down an act on what belongs to no election. Answers its id.
async fn act_on_none(
    connection: &mut PgConnection,
    operation: &'static str,
    actor: &Actor,
    (action, target, reason): (&'static str, &str, &str),
    details: Option<serde_json::Value>,
) -> Result<i64, StoreError> {
    let act = Act { action, target, reason: Some(reason), election: None, term: None, details };
    acts::write(connection, operation, actor, act).await
}
