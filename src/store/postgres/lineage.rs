//! Where the store stands in its own history: found out on each new session of a tenure, so that a store that forgot
//! (a replica promoted, a restore) is noticed before anything is written to it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::error::at;
use super::tx::Done;
use crate::store::{Lineage, StoreError};

/// Reads where the store stands.
pub(super) async fn read(connection: &mut PgConnection, operation: &'static str) -> Result<Lineage, StoreError> {
    let row = sqlx::query(include_str!("sql/lineage.sql")).fetch_one(connection).await.map_err(at(operation))?;
    let timeline: i32 = row.try_get("timeline").map_err(at(operation))?;
    let position: i64 = row.try_get("position").map_err(at(operation))?;
    Ok(Lineage {
        system_identifier: row.try_get("system_identifier").map_err(at(operation))?,
        timeline: u32::try_from(timeline).unwrap_or(0),
        position: u64::try_from(position).unwrap_or(0),
    })
}

/// Reads where the store stands, inside of a fenced transaction, and compares.
pub(super) async fn checked(connection: &mut PgConnection, baseline: &Baseline) -> Result<Done<Lineage>, StoreError> {
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
        connection: &mut PgConnection,
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
        format!("system identifier {}, expected {}", found.system_identifier, known.system_identifier)
    } else if found.timeline != known.timeline {
        format!("timeline {}, expected {}", found.timeline, known.timeline)
    } else if found.position < known.position {
        format!("write-ahead log at {}, expected at least {}", found.position, known.position)
    } else {
        return Ok(());
    };
    Err(StoreError::Forgot { detail })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lineage(system: &str, timeline: u32, position: u64) -> Lineage {
        Lineage { system_identifier: system.to_owned(), timeline, position }
    }

    #[test]
    fn a_store_that_went_back_is_noticed() {
        let known = lineage("7", 1, 150);
        assert_eq!(differs(&known, &lineage("7", 1, 150)), Ok(()));
        for (other, word) in [
            (lineage("8", 1, 200), "identifier"),
            (lineage("7", 2, 200), "timeline"),
            (lineage("7", 1, 149), "log at 149"),
        ] {
            let error = differs(&known, &other).expect_err(word);
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
