//! A row per try: begun in the transaction that puts it on the wire, ended in the one that records it or puts it back.

use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::json_text;
use crate::domain::Claim;

/// Begins tries: instruction, number, whether it is only asked for.
pub(super) async fn begin(
    connection: &mut SqliteConnection,
    claim: &Claim,
    tries: &[(i64, u32, bool)],
) -> Result<(), sqlx::Error> {
    sqlx::query(include_str!("sql/tries_begin.sql"))
        .bind(claim.term.get())
        .bind(json_text(tries)?)
        .execute(connection)
        .await
        .map(|_| ())
}

/// Ends the last tries of instructions: instruction, outcome, what there is to say.
pub(super) async fn end(
    connection: &mut SqliteConnection,
    tries: &[(i64, &str, Option<&str>)],
) -> Result<(), sqlx::Error> {
    if tries.is_empty() {
        return Ok(());
    }
    sqlx::query(include_str!("sql/tries_end.sql")).bind(json_text(tries)?).execute(connection).await.map(|_| ())
}

/// Ends the tries of instructions that were put back: no byte of them left.
pub(super) async fn not_sent(connection: &mut SqliteConnection, put_back: &[SqliteRow]) -> Result<(), sqlx::Error> {
    let ended: Vec<(i64, &str, Option<&str>)> =
        put_back.iter().map(|row| Ok((row.try_get("id")?, "not_sent", None))).collect::<Result<_, sqlx::Error>>()?;
    end(connection, &ended).await
}

/// Ends the tries that a lower term left on the wire.
pub(super) async fn lost(connection: &mut SqliteConnection, left: &[SqliteRow]) -> Result<(), sqlx::Error> {
    let ended: Vec<(i64, &str, Option<&str>)> = left
        .iter()
        .map(|row| Ok((row.try_get("id")?, "unknown", row.try_get("last_error")?)))
        .collect::<Result<_, sqlx::Error>>()?;
    end(connection, &ended).await
}
