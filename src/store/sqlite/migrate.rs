//! The schema: its files are in the binary, applied forward only, all that is missing in one transaction.

use sha2::{Digest, Sha256};
use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::error::at;
use super::tx::{self, Done};
use super::within::WRITE_LOCK;
use crate::store::StoreError;

/// One file.
struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static str,
}

macro_rules! migrations {
    ($($version:literal $name:literal),+ $(,)?) => {
        [$(Migration {
            version: $version,
            name: $name,
            sql: include_str!(concat!("../../../migrations/sqlite/", $name, ".sql")),
        }),+]
    };
}

const MIGRATIONS: &[Migration] = &migrations![
    1 "0001_fence",
    2 "0002_runs",
    3 "0003_money",
    4 "0004_payouts",
    5 "0005_pauses",
    6 "0006_wishes",
    7 "0007_runs_by_due",
    8 "0008_tries",
    9 "0009_payout_ways",
    10 "0010_stories",
];

/// The schema number of this release: its highest migration.
pub(super) const SCHEMA: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// Applies what is missing, on a connection that has nothing under way. Answers the number found.
///
/// # Errors
/// [`StoreError::Schema`] where the file is newer; [`StoreError::Unfit`] where an applied file was another one.
pub(super) async fn bring_up(connection: &mut SqliteConnection, operation: &'static str) -> Result<i64, StoreError> {
    // Two at once: the second waits and then finds nothing to do.
    tx::lock(connection, operation, WRITE_LOCK).await?;
    let worked = apply(connection, operation).await;
    let ending = if worked.is_ok() { "commit" } else { "rollback" };
    let ended = sqlx::raw_sql(ending).execute(connection).await.map_err(at(operation));
    let (found, _) = worked?;
    ended.map(|_| found)
}

/// The same in a transaction of the caller's. Answers (found, now).
pub(super) async fn migrate(
    connection: &mut SqliteConnection,
    operation: &'static str,
) -> Result<Done<(i64, i64)>, StoreError> {
    apply(connection, operation).await.map(Done::Commit)
}

async fn apply(connection: &mut SqliteConnection, operation: &'static str) -> Result<(i64, i64), StoreError> {
    sqlx::raw_sql(include_str!("sql/migrate_mark.sql")).execute(&mut *connection).await.map_err(at(operation))?;
    sqlx::raw_sql(include_str!("sql/migrate_table.sql")).execute(&mut *connection).await.map_err(at(operation))?;
    let found = applied(connection, operation).await?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
        sqlx::raw_sql(migration.sql).execute(&mut *connection).await.map_err(at(operation))?;
        sqlx::query(include_str!("sql/migrate_note.sql"))
            .bind(migration.version)
            .bind(migration.name)
            .bind(checksum(migration.sql))
            .execute(&mut *connection)
            .await
            .map_err(at(operation))?;
        tracing::info!(version = migration.version, name = migration.name, "migrated");
    }
    Ok((found, SCHEMA))
}

/// The highest version applied; 0 where there is none.
async fn applied(connection: &mut SqliteConnection, operation: &'static str) -> Result<i64, StoreError> {
    let rows =
        sqlx::query(include_str!("sql/migrate_applied.sql")).fetch_all(connection).await.map_err(at(operation))?;
    let mut highest = 0;
    for row in &rows {
        let version: i64 = row.try_get("version").map_err(at(operation))?;
        let sum: String = row.try_get("checksum").map_err(at(operation))?;
        highest = highest.max(version);
        if let Some(own) = MIGRATIONS.iter().find(|own| own.version == version)
            && checksum(own.sql) != sum
        {
            return Err(StoreError::Unfit {
                detail: format!(
                    "migration {version} was applied from another file than this release's {}: a database of a \
                     development version cannot be brought forward, make it anew",
                    own.name
                ),
            });
        }
    }
    if highest > SCHEMA { Err(StoreError::Schema { found: highest, expected: SCHEMA }) } else { Ok(highest) }
}

fn checksum(sql: &str) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(sql.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_in_the_binary_in_order() {
        let mut names: Vec<String> = std::fs::read_dir("migrations/sqlite")
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .filter(|name| std::path::Path::new(name).extension().is_some_and(|extension| extension == "sql"))
            .collect();
        names.sort();
        let own: Vec<String> = MIGRATIONS.iter().map(|migration| format!("{}.sql", migration.name)).collect();
        assert_eq!(own, names);
        assert!(MIGRATIONS.is_sorted_by(|one, next| one.version < next.version));
        for migration in MIGRATIONS {
            assert!(migration.name.starts_with(&format!("{:04}_", migration.version)));
        }
    }
}
