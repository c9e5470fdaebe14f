//! What `history` shows: terms, refusals, operators' acts.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::columns::{election_name, unreadable};
use super::error::at;
use super::runs::LIST_ROWS;
use super::tx::holder;
use crate::domain::{Claim, TenureId, Term};
use crate::store::{ActView, FenceReject, HistoryView, StoreError, TermView};

/// Terms, refusals, operators' acts, newest first, at most `limit` of each.
pub(super) async fn history(connection: &mut PgConnection, limit: u32) -> Result<HistoryView, StoreError> {
    read(connection, i64::from(limit.clamp(1, LIST_ROWS))).await.map_err(at("history"))
}

async fn read(connection: &mut PgConnection, limit: i64) -> Result<HistoryView, sqlx::Error> {
    let terms = sqlx::query(include_str!("sql/history_terms.sql")).bind(limit).fetch_all(&mut *connection).await?;
    let rejects = sqlx::query(include_str!("sql/history_rejects.sql")).bind(limit).fetch_all(&mut *connection).await?;
    let acts = sqlx::query(include_str!("sql/history_acts.sql")).bind(limit).fetch_all(connection).await?;
    Ok(HistoryView {
        terms: terms.iter().map(term).collect::<Result<_, _>>()?,
        rejects: rejects.iter().map(reject).collect::<Result<_, _>>()?,
        acts: acts.iter().map(act).collect::<Result<_, _>>()?,
    })
}

pub(super) fn term(row: &PgRow) -> Result<TermView, sqlx::Error> {
    Ok(TermView {
        election: election_name(row, "election")?,
        term: row.try_get("term")?,
        tenure_id: row.try_get("tenure_id")?,
        replica: row.try_get("replica")?,
        host: row.try_get("host")?,
        version: row.try_get("version")?,
        accepted_at: row.try_get("accepted_at")?,
        worked_at: row.try_get("worked_at")?,
        ended_at: row.try_get("ended_at")?,
        end_reason: row.try_get("end_reason")?,
    })
}

fn reject(row: &PgRow) -> Result<FenceReject, sqlx::Error> {
    let number: i64 = row.try_get("term")?;
    let term = Term::new(number).ok_or_else(|| unreadable("term", &number.to_string(), "a term", "below 0"))?;
    Ok(FenceReject {
        presented: Claim {
            election: election_name(row, "election")?,
            term,
            tenure_id: TenureId(row.try_get("tenure_id")?),
        },
        found: holder(row.try_get("found_term")?, row.try_get("found_tenure_id")?),
        operation: row.try_get("operation")?,
        replica: row.try_get("replica")?,
        at: row.try_get("at")?,
    })
}

pub(super) fn act(row: &PgRow) -> Result<ActView, sqlx::Error> {
    Ok(ActView {
        at: row.try_get("at")?,
        action: row.try_get("action")?,
        target: row.try_get("target")?,
        reason: row.try_get("reason")?,
        by: row.try_get("by")?,
        role: row.try_get("role")?,
        term: row.try_get("term")?,
    })
}
