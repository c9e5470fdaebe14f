//! Operators and payouts: lists, a person's word on what came of one, releases, receivers, merchants on hold.
//!
//! Invariants: the file's write lock is held, so that nobody advances, halts or settles meanwhile; an act on a payout is
//! stamped with the term found there. Nothing that is on the wire is touched. Each act is written down in the transaction
//! that does it.

use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::acts::{self, Act};
use super::columns::{count, currency, date, instruction_state, json_text, maybe_time, small_count, time};
use super::error::at;
use super::payout_records::post;
use super::tx::{Done, raise};
use crate::domain::instruction::InstructionState;
use crate::store::bounds::LIST_ROWS;
use crate::store::payout_words::keys_left;
use crate::store::{
    Actor, HoldReport, MerchantHold, PayoutFilter, PayoutView, ReceiverView, ReleaseOutcome, Resolution, ResolveGround,
    ResolveOutcome, StoreError, resolve,
};

/// Payouts, in the order of ids.
pub(super) async fn payouts(
    connection: &mut SqliteConnection,
    filter: &PayoutFilter,
) -> Result<Vec<PayoutView>, StoreError> {
    let operation = "payouts";
    let query = match (filter.run, filter.state) {
        (None, Some(state)) if !state.is_final() => include_str!("sql/payouts_unfinished.sql"),
        (_, Some(_) | None) => include_str!("sql/payouts.sql"),
    };
    let rows = sqlx::query(query)
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

fn view(row: &SqliteRow) -> Result<PayoutView, sqlx::Error> {
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
        value_date: row.try_get::<Option<&str>, _>("value_date")?.map(|_| date(row, "value_date")).transpose()?,
        state: instruction_state(row, "state")?,
        reason: row.try_get("reason")?,
        release: row.try_get("release")?,
        attempts: small_count(row, "attempts")?,
        in_doubt: row.try_get("in_doubt")?,
        first_sent_at: maybe_time(row, "first_sent_at")?,
        key_valid_until: maybe_time(row, "key_valid_until")?,
        next_attempt_at: maybe_time(row, "next_attempt_at")?,
        receiver: row.try_get("receiver")?,
        reference: row.try_get("external_reference")?,
        return_reference: row.try_get("return_reference")?,
        last_error: row.try_get("last_error")?,
        term: row.try_get("term")?,
        created_at: time(row, "created_at")?,
        final_at: maybe_time(row, "final_at")?,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

/// The term in force of an election.
pub(super) async fn term_of(
    connection: &mut SqliteConnection,
    operation: &'static str,
    election: &str,
) -> Result<Option<i64>, StoreError> {
    sqlx::query_scalar(include_str!("sql/act_term.sql"))
        .bind(election)
        .fetch_optional(connection)
        .await
        .map_err(at(operation))
}

/// A payout that an operator acts on.
struct Found {
    id: i64,
    state: InstructionState,
    ground: ResolveGround,
}

impl Found {
    fn read(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            state: instruction_state(row, "state")?,
            ground: ResolveGround {
                never_sent: row.try_get("never_sent")?,
                expired: row.try_get("expired")?,
                key_valid_until: maybe_time(row, "key_valid_until")?,
            },
        })
    }
}

/// Takes a person's word on what came of a payout, in an open transaction.
pub(super) async fn resolve_payout(
    connection: &mut SqliteConnection,
    key: &str,
    resolution: &Resolution,
    reason: &str,
    actor: &Actor,
) -> Result<Done<ResolveOutcome>, StoreError> {
    const OPERATION: &str = "resolve_payout";
    let election: Option<String> = sqlx::query_scalar(include_str!("sql/act_election_of_payout.sql"))
        .bind(key)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(election) = election else { return Ok(Done::RollBack(ResolveOutcome::NotFound)) };
    let term = term_of(&mut *connection, OPERATION, &election).await?;
    let row = sqlx::query(include_str!("sql/payout_lock.sql"))
        .bind(key)
        .fetch_one(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let found = Found::read(&row).map_err(at(OPERATION))?;
    let now = match resolve(found.state, resolution, found.ground) {
        Ok(now) => now,
        Err(why) => return Ok(Done::RollBack(ResolveOutcome::Refused { state: found.state, why })),
    };
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
    raise(&mut *connection, OPERATION).await?;
    let told = sqlx::query(include_str!("sql/payout_resolve.sql"))
        .bind(found.id)
        .bind(found.state.as_str())
        .bind(now.as_str())
        .bind(reference)
        .bind(act)
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    if told.rows_affected() != 1 {
        let detail = format!("payout {key} is not as it was found: nothing is changed");
        return Err(StoreError::Broken { operation: OPERATION, detail });
    }
    post(connection, OPERATION, now, term.unwrap_or(0), &[found.id]).await?;
    Ok(Done::Commit(ResolveOutcome::Resolved { was: found.state, now }))
}

/// Releases payouts of a run, in an open transaction.
pub(super) async fn release_payouts(
    connection: &mut SqliteConnection,
    run: i64,
    keys: &[String],
    reason: &str,
    actor: &Actor,
) -> Result<Done<ReleaseOutcome>, StoreError> {
    const OPERATION: &str = "release_payouts";
    let election: Option<String> = sqlx::query_scalar(include_str!("sql/election_of_run.sql"))
        .bind(run)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(election) = election else { return Ok(Done::RollBack(ReleaseOutcome::NotFound)) };
    let term = term_of(&mut *connection, OPERATION, &election).await?;
    let released: Vec<String> = sqlx::query_scalar(include_str!("sql/payouts_release.sql"))
        .bind(run)
        .bind(json_text(keys).map_err(at(OPERATION))?)
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
pub(super) async fn receivers(connection: &mut SqliteConnection) -> Result<Vec<ReceiverView>, StoreError> {
    let operation = "receivers";
    let rows = sqlx::query(include_str!("sql/receivers.sql")).fetch_all(connection).await.map_err(at(operation))?;
    let read = |row: &SqliteRow| {
        Ok(ReceiverView {
            origin: row.try_get("origin")?,
            stopped_at: maybe_time(row, "stopped_at")?,
            reason: row.try_get("reason")?,
            detail: row.try_get("detail")?,
            refusals: small_count(row, "refusals")?,
            needs_resume: row.try_get("needs_resume")?,
            next_probe_at: maybe_time(row, "next_probe_at")?,
            term: row.try_get("term")?,
        })
    };
    rows.iter().map(read).collect::<Result<_, sqlx::Error>>().map_err(at(operation))
}

/// Ends a receiver's stop, in an open transaction. Answers whether there was one.
pub(super) async fn resume_receiver(
    connection: &mut SqliteConnection,
    origin: &str,
    reason: &str,
    actor: &Actor,
) -> Result<Done<bool>, StoreError> {
    const OPERATION: &str = "resume_receiver";
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
    connection: &mut SqliteConnection,
    merchant: &str,
    reason: &str,
    actor: &Actor,
) -> Result<Done<HoldReport>, StoreError> {
    const OPERATION: &str = "hold_merchant";
    let act = act_on_none(&mut *connection, OPERATION, actor, ("merchant hold", merchant, reason), None).await?;
    let added = sqlx::query(include_str!("sql/merchant_hold.sql"))
        .bind(merchant)
        .bind(reason)
        .bind(act)
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?
        .rows_affected();
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
    Ok(Done::Commit(HoldReport { already: added == 0, held, on_the_wire }))
}

/// Ends a merchant's hold, in an open transaction.
pub(super) async fn release_merchant(
    connection: &mut SqliteConnection,
    merchant: &str,
    reason: &str,
    actor: &Actor,
) -> Result<Done<Option<u64>>, StoreError> {
    const OPERATION: &str = "release_merchant";
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
pub(super) async fn merchant_holds(connection: &mut SqliteConnection) -> Result<Vec<MerchantHold>, StoreError> {
    let operation = "merchant_holds";
    let rows =
        sqlx::query(include_str!("sql/merchant_holds.sql")).fetch_all(connection).await.map_err(at(operation))?;
    let read = |row: &SqliteRow| {
        Ok(MerchantHold {
            merchant: row.try_get("merchant")?,
            reason: row.try_get("reason")?,
            held_at: time(row, "held_at")?,
            by: row.try_get("by")?,
        })
    };
    rows.iter().map(read).collect::<Result<_, sqlx::Error>>().map_err(at(operation))
}

/// Writes down an act on what belongs to no election. Answers its id.
async fn act_on_none(
    connection: &mut SqliteConnection,
    operation: &'static str,
    actor: &Actor,
    (action, target, reason): (&'static str, &str, &str),
    details: Option<serde_json::Value>,
) -> Result<i64, StoreError> {
    let act = Act { action, target, reason: Some(reason), election: None, term: None, details };
    acts::write(connection, operation, actor, act).await
}
