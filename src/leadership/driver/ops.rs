//! One task per operation at the coordinator: calls the port, turns what it answers into an event.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::mpsc;

use crate::domain::{Claim, ElectionName, ReplicaId};
use crate::leadership::coordinator::{Coordinator, CoordinatorError};
use crate::leadership::lease::ATTEMPT_LIMIT;
use crate::leadership::machine::{Campaigned, Event, Failed, HandedOver, OpId, Survey};
use crate::leadership::record::{
    Campaign, CampaignOutcome, LeaderRecord, LeaseId, Members, ReplicaRecord, Revision, Transfer, TransferOutcome, Win,
};

/// What the shell allows an operation, whatever the adapter does with its own deadline.
const OPERATION_LIMIT: Duration = ATTEMPT_LIMIT.saturating_mul(2);

/// An answer, with what the shell keeps of it for itself.
pub(super) struct Answer {
    pub(super) event: Event,
    pub(super) members: Option<Members>,
    pub(super) replicas: Option<Vec<ReplicaRecord>>,
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
    Answer { event, members: None, replicas: None, error }
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

pub(super) async fn resign(port: Port, op: OpId, election: ElectionName, won: Win) -> Answer {
    let (outcome, error) = within(port.resign(&election, won)).await;
    answer((Event::Resigned(op, election, outcome), error))
}

/// A hand-over, as it is wanted.
pub(super) struct HandOver {
    pub(super) me: ReplicaId,
    /// What the successor gets.
    pub(super) claim: Claim,
    pub(super) to: Option<ReplicaId>,
    pub(super) won: Win,
    pub(super) term_revision: Revision,
    /// The store's time, for the record.
    pub(super) at: Option<DateTime<Utc>>,
}

/// Looks who is there, and hands over to the one that is named, or to one that may lead.
pub(super) async fn transfer(port: Port, op: OpId, wish: HandOver) -> Answer {
    let election = wish.claim.election.clone();
    let handing = async {
        let replicas = port.list_replicas().await?;
        let Some(heir) = heir(&replicas, &wish) else { return Ok(HandedOver::ToNobody) };
        let record = LeaderRecord {
            election: wish.claim.election.clone(),
            leader_id: heir.replica_id.clone(),
            tenure_id: wish.claim.tenure_id,
            lease_id: heir.lease_id,
            term: wish.claim.term,
            host: heir.host.clone(),
            address: heir.address.clone(),
            version: heir.version.clone(),
            schedule_fingerprint: heir.schedule_fingerprint.clone(),
            won_at: wish.at,
        };
        let transfer = Transfer { won: wish.won, term_revision: wish.term_revision, record };
        Ok(match port.transfer(&transfer).await? {
            TransferOutcome::Transferred { .. } => HandedOver::To(heir.replica_id.clone()),
            TransferOutcome::NotTransferred { .. } => HandedOver::ToNobody,
        })
    };
    let (outcome, error) = within(handing).await;
    answer((Event::Transferred(op, election, outcome), error))
}

/// Who is to lead next: the one that is named, if it is there and may; else one that may, rather with the schedule of the one
/// that hands over.
fn heir<'a>(replicas: &'a [ReplicaRecord], wish: &HandOver) -> Option<&'a ReplicaRecord> {
    let own = replicas.iter().find(|replica| replica.replica_id == wish.me).map(|own| &own.schedule_fingerprint);
    replicas
        .iter()
        .filter(|replica| replica.replica_id != wish.me && replica.eligible.contains(&wish.claim.election))
        .filter(|replica| wish.to.as_ref().is_none_or(|to| *to == replica.replica_id))
        .min_by_key(|replica| (Some(&replica.schedule_fingerprint) != own, &replica.replica_id))
}

pub(super) async fn register(port: Port, op: OpId, record: ReplicaRecord) -> Answer {
    let (outcome, error) = within(port.put_replica(&record)).await;
    answer((Event::Registered(op, outcome), error))
}

pub(super) async fn survey(port: Port, op: OpId, me: ReplicaId) -> Answer {
    let (listed, error) = within(port.list_replicas()).await;
    let members = tokio::time::timeout(OPERATION_LIMIT, port.members()).await.unwrap_or_default();
    let survey = listed.as_ref().map(|replicas| Survey {
        replicas: u32::try_from(replicas.len()).unwrap_or(u32::MAX),
        own: replicas.iter().find(|found| found.replica_id == me).map(|own| (own.lease_id, own.eligible.clone())),
    });
    let survey = survey.map_err(|failed| *failed);
    Answer { event: Event::Surveyed(op, survey), members: Some(members), replicas: listed.ok(), error }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{TenureId, Term};

    fn replica(id: &str, fingerprint: &str, eligible: &[&str]) -> ReplicaRecord {
        ReplicaRecord {
            replica_id: ReplicaId::new(id).expect("an id"),
            lease_id: LeaseId(1),
            host: String::new(),
            address: String::new(),
            version: String::new(),
            schedule_fingerprint: fingerprint.to_owned(),
            eligible: eligible.iter().map(|name| ElectionName::new(*name).expect("a name")).collect(),
        }
    }

    #[test]
    fn an_election_is_handed_to_who_is_named_or_rather_to_one_with_the_same_schedule() {
        let replicas = [
            replica("a", "old", &["main"]),
            replica("b", "new", &["main"]),
            replica("c", "new", &["other"]),
            replica("d", "new", &["main"]),
            replica("me", "new", &["main"]),
        ];
        let chosen = |to: Option<&str>| {
            let election = ElectionName::new("main").expect("a name");
            let claim = Claim { election, term: Term::new(2).expect("a term"), tenure_id: TenureId(uuid::Uuid::nil()) };
            let to = to.map(|id| ReplicaId::new(id).expect("an id"));
            let me = ReplicaId::new("me").expect("an id");
            let wish = HandOver {
                me,
                claim,
                to,
                won: Win { revision: Revision(1), lease: LeaseId(1) },
                term_revision: Revision(1),
                at: None,
            };
            heir(&replicas, &wish).map(|heir| heir.replica_id.to_string())
        };
        assert_eq!(chosen(None).as_deref(), Some("b"));
        assert_eq!(chosen(Some("a")).as_deref(), Some("a"), "named is named");
        for nobody in ["c", "me", "gone"] {
            assert_eq!(chosen(Some(nobody)), None, "{nobody} may not");
        }
    }
}
