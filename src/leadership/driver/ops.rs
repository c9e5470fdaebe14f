//! One task per operation at the coordinator: calls the port, turns what it answers into an event.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::domain::ElectionName;
use crate::leadership::coordinator::{Coordinator, CoordinatorError};
use crate::leadership::lease::ATTEMPT_LIMIT;
use crate::leadership::machine::{Campaigned, Event, Failed, OpId};
use crate::leadership::record::{Campaign, CampaignOutcome, LeaseId, Members, ReplicaRecord, Revision};

/// What the shell allows an operation, whatever the adapter does with its own deadline.
const OPERATION_LIMIT: Duration = ATTEMPT_LIMIT.saturating_mul(2);

/// An answer, with what the shell keeps of it for itself.
pub(super) struct Answer {
    pub(super) event: Event,
    pub(super) members: Option<Members>,
    pub(super) error: Option<String>,
}

async fn within<T>(
    operation: impl Future<Output = Result<T, CoordinatorError>>,
) -> (Result<T, Failed>, Option<String>) {
    match tokio::time::timeout(OPERATION_LIMIT, operation).await {
        Ok(Ok(outcome)) => (Ok(outcome), None),
        Ok(Err(error)) => (Err(Failed), Some(error.to_string())),
        Err(_) => (Err(Failed), Some(format!("no answer from the coordinator within {OPERATION_LIMIT:?}"))),
    }
}

fn answer((event, error): (Event, Option<String>)) -> Answer {
    Answer { event, members: None, error }
}

type Port = Arc<dyn Coordinator>;

pub(super) async fn grant(port: Port, op: OpId, ttl: Duration) -> Answer {
    let (outcome, error) = within(port.grant(ttl)).await;
    answer((Event::Granted(op, outcome), error))
}

pub(super) async fn renew(port: Port, op: OpId, lease: LeaseId) -> Answer {
    let (outcome, error) = within(port.renew(lease)).await;
    answer((Event::Renewed(op, outcome), error))
}

pub(super) async fn revoke(port: Port, op: OpId, lease: LeaseId) -> Answer {
    let (_, error) = within(port.revoke(lease)).await;
    answer((Event::Revoked(op), error))
}

pub(super) async fn read(port: Port, op: OpId, election: ElectionName) -> Answer {
    let (outcome, error) = within(port.read_election(&election)).await;
    answer((Event::Read(op, election, outcome), error))
}

pub(super) async fn campaign(port: Port, op: OpId, campaign: Campaign) -> Answer {
    let (outcome, error) = within(port.campaign(&campaign)).await;
    let election = campaign.record.election.clone();
    let outcome = outcome.map(|outcome| match outcome {
        CampaignOutcome::Won { revision } => Campaigned::Won { revision, record: campaign.record },
        CampaignOutcome::Lost(state) => Campaigned::Lost(state),
        CampaignOutcome::LeaseGone => Campaigned::LeaseGone,
    });
    answer((Event::Campaigned(op, election, outcome), error))
}

pub(super) async fn resign(port: Port, op: OpId, election: ElectionName, won: Revision) -> Answer {
    let (outcome, error) = within(port.resign(&election, won)).await;
    answer((Event::Resigned(op, election, outcome), error))
}

pub(super) async fn register(port: Port, op: OpId, record: ReplicaRecord) -> Answer {
    let (outcome, error) = within(port.put_replica(&record)).await;
    answer((Event::Registered(op, outcome), error))
}

pub(super) async fn survey(port: Port, op: OpId) -> Answer {
    let (listed, error) = within(port.list_replicas()).await;
    let members = tokio::time::timeout(OPERATION_LIMIT, port.members()).await.unwrap_or_default();
    let count = listed.map(|replicas| u32::try_from(replicas.len()).unwrap_or(u32::MAX));
    Answer { event: Event::Surveyed(op, count), members: Some(members), error }
}

/// Watches until the watch is over. It only wakes.
pub(super) async fn watch(port: Port, election: ElectionName, from: Revision, wakes: mpsc::Sender<Event>) {
    let opened = tokio::time::timeout(OPERATION_LIMIT, port.watch(&election, from)).await;
    if let Ok(Ok(mut watch)) = opened {
        while watch.woken().await.is_ok() {
            if wakes.send(Event::Woken(election.clone())).await.is_err() {
                return;
            }
        }
    }
    // Where nobody listens any more, the thread is about to end.
    let _listened = wakes.send(Event::WatchEnded(election)).await;
}
