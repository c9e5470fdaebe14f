//! Entries in: all or nothing, a no-op the second time, and a conflict shown with both contents.
//!
//! Invariants:
//! - Whatever can be done without the file's write lock is done before it is taken: see [`File::of`].
//! - What was there already is compared after the rest was added, under the same lock.
//! - Where nothing is new, or anything differs, nothing is written: no record, no act.
//!
//! Deliberately absent: the fence. An import belongs to no election and only adds.

use std::collections::BTreeMap;

use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::acts::{self, Act};
use super::columns::{count, currency, entry_kind, json, json_text, maybe_time, micros, time};
use super::error::at;
use super::runs::{LIST_ROWS, sum_per_currency};
use super::tx::Done;
use crate::domain::entry::{EntryKind, NewEntry, OWN_SOURCE};
use crate::store::{
    Actor, CONFLICTS_SHOWN, ImportConflict, ImportOutcome, ImportRecord, ImportView, NewImport, StoreError,
};

const OPERATION: &str = "import";

/// Entries in one statement. As JSON, which is made for one statement at a time, about a megabyte.
const CHUNK: usize = 5000;

/// A file of entries that may be imported, in the byte order of ids: they stand beside each other in the index that way, and
/// get their numbers in one order whatever the database.
pub(super) struct File<'a> {
    import: &'a NewImport,
    rows: Vec<&'a (u64, NewEntry)>,
}

impl<'a> File<'a> {
    /// Looks a file over and sorts it, before any lock is taken.
    ///
    /// # Errors
    /// [`StoreError::Broken`] for what no file may hold: bursar's own source, a carry.
    pub(super) fn of(import: &'a NewImport) -> Result<Self, StoreError> {
        let broken = |detail: String| Err(StoreError::Broken { operation: OPERATION, detail });
        if import.source == OWN_SOURCE {
            return broken(format!(
                "the source {OWN_SOURCE:?} is bursar's own: name the source that the file came from"
            ));
        }
        if let Some((line, _)) = import.entries.iter().find(|(_, entry)| entry.kind == EntryKind::Carry) {
            return broken(format!("line {line}: a carry is written by bursar only"));
        }
        let mut rows: Vec<_> = import.entries.iter().collect();
        rows.sort_by(|one, other| one.1.id.as_bytes().cmp(other.1.id.as_bytes()));
        Ok(Self { import, rows })
    }
}

/// What the chunks of a file came to.
#[derive(Debug, Default)]
struct Progress {
    added: u64,
    known: u64,
    conflicts: Vec<ImportConflict>,
    different: u64,
}

/// Imports a file in an open transaction.
///
/// # Errors
/// Any fault of the store. The caller rolls back.
pub(super) async fn import(
    connection: &mut SqliteConnection,
    file: &File<'_>,
    actor: &Actor,
) -> Result<Done<ImportOutcome>, StoreError> {
    let import = file.import;
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
    let mut progress = Progress::default();
    for chunk in file.rows.chunks(CHUNK) {
        add_chunk(connection, import, id, chunk, &mut progress).await.map_err(at(OPERATION))?;
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
    let sums = end(connection, id, progress.added).await.map_err(at(OPERATION))?;
    crate::point!("store.import.before_commit");
    let import = ImportRecord {
        id,
        source: import.source.clone(),
        file_name: import.file_name.clone(),
        sha256: import.sha256.clone(),
        rows: progress.added,
        sums,
        by: format!("{}@{}", actor.user, actor.host),
        at: time(&begun, "at").map_err(at(OPERATION))?,
        reverted_at: None,
        revert_reason: None,
    };
    Ok(Done::Commit(ImportOutcome::Imported { import, known: progress.known }))
}

/// Sums up what is new, and notes it with the import.
async fn end(
    connection: &mut SqliteConnection,
    import: i64,
    added: u64,
) -> Result<BTreeMap<String, String>, sqlx::Error> {
    let rows = sqlx::query(include_str!("sql/import_sums.sql")).bind(import).fetch_all(&mut *connection).await?;
    let sums: BTreeMap<String, String> = rows.iter().map(sum_per_currency).collect::<Result<_, _>>()?;
    sqlx::query(include_str!("sql/import_end.sql"))
        .bind(import)
        .bind(i64::try_from(added).unwrap_or(i64::MAX))
        .bind(json_text(&sums)?)
        .execute(connection)
        .await?;
    Ok(sums)
}

/// Adds one chunk, and compares it where some of it was there.
async fn add_chunk(
    connection: &mut SqliteConnection,
    import: &NewImport,
    id: i64,
    chunk: &[&(u64, NewEntry)],
    progress: &mut Progress,
) -> Result<(), sqlx::Error> {
    let text = json_text(&chunk.iter().map(|row| columns(row)).collect::<Vec<_>>())?;
    let added = sqlx::query(include_str!("sql/import_entries.sql"))
        .bind(&import.source)
        .bind(id)
        .bind(&text)
        .execute(&mut *connection)
        .await?
        .rows_affected();
    progress.added += added;
    let all = chunk.len() as u64;
    if added < all {
        progress.known += all - added;
        progress.different += compare_chunk(connection, import, &text, chunk, &mut progress.conflicts).await?;
    }
    Ok(())
}

/// The columns of an entry, as statements take them.
type Columns<'a> = (u64, &'a str, &'a str, &'a str, &'a str, i64, i64, i64, i64, Option<&'a str>);

fn columns(row: &(u64, NewEntry)) -> Columns<'_> {
    let (line, entry) = row;
    (
        *line,
        &entry.id,
        &entry.merchant,
        entry.currency.code(),
        entry.kind.as_str(),
        entry.amount,
        entry.fee,
        micros(entry.occurred_at),
        micros(entry.available_at),
        entry.reference.as_deref(),
    )
}

/// Compares a chunk with what the store has; answers how many differ.
async fn compare_chunk(
    connection: &mut SqliteConnection,
    import: &NewImport,
    text: &str,
    chunk: &[&(u64, NewEntry)],
    conflicts: &mut Vec<ImportConflict>,
) -> Result<u64, sqlx::Error> {
    let rows = sqlx::query(include_str!("sql/import_compare.sql"))
        .bind(&import.source)
        .bind(text)
        .bind(i64::try_from(CONFLICTS_SHOWN).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await?;
    let Some(first) = rows.first() else { return Ok(0) };
    let different = count(first, "different")?;
    if different > 0 {
        for row in &rows {
            conflicts.extend(conflict(row, chunk)?);
        }
    }
    Ok(different)
}

/// Reads one difference.
fn conflict(row: &SqliteRow, chunk: &[&(u64, NewEntry)]) -> Result<Option<ImportConflict>, sqlx::Error> {
    let line = count(row, "line")?;
    let Some((line, offered)) = chunk.iter().find(|(offered, _)| *offered == line) else { return Ok(None) };
    let found = NewEntry {
        id: row.try_get("external_id")?,
        merchant: row.try_get("merchant")?,
        currency: currency(row, "currency")?,
        kind: entry_kind(row, "kind")?,
        amount: row.try_get("amount")?,
        fee: row.try_get("fee")?,
        occurred_at: time(row, "occurred_at")?,
        available_at: time(row, "available_at")?,
        reference: row.try_get("reference")?,
    };
    Ok(Some(ImportConflict { line: *line, offered: offered.clone(), found, import: row.try_get("import_id")? }))
}

/// The newest other import of the same bytes.
async fn same_file(
    connection: &mut SqliteConnection,
    import: &NewImport,
    own: i64,
) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar(include_str!("sql/import_same_file.sql"))
        .bind(&import.source)
        .bind(&import.sha256)
        .bind(own)
        .fetch_one(connection)
        .await
}

/// Imports, newest first.
pub(super) async fn imports(connection: &mut SqliteConnection, limit: u32) -> Result<Vec<ImportRecord>, StoreError> {
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
pub(super) async fn import_by_id(
    connection: &mut SqliteConnection,
    import: i64,
) -> Result<Option<ImportView>, StoreError> {
    read_import(connection, import).await.map_err(at("import_by_id"))
}

async fn read_import(connection: &mut SqliteConnection, import: i64) -> Result<Option<ImportView>, sqlx::Error> {
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

fn record(row: &SqliteRow) -> Result<ImportRecord, sqlx::Error> {
    Ok(ImportRecord {
        id: row.try_get("id")?,
        source: row.try_get("source")?,
        file_name: row.try_get("file_name")?,
        sha256: row.try_get("sha256")?,
        rows: count(row, "rows")?,
        sums: json(row, "sums")?,
        by: row.try_get("by")?,
        at: time(row, "at")?,
        reverted_at: maybe_time(row, "reverted_at")?,
        revert_reason: row.try_get("revert_reason")?,
    })
}

/// Whether any entry of a merchant has ever come in.
pub(super) async fn is_merchant_known(connection: &mut SqliteConnection, merchant: &str) -> Result<bool, StoreError> {
    sqlx::query_scalar(include_str!("sql/merchant_known.sql"))
        .bind(merchant)
        .fetch_one(connection)
        .await
        .map_err(at("is_merchant_known"))
}
