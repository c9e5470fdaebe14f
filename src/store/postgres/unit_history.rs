//! All that is kept of one unit, in one transaction.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::columns::{count, currency, instruction_state, small_count, wide};
use super::error::at;
use super::history::act;
use super::units::units;
use crate::store::unit_history::account;
use crate::store::{
    StoreError, UNIT_HISTORY_SHOWN, UnitBatch, UnitEntries, UnitFilter, UnitHistory, UnitPosting, UnitRequest, UnitTry,
    UnitView,
};

const OPERATION: &str = "unit_history";

/// One unit of a run with its history.
pub(super) async fn unit_history(
    connection: &mut PgConnection,
    run: i64,
    key: &str,
) -> Result<Option<UnitHistory>, StoreError> {
    let filter = UnitFilter { run: Some(run), key: Some(key.to_owned()), limit: 1, ..UnitFilter::default() };
    let Some(unit) = units(&mut *connection, &filter).await?.pop() else { return Ok(None) };
    read(connection, unit).await.map(Some).map_err(at(OPERATION))
}

async fn read(connection: &mut PgConnection, unit: UnitView) -> Result<UnitHistory, sqlx::Error> {
    let most = i64::from(UNIT_HISTORY_SHOWN);
    let head = sqlx::query(include_str!("sql/unit_batch.sql")).bind(unit.id).fetch_one(&mut *connection).await?;
    let batch = match head.try_get::<Option<i64>, _>("id")? {
        None => None,
        Some(id) => Some(UnitBatch { id, term: head.try_get("term")?, committed_at: head.try_get("committed_at")? }),
    };
    let entries = sqlx::query(include_str!("sql/unit_entries.sql")).bind(unit.id).fetch_all(&mut *connection).await?;
    let postings =
        sqlx::query(include_str!("sql/unit_postings.sql")).bind(unit.id).bind(most).fetch_all(&mut *connection).await?;
    let requests =
        sqlx::query(include_str!("sql/unit_requests.sql")).bind(unit.id).bind(most).fetch_all(&mut *connection).await?;
    let tries =
        sqlx::query(include_str!("sql/unit_tries.sql")).bind(unit.id).bind(most).fetch_all(&mut *connection).await?;
    let tries: Vec<(String, UnitTry)> = tries.iter().map(a_try).collect::<Result<_, _>>()?;
    let acts = sqlx::query(include_str!("sql/unit_acts.sql"))
        .bind(unit.id)
        .bind(unit.run)
        .bind(unit.key.as_str())
        .bind(most)
        .fetch_all(connection)
        .await?;
    Ok(UnitHistory {
        generation: small_count(&head, "generation")?,
        batch,
        entries: entries.iter().map(bound).collect::<Result<_, _>>()?,
        postings: postings.iter().map(posting).collect::<Result<_, _>>()?,
        requests: requests.iter().map(|row| request(row, &tries)).collect::<Result<_, _>>()?,
        acts: acts.iter().map(act).collect::<Result<_, _>>()?,
        unit,
    })
}

fn bound(row: &PgRow) -> Result<UnitEntries, sqlx::Error> {
    let currency = currency(row, "currency")?;
    Ok(UnitEntries {
        source: row.try_get("source")?,
        carries: row.try_get("carries")?,
        entries: count(row, "entries")?,
        amount: currency.format(wide(row, "amount")?),
        fee: currency.format(wide(row, "fee")?),
    })
}

fn posting(row: &PgRow) -> Result<UnitPosting, sqlx::Error> {
    let currency = currency(row, "currency")?;
    Ok(UnitPosting {
        journal: row.try_get("kind")?,
        generation: small_count(row, "generation")?,
        term: row.try_get("term")?,
        debit: account(row.try_get("debit_kind")?, row.try_get("debit_owner")?),
        credit: account(row.try_get("credit_kind")?, row.try_get("credit_owner")?),
        currency: currency.code().to_owned(),
        amount: currency.format(row.try_get::<i64, _>("amount")?),
    })
}

/// A try, with its instruction's key.
fn a_try(row: &PgRow) -> Result<(String, UnitTry), sqlx::Error> {
    let shown = UnitTry {
        attempt: small_count(row, "attempt")?,
        asked: row.try_get("asked")?,
        term: row.try_get("term")?,
        receiver: row.try_get("receiver")?,
        began_at: row.try_get("began_at")?,
        ended_at: row.try_get("ended_at")?,
        outcome: row.try_get("outcome")?,
        detail: row.try_get("detail")?,
    };
    Ok((row.try_get("idempotency_key")?, shown))
}

fn request(row: &PgRow, tries: &[(String, UnitTry)]) -> Result<UnitRequest, sqlx::Error> {
    let key: String = row.try_get("idempotency_key")?;
    Ok(UnitRequest {
        tries: tries.iter().filter(|(of, _)| *of == key).map(|(_, shown)| shown.clone()).collect(),
        key,
        kind: row.try_get("kind")?,
        generation: small_count(row, "generation")?,
        state: instruction_state(row, "state")?,
        reason: row.try_get("reason")?,
        release: row.try_get("release")?,
        attempts: small_count(row, "attempts")?,
        in_doubt: row.try_get("in_doubt")?,
        first_sent_at: row.try_get("first_sent_at")?,
        next_attempt_at: row.try_get("next_attempt_at")?,
        receiver: row.try_get("receiver")?,
        reference: row.try_get("external_reference")?,
        last_error: row.try_get("last_error")?,
        value_date: row.try_get("value_date")?,
        term: row.try_get("term")?,
        sending_term: row.try_get("sending_term")?,
        created_at: row.try_get("created_at")?,
        final_at: row.try_get("final_at")?,
    })
}
