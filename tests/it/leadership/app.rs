//! A replica of one process: the session's thread, and the least application that promotes, works and ends tenures.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bursar::clock::boottime;
use bursar::domain::{Claim, ElectionName, Moment, ReplicaId, Term};
use bursar::leadership::etcd::{EtcdConfig, EtcdCoordinator};
use bursar::leadership::{
    Coordinator, ElectionView, ExitReason, Gate, Leadership, LeadershipHandle, LeadershipSettings, NoObserver,
    ReplicaDescription, Report, TenureOrder,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::support::wait::eventually;

/// A condition that does not come about within this will not.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What the store's fence would be, shared by all replicas of a test.
#[derive(Debug, Clone, Default)]
pub(super) struct Fences(Arc<Mutex<HashMap<ElectionName, Claim>>>);

impl Fences {
    fn term(&self, election: &ElectionName) -> Term {
        self.0.lock().expect("unpoisoned").get(election).map_or(Term::NONE, |claim| claim.term)
    }

    /// Accepts a higher term, or the same tenure again.
    fn advance(&self, claim: &Claim) -> Result<(), Claim> {
        let mut fences = self.0.lock().expect("unpoisoned");
        match fences.get(&claim.election) {
            Some(found) if found.term >= claim.term && found != claim => Err(found.clone()),
            Some(_) | None => {
                fences.insert(claim.election.clone(), claim.clone());
                Ok(())
            }
        }
    }
}

/// What a test sees of a replica.
#[derive(Debug, Default)]
struct Seen {
    begun: Vec<(Claim, Gate, Moment)>,
    accepted_at: HashMap<Claim, Moment>,
    ended: Vec<Claim>,
    exits: Vec<ExitReason>,
}

/// How an application behaves.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Manners {
    /// Never reports the end of a tenure.
    pub(super) hangs: bool,
    /// Does not beat.
    pub(super) is_stuck: bool,
}

/// One replica; its thread is drained when dropped.
pub(super) struct App {
    pub(super) handle: LeadershipHandle,
    pub(super) election: ElectionName,
    seen: Arc<Mutex<Seen>>,
    _tasks: JoinSet<()>,
}

impl App {
    pub(super) fn start(id: &str, config: EtcdConfig, ttl: Duration, fences: &Fences, manners: Manners) -> Self {
        let replica = ReplicaDescription {
            id: ReplicaId::new(id).expect("a valid id"),
            host: "test".into(),
            address: String::new(),
            version: "0".into(),
            schedule_fingerprint: "f".into(),
        };
        let election = ElectionName::new("settlement").expect("valid");
        let mut settings = LeadershipSettings::new(
            replica,
            vec![election.clone()],
            ttl,
            Duration::from_secs(1),
            Duration::from_secs(2),
        );
        let seen = Arc::new(Mutex::new(Seen::default()));
        let exits = Arc::clone(&seen);
        settings.exit = Arc::new(move |reason| exits.lock().expect("unpoisoned").exits.push(reason));
        let coordinator = Box::new(move || Arc::new(EtcdCoordinator::new(config)) as Arc<dyn Coordinator>);
        let (handle, orders) = Leadership::start(settings, coordinator, Arc::new(NoObserver)).expect("a thread");
        let mut tasks = JoinSet::new();
        tasks.spawn(carry_out(orders, handle.clone(), fences.clone(), Arc::clone(&seen), manners));
        if !manners.is_stuck {
            let beating = handle.clone();
            tasks.spawn(async move {
                let mut second = tokio::time::interval(Duration::from_secs(1));
                loop {
                    second.tick().await;
                    beating.report(Report::Beat);
                }
            });
        }
        handle.report(Report::Eligible { election: election.clone(), eligible: Ok(()) });
        Self { handle, election, seen, _tasks: tasks }
    }

    pub(super) fn view(&self) -> ElectionView {
        let view = self.handle.view();
        let shown = view.borrow();
        shown.election(&self.election).cloned().expect("stands in it")
    }

    /// The gate of the tenure begun last.
    pub(super) fn gate(&self) -> Option<Gate> {
        self.seen.lock().expect("unpoisoned").begun.last().map(|(_, gate, _)| gate.clone())
    }

    pub(super) fn leads_now(&self) -> bool {
        self.gate().is_some_and(|gate| gate.leads_now())
    }

    /// When the win of the tenure begun last was known here.
    pub(super) fn won_at(&self) -> Option<Moment> {
        self.seen.lock().expect("unpoisoned").begun.last().map(|(_, _, at)| *at)
    }

    pub(super) fn accepted_at(&self, claim: &Claim) -> Option<Moment> {
        self.seen.lock().expect("unpoisoned").accepted_at.get(claim).copied()
    }

    pub(super) fn claims(&self) -> Vec<Claim> {
        self.seen.lock().expect("unpoisoned").begun.iter().map(|(claim, ..)| claim.clone()).collect()
    }

    pub(super) fn ended(&self) -> Vec<Claim> {
        self.seen.lock().expect("unpoisoned").ended.clone()
    }

    pub(super) fn exits(&self) -> Vec<ExitReason> {
        self.seen.lock().expect("unpoisoned").exits.clone()
    }

    pub(super) async fn until_it_leads(&self) -> Claim {
        eventually(PATIENCE, "it leads", async || self.leads_now().then(|| self.claims().pop()).flatten()).await
    }
}

async fn carry_out(
    mut orders: mpsc::UnboundedReceiver<TenureOrder>,
    handle: LeadershipHandle,
    fences: Fences,
    seen: Arc<Mutex<Seen>>,
    manners: Manners,
) {
    while let Some(order) = orders.recv().await {
        match order {
            TenureOrder::ReadFence { election } => {
                let term = Ok(fences.term(&election));
                handle.report(Report::FenceTerm { election, term });
            }
            TenureOrder::Begin(grant) => {
                let claim = grant.claim;
                seen.lock().expect("unpoisoned").begun.push((claim.clone(), grant.gate, grant.won_at));
                match fences.advance(&claim) {
                    Ok(()) => {
                        seen.lock().expect("unpoisoned").accepted_at.insert(claim.clone(), boottime());
                        handle.report(Report::Accepted { claim: claim.clone() });
                        handle.report(Report::FirstWork { claim });
                    }
                    Err(found) => handle.report(Report::Fenced { claim, found: Some(found) }),
                }
            }
            TenureOrder::End { claim, .. } => {
                if !manners.hangs {
                    seen.lock().expect("unpoisoned").ended.push(claim.clone());
                    handle.report(Report::Ended { claim });
                }
            }
        }
    }
}
