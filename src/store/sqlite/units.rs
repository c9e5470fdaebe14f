//! Lists of units.

use sqlx::sqlite::SqliteConnection;

use crate::store::{StoreError, UnitFilter, UnitView};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn units(
    _connection: &mut SqliteConnection,
    _filter: &UnitFilter,
) -> Result<Vec<UnitView>, StoreError> {
    Err(StoreError::Broken { operation: "units", detail: "not written yet".to_owned() })
}
