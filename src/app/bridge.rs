//! Between leadership and tenures, which do not know each other: orders one way, reports the other, one to one.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::board::Board;
use super::memory::CoordinatorMemory;
use crate::domain::{Claim, ElectionName, Moment, Term};
use crate::leadership::record;
use crate::leadership::{self, Coordinator, EndMode, LeadershipHandle, Report, TenureOrder};
use crate::store::FenceHolder;
use crate::tenure::{Begin, Ending, Gate, GateClosed, Order, Reports, Win};

/// The session's gate, as tenures ask it.
struct SessionGate(leadership::Gate);

#[async_trait]
impl Gate for SessionGate {
    async fn pass(&self) -> Result<(), GateClosed> {
        self.0.pass().await.map_err(|leadership::GateClosed| GateClosed)
    }

    fn deadline(&self) -> watch::Receiver<Moment> {
        self.0.deadline()
    }
}

/// Translates an order; a begun tenure's gate goes on the board, so that whether it leads is asked there.
fn translate(order: TenureOrder, board: &Board, coordinator: &Arc<dyn Coordinator>) -> Order {
    match order {
        TenureOrder::Begin(grant) => {
            board.tenure_begins(&grant.claim.election, grant.gate.clone());
            let memory = CoordinatorMemory::new(
                Arc::clone(coordinator),
                record::Win { revision: grant.won, lease: grant.record.lease_id },
            );
            Order::Begin(Begin {
                claim: grant.claim,
                gate: Arc::new(SessionGate(grant.gate)),
                memory: Arc::new(memory),
                win: Win {
                    handed_over: grant.adopted,
                    vacant_for: grant.vacant_since.map(|since| grant.won_at.since(since)),
                    at: grant.won_at,
                },
            })
        }
        TenureOrder::End { claim, mode, reason } => {
            let ending = match mode {
                EndMode::Planned { drain } => Ending::Planned { drain },
                EndMode::Abrupt => Ending::Abrupt,
            };
            Order::End { claim, ending, reason: reason.as_str().to_owned() }
        }
        TenureOrder::ReadFence { election } => Order::ReadFence { election },
    }
}

/// Hands leadership's orders to the supervisor, until one of the two is gone.
pub(super) async fn hand_over_orders(
    mut from: mpsc::UnboundedReceiver<TenureOrder>,
    to: mpsc::UnboundedSender<Order>,
    board: Arc<Board>,
    coordinator: Arc<dyn Coordinator>,
) {
    // Connected before it is needed: the first step of a promotion asks it. Failing now means nothing.
    let mut connecting = JoinSet::new();
    let client = Arc::clone(&coordinator);
    connecting.spawn(async move { client.list_replicas().await });
    while let Some(order) = from.recv().await {
        if to.send(translate(order, &board, &coordinator)).is_err() {
            return;
        }
    }
}

/// What tenures report, for the session's thread.
pub(super) struct ReportsToLeadership {
    pub(super) leadership: LeadershipHandle,
    pub(super) board: Arc<Board>,
}

impl Reports for ReportsToLeadership {
    fn fence_term(&self, election: &ElectionName, term: Result<Term, String>) {
        self.leadership.report(Report::FenceTerm { election: election.clone(), term });
    }

    fn accepted(&self, claim: &Claim) {
        self.leadership.report(Report::Accepted { claim: claim.clone() });
    }

    fn first_work(&self, claim: &Claim) {
        self.leadership.report(Report::FirstWork { claim: claim.clone() });
    }

    fn promotion_failed(&self, claim: &Claim, why: &str) {
        self.leadership.report(Report::PromotionFailed { claim: claim.clone(), why: why.to_owned() });
    }

    fn fenced(&self, claim: &Claim, found: Option<FenceHolder>) {
        let election = &claim.election;
        let found =
            found.map(|found| Claim { election: election.clone(), term: found.term, tenure_id: found.tenure_id });
        self.leadership.report(Report::Fenced { claim: claim.clone(), found });
    }

    fn fault(&self, claim: &Claim, why: &str) {
        self.leadership.report(Report::Fault { claim: claim.clone(), why: why.to_owned() });
    }

    fn ended(&self, claim: &Claim) {
        self.leadership.report(Report::Ended { claim: claim.clone() });
    }

    fn beat(&self) {
        self.board.beat();
        self.leadership.report(Report::Beat);
    }
}
