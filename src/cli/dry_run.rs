//! What a manual run would settle, shown and not done.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::error::CommandError;
use crate::domain::job::{HandlerDefinition, JobDefinition, LedgerDefinition};
use crate::store::{PreviewLine, Store};

/// One currency of one run to be; money as text.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Settled {
    currency: String,
    units: u64,
    entries: u64,
    amount: String,
    fees: String,
    payouts: u64,
    paid: String,
}

/// For each cutoff what its run would settle of what is open now; `None` where the job's units come from a query, which is asked
/// only when a run is planned.
pub(super) async fn settles(
    store: &dyn Store,
    job: &JobDefinition,
    cutoffs: &[DateTime<Utc>],
) -> Result<Option<Vec<Vec<Settled>>>, CommandError> {
    let Some(ledger) = ledger(job) else { return Ok(None) };
    // Cutoffs in order: each run takes what those before it left.
    let mut order = cutoffs.to_vec();
    order.sort_unstable();
    order.dedup();
    let mut lines: BTreeMap<usize, Vec<Settled>> = BTreeMap::new();
    for line in store.preview(&job.name, ledger, &order).await? {
        let PreviewLine { cutoff, currency, units, entries, amount, fees, payouts, paid } = line;
        lines.entry(cutoff).or_default().push(Settled { currency, units, entries, amount, fees, payouts, paid });
    }
    let mut of =
        |cutoff: &DateTime<Utc>| order.binary_search(cutoff).ok().and_then(|at| lines.remove(&at)).unwrap_or_default();
    Ok(Some(cutoffs.iter().map(&mut of).collect()))
}

fn ledger(job: &JobDefinition) -> Option<&LedgerDefinition> {
    match &job.handler {
        HandlerDefinition::Ledger(ledger) => Some(ledger),
        HandlerDefinition::Sql(_) | HandlerDefinition::Http(_) | HandlerDefinition::Command(_) => None,
        #[cfg(feature = "chaos")]
        HandlerDefinition::Probe(_) => None,
    }
}

/// The same on one line.
pub(super) fn words(settled: Option<&[Settled]>) -> String {
    match settled {
        None => "what its query gives then".to_owned(),
        Some([]) => "nothing that is open now".to_owned(),
        Some(lines) => {
            let words: Vec<String> = lines
                .iter()
                .map(|line| {
                    format!(
                        "{}: {} units of {} entries, amounts {}, fees {}; {} payouts of {}",
                        line.currency, line.units, line.entries, line.amount, line.fees, line.payouts, line.paid
                    )
                })
                .collect();
            words.join("; ")
        }
    }
}
