//! The schema: its files are in the binary, applied forward only, all that is missing in one transaction.
//!
//! Why an own runner: the schema number is part of eligibility and is compared exactly; and its table lives in the schema
//! `bursar` like everything else.

use sha2::{Digest, Sha256};
use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::error::at;
use super::tx::Done;
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
            sql: include_str!(concat!("../../../migrations/postgres/", $name, ".sql")),
        }),+]
    };
}

const MIGRATIONS: &[Migration] = &migrations![
    1 "0001_fence",
    2 "0002_runs",
    3 "0003_money",
    4 "0004_coordinator",
    5 "0005_payouts",
    6 "0006_four_eyes",
    7 "0007_pauses",
    8 "0008_wishes",
    9 "0009_runs_by_due",
    10 "0010_tries",
    11 "0011_payout_ways",
    12 "0012_wins",
    13 "0013_stories",
];

/// The schema number of this release: its highest migration.
pub(super) const SCHEMA: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

const OPERATION: &str = "migrate";

/// Applies what is missing. Answers (found, now).
///
/// # Errors
/// [`StoreError::Schema`] where the database is newer; [`StoreError::Unfit`] where an applied file was another one.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<Done<(i64, i64)>, StoreError> {
    // Two at once: the second waits and then finds nothing to do.
    sqlx::raw_sql(include_str!("sql/migrate_lock.sql")).execute(&mut *connection).await.map_err(at(OPERATION))?;
    sqlx::raw_sql(include_str!("sql/migrate_table.sql")).execute(&mut *connection).await.map_err(at(OPERATION))?;
    let found = applied(connection).await?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
        sqlx::raw_sql(migration.sql).execute(&mut *connection).await.map_err(at(OPERATION))?;
        sqlx::query(include_str!("sql/migrate_note.sql"))
            .bind(migration.version)
            .bind(migration.name)
            .bind(checksum(migration.sql))
            .execute(&mut *connection)
            .await
            .map_err(at(OPERATION))?;
        tracing::info!(version = migration.version, name = migration.name, "migrated");
    }
    Ok(Done::Commit((found, SCHEMA)))
}

/// The highest version applied; 0 where there is none.
async fn applied(connection: &mut PgConnection) -> Result<i64, StoreError> {
    let rows =
        sqlx::query(include_str!("sql/migrate_applied.sql")).fetch_all(connection).await.map_err(at(OPERATION))?;
    let mut highest = 0;
    for row in &rows {
        let version: i64 = row.try_get("version").map_err(at(OPERATION))?;
        let sum: String = row.try_get("checksum").map_err(at(OPERATION))?;
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
        let mut names: Vec<String> = std::fs::read_dir("migrations/postgres")
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
