//! The sending of payouts: which receivers there is something for, and a lane for each.
//!
//! A lane ([`lane`]) takes, sends and records for one receiver, known by its origin, in a task of its own, so that one that is
//! slow or stopped holds up no other. What a try came to is decided purely ([`fates`]); what may leave at all, by the store.
//!
//! Invariants:
//! - One lane per receiver and tenure: it alone takes for that receiver, so it knows what it has in hand.
//! - A payout stands `sending` under this term before it waits for its leave (the gate, then the halt), and its first byte
//!   follows the leave.
//! - Nothing here remembers what is due: it is read from the store, when a batch has settled and at every sweep.
//! - A lane takes for the jobs that send to its receiver now, as the last sweep read their definitions.
//!
//! Deliberately absent: retries of a request (each is a try of its own, taken anew), and any thought on whether one may be
//! sent again.

mod attempt;
mod fates;
mod lane;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use self::attempt::LaneJob;
use self::lane::Lane;
use super::scope::{Stop, Tenure};
use crate::domain::job::{HandlerDefinition, JobDefinition, LedgerDefinition, PayoutDefinition};
use crate::domain::outside::ReceiverDefinition;
use crate::settlement::Fence;
use crate::store::PayoutJob;

/// Between two looks for payouts that nobody woke this for: released by an operator, due again, left by a lower term.
const SWEEP: Duration = Duration::from_secs(1);

/// A lane under way.
struct Running {
    jobs: watch::Sender<Arc<[LaneJob]>>,
    wake: Arc<Notify>,
}

type Ends = FuturesUnordered<JoinHandle<Option<Result<(), Stop>>>>;

/// Sends payouts until the tenure stops, then waits for what its lanes have in hand.
pub(super) async fn payouts(tenure: Tenure) {
    let mut lanes: BTreeMap<String, Running> = BTreeMap::new();
    let mut ends = Ends::new();
    loop {
        tokio::select! {
            biased;
            () = tenure.stopping.cancelled() => break,
            Some(end) = ends.next() => ended(&tenure, end),
            () = tenure.payouts.notified() => {}
            () = tokio::time::sleep(SWEEP) => {}
        }
        match tenure.begin("payout_jobs", || tenure.store.payout_jobs()).await {
            Ok(jobs) => {
                let mut jobs = by_origin(&tenure, jobs);
                for (origin, lane) in &lanes {
                    // A job that was edited to send elsewhere, or nowhere, is not sent by the lane that it had.
                    lane.jobs.send_replace(jobs.remove(origin).unwrap_or_else(|| Arc::from([])));
                    lane.wake.notify_one();
                }
                for (origin, jobs) in jobs {
                    let lane = start(&tenure, &origin, jobs, &mut ends);
                    lanes.insert(origin, lane);
                }
            }
            Err(Stop::Ending) => break,
            // Asked again at the next sweep.
            Err(Stop::Halted) => {}
            Err(Stop::Failed(error)) => {
                tracing::error!(claim = %tenure.claim, %error, "the jobs with payouts could not be read");
            }
        }
    }
    // A lane ends by itself once the tenure stops and its answers are recorded.
    while let Some(end) = ends.next().await {
        ended(&tenure, end);
    }
}

fn start(tenure: &Tenure, origin: &str, jobs: Arc<[LaneJob]>, ends: &mut Ends) -> Running {
    let (jobs, from) = watch::channel(jobs);
    let wake = Arc::new(Notify::new());
    let fence = Fence::new(tenure.store.deployment(), &tenure.claim);
    let lane = Lane::new(tenure.clone(), origin.to_owned(), fence, from, Arc::clone(&wake));
    ends.push(tenure.spawn(lane.run()));
    Running { jobs, wake }
}

fn ended(tenure: &Tenure, end: Result<Option<Result<(), Stop>>, tokio::task::JoinError>) {
    match end {
        Ok(None | Some(Ok(()) | Err(Stop::Ending | Stop::Halted))) => {}
        // Payouts of it may be on the wire without anybody who records what comes of them: only a promotion may touch those.
        Ok(Some(Err(Stop::Failed(error)))) => tenure.fault(&format!("a lane of payouts failed: {error}")),
        Err(error) => tenure.fault(&format!("the task of a lane of payouts failed: {error}")),
    }
}

/// Who is sent payouts by a job, if anybody.
fn receiver_of(definition: &JobDefinition) -> Option<(&LedgerDefinition, &ReceiverDefinition)> {
    match &definition.handler {
        HandlerDefinition::Ledger(ledger) => match &ledger.payout {
            PayoutDefinition::Http(receiver) => Some((ledger, receiver.as_ref())),
            PayoutDefinition::None => None,
        },
        HandlerDefinition::Sql(_) | HandlerDefinition::Http(_) | HandlerDefinition::Command(_) => None,
        #[cfg(feature = "chaos")]
        HandlerDefinition::Probe(_) => None,
    }
}

/// The jobs that send, by their receiver's origin. One whose receiver cannot be set up is said, and waits.
fn by_origin(tenure: &Tenure, jobs: Vec<PayoutJob>) -> BTreeMap<String, Arc<[LaneJob]>> {
    let mut lanes: BTreeMap<String, Vec<LaneJob>> = BTreeMap::new();
    for PayoutJob { id, definition } in jobs {
        let Some((ledger, receiver)) = receiver_of(&definition) else { continue };
        match tenure.deps.receivers.of(receiver) {
            Ok(receiver) => lanes.entry(receiver.origin()).or_default().push(LaneJob {
                id,
                name: definition.name.clone(),
                receiver,
                maximum: ledger.maximum_payout.clone(),
                retry: definition.retry,
            }),
            Err(error) => {
                tracing::error!(claim = %tenure.claim, job = %definition.name, %error, "a receiver cannot be used: its payouts wait");
            }
        }
    }
    lanes.into_iter().map(|(origin, jobs)| (origin, Arc::from(jobs))).collect()
}
