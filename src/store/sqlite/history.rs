//! What `history` shows: terms, refusals, operators' acts.

use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{self, election_name, id, maybe_holder, maybe_time, time};
use super::error::at;
use super::runs::LIST_ROWS;
use crate::domain::{Claim, TenureId};
use crate::store::{ActView, FenceReject, HistoryView, StoreError, TermView};

/// Terms, refusals, operators' acts, newest first, at most `limit` of each.
pub(super) async fn history(connection: &mut SqliteConnection, limit: u32) -> Result<HistoryView, StoreError> {
    read(connection, i64::from(limit.clamp(1, LIST_ROWS))).await.map_err(at("history"))
}

async fn read(connection: &mut SqliteConnection, limit: i64) -> Result<HistoryView, sqlx::Error> {
    let terms = sqlx::query(include_str!("sql/history_terms.sql")).bind(limit).fetch_all(&mut *connection).await?;
    let rejects = sqlx::query(include_str!("sql/history_rejects.sql")).bind(limit).fetch_all(&mut *connection).await?;
    let acts = sqlx::query(include_str!("sql/history_acts.sql")).bind(limit).fetch_all(connection).await?;
    Ok(HistoryView {
        terms: terms.iter().map(term).collect::<Result<_, _>>()?,
        rejects: rejects.iter().map(reject).collect::<Result<_, _>>()?,
        acts: acts.iter().map(act).collect::<Result<_, _>>()?,
    })
}

pub(super) fn term(row: &SqliteRow) -> Result<TermView, sqlx::Error> {
    Ok(TermView {
        election: election_name(row, "election")?,
        term: row.try_get("term")?,
        tenure_id: id(row, "tenure_id")?,
        replica: row.try_get("replica")?,
        host: row.try_get("host")?,
        version: row.try_get("version")?,
        accepted_at: time(row, "accepted_at")?,
        worked_at: maybe_time(row, "worked_at")?,
        ended_at: maybe_time(row, "ended_at")?,
        end_reason: row.try_get("end_reason")?,
    })
}

fn reject(row: &SqliteRow) -> Result<FenceReject, sqlx::Error> {
    Ok(FenceReject {
        presented: Claim {
            election: election_name(row, "election")?,
            term: columns::term(row, "term")?,
            tenure_id: TenureId(id(row, "tenure_id")?),
        },
        found: maybe_holder(row, "found_term", "found_tenure_id")?,
        operation: row.try_get("operation")?,
        replica: row.try_get("replica")?,
        at: time(row, "at")?,
    })
}

pub(super) fn act(row: &SqliteRow) -> Result<ActView, sqlx::Error> {
    Ok(ActView {
        at: time(row, "at")?,
        action: row.try_get("action")?,
        target: row.try_get("target")?,
        reason: row.try_get("reason")?,
        by: row.try_get("by")?,
        role: row.try_get("role")?,
        term: row.try_get("term")?,
    })
}
