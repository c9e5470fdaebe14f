//! The machine under hand-made sequences of events, and the rig that makes them.

mod electing;
mod ending;
mod exploration;
mod session;
mod simulation;

use std::time::Duration;

use uuid::Uuid;

use super::{
    Campaigned, Command, EndMode, Event, Failed, HandedOver, Luck, Machine, Note, Now, OpId, Report, Settings, Survey,
};
use crate::domain::{Claim, ElectionName, Moment, ReplicaId, TenureId, Term};
use crate::leadership::reason::{EndReason, SessionState};
use crate::leadership::record::{
    ElectionState, Grant, LeaderRecord, LeaseId, Members, RenewOutcome, Revision, SeenLeader, Transfer,
    TransferOutcome, Vacancy, Win,
};

const TTL: Duration = Duration::from_secs(5);
const LEASE: LeaseId = LeaseId(77);
const RENEWED: Result<RenewOutcome, Failed> = Ok(RenewOutcome::Renewed { ttl: TTL });
/// As [`Rig::won`] wins.
const WIN: Win = Win { revision: Revision(20), lease: LEASE };
const OTHERS_LEASE: LeaseId = LeaseId(99);

fn ms(ms: u64) -> Moment {
    Moment::after_boot(Duration::from_millis(ms))
}

fn election(name: &str) -> ElectionName {
    ElectionName::new(name).expect("a valid name")
}

fn replica(name: &str) -> ReplicaId {
    ReplicaId::new(name).expect("a valid id")
}

fn term(number: i64) -> Term {
    Term::new(number).expect("not negative")
}

fn record_of(claim: &Claim, leader: &str, lease: LeaseId) -> LeaderRecord {
    LeaderRecord {
        election: claim.election.clone(),
        leader_id: replica(leader),
        tenure_id: claim.tenure_id,
        lease_id: lease,
        term: claim.term,
        host: String::new(),
        address: String::new(),
        version: String::new(),
        schedule_fingerprint: String::new(),
        won_at: None,
    }
}

fn vacant(last_term: i64, revision: i64) -> ElectionState {
    ElectionState {
        leader: None,
        term: term(last_term),
        term_revision: Revision(revision),
        read_at: Revision(revision),
    }
}

fn led(claim: &Claim, leader: &str, lease: LeaseId, revision: i64) -> ElectionState {
    let record = record_of(claim, leader, lease);
    ElectionState {
        leader: Some(SeenLeader { record: Some(record), revision: Revision(revision), lease }),
        term: claim.term,
        term_revision: Revision(revision),
        read_at: Revision(revision),
    }
}

fn others_claim(name: &str, number: i64) -> Claim {
    Claim { election: election(name), term: term(number), tenure_id: TenureId(Uuid::from_u128(u128::MAX)) }
}

/// One machine, and a clock in hand.
#[derive(Clone)]
struct Rig {
    machine: Machine,
    now: Moment,
    luck: u64,
}

impl Rig {
    fn new(elections: &[&str]) -> Self {
        let settings = Settings {
            me: replica("me"),
            elections: elections.iter().map(|name| election(name)).collect(),
            ttl: TTL,
            teardown_budget: Duration::from_secs(1),
            drain: Duration::from_secs(12),
        };
        Self { machine: Machine::new(settings, Now::both(ms(1000))), now: ms(1000), luck: 0 }
    }

    fn event(&mut self, event: Event) -> Vec<Command> {
        self.luck += 1;
        let luck = Luck { jitter: u64::MAX / 2, tenure: TenureId(Uuid::from_u128(u128::from(self.luck))) };
        self.machine.handle(Now::both(self.now), luck, event)
    }

    fn report(&mut self, report: Report) -> Vec<Command> {
        self.event(Event::Reported(report))
    }

    fn after(&mut self, millis: u64) -> &mut Self {
        self.now = self.now + Duration::from_millis(millis);
        self
    }

    /// Lets time pass, with the workers beating, firing each timer at its moment.
    fn pass(&mut self, millis: u64) -> Vec<Command> {
        let until = self.now + Duration::from_millis(millis);
        let mut commands = Vec::new();
        loop {
            commands.extend(self.report(Report::Beat));
            match self.machine.deadline() {
                Some((at, _)) if at <= until => {
                    self.now = self.now.max(at);
                    commands.extend(self.event(Event::Wake));
                }
                Some(_) | None => break,
            }
        }
        self.now = until;
        commands
    }

    /// Granted a lease, with the first reads under way. Returns the commands of the grant.
    fn with_session() -> (Self, Vec<Command>) {
        Self::with_session_for(&["settlement"])
    }

    fn with_session_for(elections: &[&str]) -> (Self, Vec<Command>) {
        let mut rig = Self::new(elections);
        let commands = rig.event(Event::Wake);
        let op = granting(&commands);
        let mut after = rig.event(Event::Granted(op, Ok(Grant { lease: LEASE, ttl: TTL })));
        after.splice(0..0, commands);
        (rig, after)
    }

    fn eligible(&mut self, name: &str) -> Vec<Command> {
        self.report(Report::Eligible { election: election(name), eligible: Ok(()) })
    }

    /// Brings an election, whose first read is under way, to its campaign.
    fn campaign(&mut self, name: &str, read: OpId, fence: i64) -> (OpId, Claim) {
        self.eligible(name);
        self.event(Event::Read(read, election(name), Ok(vacant(3, 10))));
        let commands = self.pass(10);
        assert!(commands.contains(&Command::ReadFence { election: election(name) }), "{commands:?}");
        let commands = self.report(Report::FenceTerm { election: election(name), term: Ok(term(fence)) });
        match commands.as_slice() {
            [Command::Campaign { op, claim, lease: LEASE, vacancy: Vacancy::Absent, .. }] => (*op, claim.clone()),
            other => panic!("expected a campaign, found {other:?}"),
        }
    }

    /// Leads, not yet accepted. The win is at revision 20.
    fn won(&mut self, name: &str, read: OpId) -> Claim {
        let (op, claim) = self.campaign(name, read, 0);
        let record = record_of(&claim, "me", LEASE);
        let outcome = Campaigned::Won { revision: Revision(20), record };
        let commands = self.event(Event::Campaigned(op, election(name), Ok(outcome)));
        assert!(commands.iter().any(|c| matches!(c, Command::Begin { won: Revision(20), .. })), "{commands:?}");
        claim
    }

    /// Leads one election, accepted and at work.
    fn leading() -> (Self, Claim) {
        let (mut rig, commands) = Self::with_session();
        let claim = rig.won("settlement", reading(&commands, "settlement"));
        rig.report(Report::Accepted { claim: claim.clone() });
        rig.report(Report::FirstWork { claim: claim.clone() });
        (rig, claim)
    }

    fn leads(&self) -> Vec<Claim> {
        self.machine.leads(self.now)
    }

    fn state(&self) -> SessionState {
        self.machine.view(Members::default()).session
    }
}

fn granting(commands: &[Command]) -> OpId {
    commands
        .iter()
        .find_map(|c| if let Command::Grant { op, .. } = c { Some(*op) } else { None })
        .unwrap_or_else(|| panic!("no grant in {commands:?}"))
}

fn reading(commands: &[Command], name: &str) -> OpId {
    commands
        .iter()
        .rev()
        .find_map(|c| match c {
            Command::Read { op, election } if election.as_str() == name => Some(*op),
            _ => None,
        })
        .unwrap_or_else(|| panic!("no read of {name} in {commands:?}"))
}

fn renewing(commands: &[Command]) -> OpId {
    commands
        .iter()
        .rev()
        .find_map(|c| if let Command::Renew { op, .. } = c { Some(*op) } else { None })
        .unwrap_or_else(|| panic!("no renewal in {commands:?}"))
}

fn resigning(commands: &[Command]) -> (OpId, Win) {
    commands
        .iter()
        .find_map(|c| if let Command::Resign { op, won, .. } = c { Some((*op, *won)) } else { None })
        .unwrap_or_else(|| panic!("no resignation in {commands:?}"))
}

fn ending(commands: &[Command]) -> Vec<(String, EndMode, EndReason)> {
    commands
        .iter()
        .filter_map(|c| match c {
            Command::End { claim, mode, reason } => Some((claim.election.to_string(), *mode, *reason)),
            _ => None,
        })
        .collect()
}

fn exits(commands: &[Command]) -> bool {
    commands.iter().any(|c| matches!(c, Command::Exit(_)))
}

fn noted(commands: &[Command], wanted: impl Fn(&Note) -> bool) -> bool {
    commands.iter().any(|c| if let Command::Note(note) = c { wanted(note) } else { false })
}
