//! Where the file stands in its own history: its identity, given when it was made, and the number of its last fenced
//! transaction. Found out on each new session of a tenure, so that a file that was restored from a copy is noticed before
//! anything is written to it, as far as somebody remembers: the lease file beside it does, as long as that is not restored too.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::columns::count;
use super::error::at;
use super::tx::Done;
use crate::store::{Lineage, StoreError};

/// Reads where the store stands.
pub(super) async fn read(connection: &mut SqliteConnection, operation: &'static str) -> Result<Lineage, StoreError> {
    let row = sqlx::query(include_str!("sql/lineage.sql")).fetch_one(connection).await.map_err(at(operation))?;
    Ok(Lineage {
        system_identifier: row.try_get("system_identifier").map_err(at(operation))?,
        // A file has no timelines.
        timeline: 0,
        position: count(&row, "position").map_err(at(operation))?,
    })
}

/// Reads where the store stands, inside of a fenced transaction, and compares.
pub(super) async fn checked(
    connection: &mut SqliteConnection,
    baseline: &Baseline,
) -> Result<Done<Lineage>, StoreError> {
    baseline.compare(connection, "lineage").await.map(Done::RollBack)
}

/// The last place that the store was known to stand at; it only goes forward.
#[derive(Debug)]
pub(super) struct Baseline(Mutex<Lineage>);

impl Baseline {
    pub(super) fn new(lineage: Lineage) -> Self {
        Self(Mutex::new(lineage))
    }

    /// Compares the store behind a connection with the last place known, and moves that forward.
    ///
    /// # Errors
    /// [`StoreError::Forgot`] names what differs.
    pub(super) async fn compare(
        &self,
        connection: &mut SqliteConnection,
        operation: &'static str,
    ) -> Result<Lineage, StoreError> {
        // What was known before asking: sessions compare at the same time, and their answers may overtake each other.
        let known = self.known().clone();
        let found = read(connection, operation).await?;
        differs(&known, &found)?;
        let mut last = self.known();
        last.position = last.position.max(found.position);
        Ok(found)
    }

    fn known(&self) -> MutexGuard<'_, Lineage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn differs(known: &Lineage, found: &Lineage) -> Result<(), StoreError> {
    let detail = if found.system_identifier != known.system_identifier {
        format!("file identity {}, expected {}", found.system_identifier, known.system_identifier)
    } else if found.timeline != known.timeline {
        format!("timeline {}, expected {}", found.timeline, known.timeline)
    } else if found.position < known.position {
        format!("fenced transaction {} is the last, expected at least {}", found.position, known.position)
    } else {
        return Ok(());
    };
    Err(StoreError::Forgot { detail })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lineage(file: &str, position: u64) -> Lineage {
        Lineage { system_identifier: file.to_owned(), timeline: 0, position }
    }

    #[test]
    fn a_file_that_went_back_is_noticed() {
        let known = lineage("7", 150);
        assert_eq!(differs(&known, &lineage("7", 150)), Ok(()));
        for (other, word) in [(lineage("8", 200), "identity"), (lineage("7", 149), "transaction 149")] {
            let error = differs(&known, &other).expect_err(word);
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
