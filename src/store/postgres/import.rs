//! Entries in: all or nothing, a no-op the second time, and a conflict shown with both contents.
//!
//! Invariants:
//! - Rows are inserted in the byte order of their ids, so that imports of one file at once wait in one direction only.
//! - What was there already is compared after it was found, in a statement of its own: by then it is committed, or ours.
//! - Where nothing is new, or anything differs, nothing is written: no record, no act.
//!
//! Deliberately absent: the fence. An import belongs to no election and only adds.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::acts::{self, Act};
use super::columns::{count, currency, entry_kind, unreadable, wide};
use super::error::at;
use super::runs::LIST_ROWS;
use super::tx::Done;
use crate::domain::entry::{EntryKind, NewEntry, OWN_SOURCE};
use crate::domain::money::Currency;
use crate::store::{
    Actor, CONFLICTS_SHOWN, ImportConflict, ImportOutcome, ImportRecord, ImportView, NewImport, StoreError,
};

const OPERATION: &str = "import";

/// Entries in one statement.
const CHUNK: usize = 5000;

/// What the chunks of a file came to.
#[derive(Debug, Default)]
struct Progress {
    added: u64,
    known: u64,
    sums: BTreeMap<Currency, i128>,
    conflicts: Vec<ImportConflict>,
    different: u64,
}

/// Imports a file in an open transaction.
///
/// # Errors
/// [`StoreError::Broken`] for what no file may hold (bursar's own source, a carry); [`StoreError::TryAgain`] where entries
/// of the file were taken back meanwhile; else any fault of the store. The caller rolls back.
pub(super) async fn import(
    connection: &mut PgConnection,
    import: &NewImport,
    actor: &Actor,
) -> Result<Done<ImportOutcome>, StoreError> {
    refuse_own(import)?;
    let mut rows: Vec<&(u64, NewEntry)> = import.entries.iter().collect();
    rows.sort_by(|one, other| one.1.id.as_bytes().cmp(other.1.id.as_bytes()));
    let act = Act {
        action: "import",
        target: &import.file_name,
        reason: None,
        election: None,
        term: None,
        details: Some(serde_json::json!({ "source": import.source, "sha256": import.sha256 })),
    };
    let act = acts::write(connection, OPERATION, actor, act).await?;
    let begun = sqlx::query(include_str!("sql/import_begin.sql"))
        .bind(&import.source)
        .bind(&import.file_name)
        .bind(&import.sha256)
        .bind(act)
        .fetch_one(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let id: i64 = begun.try_get("id").map_err(at(OPERATION))?;
    let at_time: DateTime<Utc> = begun.try_get("at").map_err(at(OPERATION))?;
    let mut progress = Progress::default();
    for chunk in rows.chunks(CHUNK) {
        add_chunk(connection, import, id, chunk, &mut progress).await?;
    }
    if progress.different > 0 {
        progress.conflicts.sort_by_key(|conflict| conflict.line);
        progress.conflicts.truncate(CONFLICTS_SHOWN);
        return Ok(Done::RollBack(ImportOutcome::Conflicts { shown: progress.conflicts, total: progress.different }));
    }
    if progress.added == 0 {
        let same_file = same_file(connection, import, id).await.map_err(at(OPERATION))?;
        return Ok(Done::RollBack(ImportOutcome::NothingNew { same_file, known: progress.known }));
    }
    let sums: BTreeMap<String, String> =
        progress.sums.iter().map(|(currency, sum)| (currency.code().to_owned(), currency.format(*sum))).collect();
    sqlx::query(include_str!("sql/import_end.sql"))
        .bind(id)
        .bind(i64::try_from(progress.added).unwrap_or(i64::MAX))
        .bind(sqlx::types::Json(&sums))
        .execute(connection)
        .await
        .map_err(at(OPERATION))?;
    crate::point!("store.import.before_commit");
    let import = ImportRecord {
        id,
        source: import.source.clone(),
        file_name: import.file_name.clone(),
        sha256: import.sha256.clone(),
        rows: progress.added,
        sums,
        by: format!("{}@{}", actor.user, actor.host),
        at: at_time,
        reverted_at: None,
        revert_reason: None,
    };
    Ok(Done::Commit(ImportOutcome::Imported { import, known: progress.known }))
}

/// Refuses what bursar alone writes.
fn refuse_own(import: &NewImport) -> Result<(), StoreError> {
    let broken = |detail: String| Err(StoreError::Broken { operation: OPERATION, detail });
    if import.source == OWN_SOURCE {
        return broken(format!("the source {OWN_SOURCE:?} is bursar's own: name the source that the file came from"));
    }
    match import.entries.iter().find(|(_, entry)| entry.kind == EntryKind::Carry) {
        Some((line, _)) => broken(format!("line {line}: a carry is written by bursar only")),
        None => Ok(()),
    }
}

/// The columns of a chunk, as statements take them.
struct Columns<'a> {
    lines: Vec<i64>,
    ids: Vec<&'a str>,
    merchants: Vec<&'a str>,
    currencies: Vec<&'a str>,
    kinds: Vec<&'static str>,
    amounts: Vec<i64>,
    fees: Vec<i64>,
    occurred_at: Vec<DateTime<Utc>>,
    available_at: Vec<DateTime<Utc>>,
    references: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    fn of(chunk: &[&'a (u64, NewEntry)]) -> Self {
        Self {
            lines: chunk.iter().map(|(line, _)| i64::try_from(*line).unwrap_or(i64::MAX)).collect(),
            ids: chunk.iter().map(|(_, entry)| entry.id.as_str()).collect(),
            merchants: chunk.iter().map(|(_, entry)| entry.merchant.as_str()).collect(),
            currencies: chunk.iter().map(|(_, entry)| entry.currency.code()).collect(),
            kinds: chunk.iter().map(|(_, entry)| entry.kind.as_str()).collect(),
            amounts: chunk.iter().map(|(_, entry)| entry.amount).collect(),
            fees: chunk.iter().map(|(_, entry)| entry.fee).collect(),
            occurred_at: chunk.iter().map(|(_, entry)| entry.occurred_at).collect(),
            available_at: chunk.iter().map(|(_, entry)| entry.available_at).collect(),
            references: chunk.iter().map(|(_, entry)| entry.reference.as_deref()).collect(),
        }
    }
}

/// Adds one chunk, and compares it where some of it was there.
async fn add_chunk(
    connection: &mut PgConnection,
    import: &NewImport,
    id: i64,
    chunk: &[&(u64, NewEntry)],
    progress: &mut Progress,
) -> Result<(), StoreError> {
    let columns = Columns::of(chunk);
    let added = sqlx::query(crate::sql!("sql/import_entries.sql"))
        .bind(&import.source)
        .bind(id)
        .bind(&columns.ids)
        .bind(&columns.merchants)
        .bind(&columns.currencies)
        .bind(&columns.kinds)
        .bind(&columns.amounts)
        .bind(&columns.fees)
        .bind(&columns.occurred_at)
        .bind(&columns.available_at)
        .bind(&columns.references)
        .fetch_all(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let mut new = 0;
    for row in &added {
        new += count(row, "rows").map_err(at(OPERATION))?;
        let sum = progress.sums.entry(currency(row, "currency").map_err(at(OPERATION))?).or_insert(0);
        *sum += wide(row, "amount").map_err(at(OPERATION))?;
    }
    progress.added += new;
    let all = chunk.len() as u64;
    if new < all {
        let (found, different) =
            compare_chunk(connection, import, &columns, chunk, progress).await.map_err(at(OPERATION))?;
        if found != all {
            return Err(StoreError::TryAgain {
                operation: OPERATION,
                code: "40001".to_owned(),
                detail: "entries of the file were taken back meanwhile".to_owned(),
            });
        }
        progress.different += different;
        progress.known += all - new;
    }
    Ok(())
}

/// Compares a chunk with what the store has; answers how many were found, and how many of them differ.
async fn compare_chunk(
    connection: &mut PgConnection,
    import: &NewImport,
    columns: &Columns<'_>,
    chunk: &[&(u64, NewEntry)],
    progress: &mut Progress,
) -> Result<(u64, u64), sqlx::Error> {
    let rows = sqlx::query(include_str!("sql/import_compare.sql"))
        .bind(&import.source)
        .bind(&columns.lines)
        .bind(&columns.ids)
        .bind(&columns.merchants)
        .bind(&columns.currencies)
        .bind(&columns.kinds)
        .bind(&columns.amounts)
        .bind(&columns.fees)
        .bind(&columns.occurred_at)
        .bind(&columns.available_at)
        .bind(&columns.references)
        .bind(i64::try_from(CONFLICTS_SHOWN).unwrap_or(i64::MAX))
        .persistent(false)
        .fetch_all(connection)
        .await?;
    let Some(first) = rows.first() else { return Ok((0, 0)) };
    let counts = (count(first, "found")?, count(first, "different")?);
    if counts.1 > 0 {
        for row in &rows {
            progress.conflicts.extend(conflict(row, chunk)?);
        }
    }
    Ok(counts)
}

/// Reads one difference.
fn conflict(row: &PgRow, chunk: &[&(u64, NewEntry)]) -> Result<Option<ImportConflict>, sqlx::Error> {
    let line: i64 = row.try_get("line")?;
    let Some((line, offered)) = chunk.iter().find(|(offered, _)| i64::try_from(*offered) == Ok(line)) else {
        return Ok(None);
    };
    let found = NewEntry {
        id: row.try_get("external_id")?,
        merchant: row.try_get("merchant")?,
        currency: currency(row, "currency")?,
        kind: entry_kind(row, "kind")?,
        amount: row.try_get("amount")?,
        fee: row.try_get("fee")?,
        occurred_at: row.try_get("occurred_at")?,
        available_at: row.try_get("available_at")?,
        reference: row.try_get("reference")?,
    };
    Ok(Some(ImportConflict { line: *line, offered: offered.clone(), found, import: row.try_get("import_id")? }))
}

/// The newest other import of the same bytes.
async fn same_file(connection: &mut PgConnection, import: &NewImport, own: i64) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar(include_str!("sql/import_same_file.sql"))
        .bind(&import.source)
        .bind(&import.sha256)
        .bind(own)
        .fetch_one(connection)
        .await
}

/// Imports, newest first.
pub(super) async fn imports(connection: &mut PgConnection, limit: u32) -> Result<Vec<ImportRecord>, StoreError> {
    let operation = "imports";
    let rows = sqlx::query(include_str!("sql/imports.sql"))
        .bind(None::<i64>)
        .bind(i64::from(limit.clamp(1, LIST_ROWS)))
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    rows.iter().map(record).collect::<Result<_, _>>().map_err(at(operation))
}

/// One import, with what became of its entries.
pub(super) async fn import_by_id(connection: &mut PgConnection, import: i64) -> Result<Option<ImportView>, StoreError> {
    read_import(connection, import).await.map_err(at("import_by_id"))
}

async fn read_import(connection: &mut PgConnection, import: i64) -> Result<Option<ImportView>, sqlx::Error> {
    let found = sqlx::query(include_str!("sql/imports.sql"))
        .bind(Some(import))
        .bind(1_i64)
        .fetch_optional(&mut *connection)
        .await?;
    let Some(row) = found else { return Ok(None) };
    let entries =
        sqlx::query(include_str!("sql/import_entries_by_state.sql")).bind(import).fetch_one(connection).await?;
    Ok(Some(ImportView {
        record: record(&row)?,
        open: count(&entries, "open")?,
        settled: count(&entries, "settled")?,
        withdrawn: count(&entries, "withdrawn")?,
        reverted: count(&entries, "reverted")?,
    }))
}

fn record(row: &PgRow) -> Result<ImportRecord, sqlx::Error> {
    let sums: serde_json::Value = row.try_get("sums")?;
    Ok(ImportRecord {
        id: row.try_get("id")?,
        source: row.try_get("source")?,
        file_name: row.try_get("file_name")?,
        sha256: row.try_get("sha256")?,
        rows: count(row, "rows")?,
        sums: serde_json::from_value(sums.clone())
            .map_err(|error| unreadable("sums", &sums.to_string(), "sums per currency", error))?,
        by: row.try_get("by")?,
        at: row.try_get("at")?,
        reverted_at: row.try_get("reverted_at")?,
        revert_reason: row.try_get("revert_reason")?,
    })
}

/// Whether any entry of a merchant has ever come in.
pub(super) async fn is_merchant_known(connection: &mut PgConnection, merchant: &str) -> Result<bool, StoreError> {
    sqlx::query_scalar(include_str!("sql/merchant_known.sql"))
        .bind(merchant)
        .fetch_one(connection)
        .await
        .map_err(at("is_merchant_known"))
}
