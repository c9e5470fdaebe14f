//! Reads the store for the board, so that the HTTP port can answer from memory. Apart from the checks: it may be slower.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::board::Board;
use crate::domain::ElectionName;
use crate::domain::instruction::InstructionState;
use crate::domain::unit::UnitState;
use crate::store::{PayoutFilter, StatusView, Store, StoreError, UnitFilter};
use crate::web::Details;

/// How often the status is read, and the rest of the page while somebody looks at it.
const EVERY: Duration = Duration::from_secs(5);
/// Nobody has looked at the page for a while: its details are read each so many times.
const SELDOM: u32 = 6;
/// Rows of each list.
const ROWS: u32 = 20;
/// Terms, refusals and acts: imports are among the acts, and are left out of the page.
const HISTORY_ROWS: u32 = 200;

/// Reads until told to stop. `all`: the elections that this replica stands for, where those are all that its schedule names.
pub(super) async fn read(
    store: Arc<dyn Store>,
    board: Arc<Board>,
    all: Option<Vec<ElectionName>>,
    stop: CancellationToken,
) {
    let mut turn = 0_u32;
    let mut named = BTreeSet::new();
    loop {
        match tokio::time::timeout(EVERY, store.status()).await {
            Ok(Ok(status)) => {
                let in_force = board.elections_in_force();
                for election in all.iter().flat_map(|all| left_behind(&status, all)) {
                    // A new one is stood for by replicas that started since.
                    if !in_force.contains(election) && named.insert(election.clone()) {
                        tracing::error!(%election, "runs are open in an election that the schedule names no more: nobody ends them \
                            unless a replica stands for it; name it in replica.elections until they have ended");
                    }
                }
                board.store_status(status);
            }
            // The health checks say what is wrong; the status page shows the age of what it has.
            Ok(Err(error)) => tracing::debug!(%error, "the store's status could not be read"),
            Err(_elapsed) => tracing::debug!("the store's status took too long"),
        }
        if turn.is_multiple_of(SELDOM) || board.is_looked_at() {
            match tokio::time::timeout(EVERY, details(&*store)).await {
                Ok(Ok(details)) => board.store_details(details),
                Ok(Err(error)) => tracing::debug!(%error, "the status page's details could not be read"),
                Err(_elapsed) => tracing::debug!("the status page's details took too long"),
            }
        }
        turn = turn.wrapping_add(1);
        if stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_none() {
            return;
        }
    }
}

/// Elections with open runs that are not among these. Their last job was moved or removed, and a restart has forgotten them; a later
/// run of a job that moved waits for its earlier one there.
fn left_behind<'a>(status: &'a StatusView, stood_for: &[ElectionName]) -> BTreeSet<&'a ElectionName> {
    let open = status.runs.iter().filter(|run| run.state.is_open()).map(|run| &run.election);
    open.filter(|election| !stood_for.contains(election)).collect()
}

async fn details(store: &dyn Store) -> Result<Details, StoreError> {
    let aside = UnitFilter { state: Some(UnitState::SetAside), limit: ROWS, ..UnitFilter::default() };
    let mut in_doubt = Vec::new();
    for state in [InstructionState::Unknown, InstructionState::Held] {
        let filter =
            PayoutFilter { state: Some(state), run: None, merchant: None, key: None, above: None, limit: ROWS };
        in_doubt.extend(store.payouts(&filter).await?);
    }
    Ok(Details {
        history: store.history(HISTORY_ROWS).await?,
        set_aside: store.units(&aside).await?,
        in_doubt,
        receivers: store.receivers().await?,
    })
}
