//! Carries out what the machine commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::ops::{self, Answer};
use super::{LeadershipSettings, TenureGrant, TenureOrder};
use crate::clock;
use crate::domain::{Claim, ElectionName, Moment};
use crate::leadership::coordinator::Coordinator;
use crate::leadership::gate::{Gate, SessionWindow, TenureFlags};
use crate::leadership::machine::{Command, EndMode, Event, LeadershipView, Note, Report};
use crate::leadership::observer::Observer;
use crate::leadership::reason::{ExitReason, Suspicion};
use crate::leadership::record::{Campaign, LeaderRecord, LeaseId, Members, ReplicaRecord};

/// Different reasons that are logged while the coordinator is away: with several members each has its own.
const MOST_SAID: usize = 16;

pub(super) struct Shell {
    settings: LeadershipSettings,
    port: Arc<dyn Coordinator>,
    observer: Arc<dyn Observer>,
    orders: mpsc::UnboundedSender<TenureOrder>,
    wakes: mpsc::Sender<Event>,
    operations: JoinSet<Answer>,
    watches: JoinSet<()>,
    watching: BTreeMap<ElectionName, AbortHandle>,
    windows: BTreeMap<LeaseId, Arc<SessionWindow>>,
    tenures: BTreeMap<Claim, Arc<TenureFlags>>,
    members: Members,
    /// When the coordinator last told where an election stands.
    seen_at: BTreeMap<ElectionName, Moment>,
    /// What the last operation that failed was told.
    last_error: Option<String>,
    /// While the coordinator is known not to answer: the reasons that were said, each once.
    down: Option<Vec<String>>,
    finished: bool,
}

impl Shell {
    pub(super) fn new(
        settings: LeadershipSettings,
        port: Arc<dyn Coordinator>,
        observer: Arc<dyn Observer>,
        orders: mpsc::UnboundedSender<TenureOrder>,
        wakes: mpsc::Sender<Event>,
    ) -> Self {
        Self {
            settings,
            port,
            observer,
            orders,
            wakes,
            operations: JoinSet::new(),
            watches: JoinSet::new(),
            watching: BTreeMap::new(),
            windows: BTreeMap::new(),
            tenures: BTreeMap::new(),
            members: Members::default(),
            seen_at: BTreeMap::new(),
            last_error: None,
            down: None,
            finished: false,
        }
    }

    pub(super) const fn finished(&self) -> bool {
        self.finished
    }

    pub(super) const fn members(&self) -> Members {
        self.members
    }

    /// The next answer of the coordinator; never, while nothing is asked. Cancel-safe.
    pub(super) async fn answered(&mut self) -> Event {
        loop {
            while self.watches.try_join_next().is_some() {}
            match self.operations.join_next().await {
                Some(Ok(answer)) => {
                    if let Some(members) = answer.members {
                        self.members = members;
                        self.observer.members(members);
                    }
                    if let Some(replicas) = answer.replicas {
                        self.observer.replicas(replicas);
                    }
                    if let Some(error) = answer.error {
                        self.failed(error);
                    }
                    if let Event::Read(_, election, Ok(_)) | Event::Campaigned(_, election, Ok(_)) = &answer.event {
                        self.seen_at.insert(election.clone(), clock::boottime());
                    }
                    return answer.event;
                }
                Some(Err(error)) => {
                    // The machine would wait for ever for an operation that panicked.
                    tracing::error!(%error, "an operation at the coordinator did not end as it should");
                    (self.settings.exit)(ExitReason::SessionThreadEnded);
                }
                None => std::future::pending::<()>().await,
            }
        }
    }

    /// The view with what the machine does not keep: why the coordinator does not answer, and how old is what it told.
    pub(super) fn complete(&self, mut view: LeadershipView) -> LeadershipView {
        view.trouble = self.trouble().cloned();
        for election in &mut view.elections {
            election.seen_at = self.seen_at.get(&election.election).copied();
        }
        view
    }

    /// Keeps what an operation was told, and says it where the coordinator is known to be away for another reason.
    fn failed(&mut self, error: String) {
        if let Some(said) = &mut self.down
            && said.len() < MOST_SAID
            && !said.contains(&error)
        {
            tracing::warn!(error, "the coordinator still does not answer");
            said.push(error.clone());
        }
        self.last_error = Some(error);
    }

    /// Why the coordinator does not answer, where it does not.
    fn trouble(&self) -> Option<&String> {
        self.last_error.as_ref().filter(|_| self.down.is_some())
    }

    /// What the shell itself has to know of a report.
    pub(super) fn note_report(&mut self, event: &Event) {
        match event {
            Event::Reported(Report::ScheduleFingerprint(fingerprint)) => {
                self.settings.replica.schedule_fingerprint.clone_from(fingerprint);
            }
            Event::Reported(Report::PromotionFailed { claim, why }) => {
                tracing::error!(election = %claim.election, term = %claim.term, why, "the promotion failed");
            }
            Event::Reported(Report::Fault { claim, why }) => {
                tracing::error!(election = %claim.election, term = %claim.term, why, "the tenure failed");
            }
            Event::Reported(Report::Fenced { claim, found }) => {
                let found = found.as_ref().map(ToString::to_string);
                tracing::warn!(election = %claim.election, term = %claim.term, found, "the store refused the term");
            }
            Event::Reported(Report::Eligible { election, eligible: Err(why) }) => {
                tracing::info!(%election, why, "may not lead");
            }
            Event::Reported(Report::FenceTerm { election, term: Err(why) }) => {
                tracing::warn!(%election, why, "the fence's term could not be read");
            }
            Event::Reported(
                Report::Eligible { eligible: Ok(()), .. }
                | Report::FenceTerm { term: Ok(_), .. }
                | Report::Cordoned(_)
                | Report::HandOver { .. }
                | Report::Accepted { .. }
                | Report::FirstWork { .. }
                | Report::Ended { .. }
                | Report::Beat
                | Report::Drain,
            )
            | Event::Wake
            | Event::Granted(..)
            | Event::Renewed(..)
            | Event::Revoked(..)
            | Event::Read(..)
            | Event::Campaigned(..)
            | Event::Resigned(..)
            | Event::Transferred(..)
            | Event::Registered(..)
            | Event::Surveyed(..)
            | Event::Woken(..)
            | Event::WatchEnded(..) => {}
        }
    }

    pub(super) fn carry_out(&mut self, commands: Vec<Command>) {
        for command in commands {
            self.carry(command);
        }
    }

    fn carry(&mut self, command: Command) {
        let port = Arc::clone(&self.port);
        match command {
            Command::Grant { op, ttl } => self.ask(ops::grant(port, op, ttl)),
            Command::Renew { op, lease } => self.ask(ops::renew(port, op, lease)),
            Command::Revoke { op, lease } => self.ask(ops::revoke(port, op, lease)),
            Command::Read { op, election } => self.ask(ops::read(port, op, election)),
            Command::Resign { op, election, won } => self.ask(ops::resign(port, op, election, won)),
            Command::Survey { op } => self.ask(ops::survey(port, op, self.settings.replica.id.clone())),
            Command::Campaign { op, claim, lease, vacancy, term_revision } => {
                let campaign = Campaign { record: self.leader_record(claim, lease), vacancy, term_revision };
                self.ask(ops::campaign(port, op, campaign));
            }
            Command::Transfer { op, claim, to, won, term_revision } => {
                let (me, at) = (self.settings.replica.id.clone(), (self.settings.store_time)());
                let wish = ops::HandOver { me, claim, to, won, term_revision, at };
                self.ask(ops::transfer(port, op, wish));
            }
            Command::Register { op, lease, eligible } => {
                let record = self.replica_record(lease, eligible);
                self.ask(ops::register(port, op, record));
            }
            Command::Watch { election, from } => {
                let task = self.watches.spawn(ops::watch(port, election.clone(), from, self.wakes.clone()));
                if let Some(before) = self.watching.insert(election, task) {
                    before.abort();
                }
            }
            Command::ReadFence { election } => self.order(TenureOrder::ReadFence { election }),
            Command::Begin { claim, won, record, lease, adopted, vacant_since } => {
                let flags = Arc::new(TenureFlags::default());
                let gate = Gate::new(self.window(lease), Arc::clone(&flags), Arc::new(clock::boottime));
                self.tenures.insert(claim.clone(), flags);
                let won_at = clock::boottime();
                let grant = TenureGrant { claim, gate, record, won, won_at, adopted, vacant_since };
                self.order(TenureOrder::Begin(grant));
            }
            Command::Accept { claim } => {
                if let Some(flags) = self.tenures.get(&claim) {
                    flags.accept();
                }
            }
            Command::End { claim, mode, reason } => {
                if mode == EndMode::Abrupt
                    && let Some(flags) = self.tenures.get(&claim)
                {
                    flags.close();
                }
                self.order(TenureOrder::End { claim, mode, reason });
            }
            Command::Forget { claim } => {
                if let Some(flags) = self.tenures.remove(&claim) {
                    flags.close();
                }
            }
            Command::Open { lease, deadline, fresh_until } => self.window(lease).open(deadline, fresh_until),
            Command::Hold { lease } => self.window(lease).hold(),
            Command::Close { lease } => {
                if let Some(window) = self.windows.remove(&lease) {
                    window.close();
                }
            }
            Command::Note(note) => self.note(note),
            Command::Exit(reason) => (self.settings.exit)(reason),
            Command::Finished => self.finished = true,
        }
    }

    fn ask(&mut self, operation: impl Future<Output = Answer> + Send + 'static) {
        self.operations.spawn(operation);
    }

    fn order(&self, order: TenureOrder) {
        if self.orders.send(order).is_err() {
            // Nobody carries orders out any more: what they would have begun or ended does not exist, and the machine's own
            // limits end the process if it does.
            tracing::warn!("an order for a tenure found nobody to carry it out");
        }
    }

    fn window(&mut self, lease: LeaseId) -> Arc<SessionWindow> {
        Arc::clone(self.windows.entry(lease).or_insert_with(|| Arc::new(SessionWindow::new())))
    }

    fn leader_record(&self, claim: Claim, lease: LeaseId) -> LeaderRecord {
        let replica = &self.settings.replica;
        LeaderRecord {
            election: claim.election,
            leader_id: replica.id.clone(),
            tenure_id: claim.tenure_id,
            lease_id: lease,
            term: claim.term,
            host: replica.host.clone(),
            address: replica.address.clone(),
            version: replica.version.clone(),
            schedule_fingerprint: replica.schedule_fingerprint.clone(),
            won_at: (self.settings.store_time)(),
        }
    }

    fn replica_record(&self, lease: LeaseId, eligible: Vec<ElectionName>) -> ReplicaRecord {
        let replica = &self.settings.replica;
        ReplicaRecord {
            replica_id: replica.id.clone(),
            lease_id: lease,
            host: replica.host.clone(),
            address: replica.address.clone(),
            version: replica.version.clone(),
            schedule_fingerprint: replica.schedule_fingerprint.clone(),
            eligible,
        }
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::Transition { claim, reason } => {
                let (election, term, tenure) = (&claim.election, claim.term, claim.tenure_id);
                tracing::info!(%election, %term, %tenure, reason = reason.as_str(), "leadership changes");
                self.observer.transition(election, reason);
            }
            Note::Session { state, suspicion } => {
                tracing::info!(state = state.as_str(), suspicion = suspicion.map(Suspicion::as_str), "the session");
                self.observer.session(state, suspicion);
            }
            Note::Expired { reason } => {
                tracing::warn!(reason = reason.as_str(), "the lease is lost");
                self.observer.lease_expired();
            }
            Note::RenewalTook(took) => self.observer.renewal(took),
            Note::ElectionTook { election, took } => self.observer.election_took(&election, took),
            Note::TakeoverTook { election, took } => self.observer.takeover_took(&election, took),
            Note::TeardownTook { election, took } => self.observer.teardown_took(&election, took),
            Note::TeardownOverran { election } => self.observer.teardown_overran(&election),
            Note::CoordinatorUp(up) => {
                if up {
                    tracing::info!("the coordinator answers");
                    (self.down, self.last_error) = (None, None);
                } else {
                    tracing::warn!(error = self.last_error, "the coordinator does not answer");
                    self.down = Some(self.last_error.iter().cloned().collect());
                }
                self.observer.coordinator_up(up);
            }
            Note::HandedOver { election, to: Some(successor) } => {
                tracing::info!(%election, %successor, "handed over");
            }
            Note::HandedOver { election, to: None } => {
                tracing::warn!(%election, "could not be handed over: whoever is first gets it");
            }
            Note::Follows { election, leader, term } => tracing::info!(%election, %leader, %term, "follows"),
            Note::LeaselessLeader { election } => {
                tracing::error!(%election, "a leader key without a lease was put by hand: it counts as absent");
            }
            Note::StrangeLeader { election } => {
                tracing::error!(%election, "a leader key that is nobody's was put on this replica's lease by hand: it is deleted");
            }
            Note::TermsUsedUp { election } => {
                tracing::error!(%election, "the terms are used up: nobody can be elected");
            }
            Note::StandsBack { election, time } => {
                tracing::warn!(%election, ?time, "stands back after tenures that ended by own fault");
            }
        }
    }

    /// The thread ends: no gate may stay open.
    pub(super) fn end(&mut self) {
        for flags in std::mem::take(&mut self.tenures).into_values() {
            flags.close();
        }
        for window in std::mem::take(&mut self.windows).into_values() {
            window.close();
        }
        self.operations.abort_all();
        self.watches.abort_all();
    }
}
