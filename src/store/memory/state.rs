//! The content as a value, and what every operation on it shares: ids, the fence's answer, runs and units by what they belong
//! to.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::rows::{
    ActRow, Approval, Batch, Entry, FenceRow, Hold, Import, Instruction, Job, Journal, Receiver, Request, Run, TermRow,
    Unit,
};
use crate::domain::instruction::InstructionKind;
use crate::domain::run::RunState;
use crate::domain::{Claim, ElectionName};
use crate::store::{CoordinatorBinding, Cordon, Entered, FenceReject, Lineage, StoreError, TransferWish};

/// The store's whole content.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryState {
    pub(super) deployment: Uuid,
    pub(super) binding: Option<CoordinatorBinding>,
    system: String,
    timeline: u32,
    /// The position in its own history: transactions committed.
    commits: u64,
    last_id: i64,
    pub(super) fences: BTreeMap<ElectionName, FenceRow>,
    pub(super) terms: Vec<TermRow>,
    pub(super) rejects: Vec<FenceReject>,
    pub(super) acts: Vec<ActRow>,
    pub(super) jobs: BTreeMap<i64, Job>,
    pub(super) runs: BTreeMap<i64, Run>,
    pub(super) batches: Vec<Batch>,
    pub(super) units: BTreeMap<i64, Unit>,
    pub(super) requests: Vec<Request>,
    pub(super) imports: BTreeMap<i64, Import>,
    pub(super) entries: BTreeMap<i64, Entry>,
    pub(super) journals: Vec<Journal>,
    pub(super) instructions: BTreeMap<i64, Instruction>,
    /// By origin.
    pub(super) receivers: BTreeMap<String, Receiver>,
    /// Merchants.
    pub(super) holds: BTreeMap<String, Hold>,
    /// Replicas that shall not lead.
    pub(super) cordons: BTreeMap<String, Cordon>,
    /// The last hand-over asked for, by election.
    pub(super) transfers: BTreeMap<ElectionName, TransferWish>,
    /// Whether acts on money wait for another role.
    pub(super) four_eyes: bool,
    pub(super) approvals: BTreeMap<i64, Approval>,
    /// What queries for units are answered, by their text: no rows, and nothing writes them but a simulator.
    pub(super) answers: BTreeMap<String, Vec<String>>,
}

/// What an operation came to, and so whether it counts.
#[derive(Debug)]
pub(super) enum Done<T> {
    /// It has written.
    Commit(T),
    /// It has written nothing.
    RollBack(T),
}

impl<T> Done<T> {
    pub(super) fn into_inner(self) -> T {
        match self {
            Self::Commit(done) | Self::RollBack(done) => done,
        }
    }

    pub(super) fn map<U>(self, f: impl FnOnce(T) -> U) -> Done<U> {
        match self {
            Self::Commit(done) => Done::Commit(f(done)),
            Self::RollBack(done) => Done::RollBack(f(done)),
        }
    }
}

/// The kinds of fenced transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Refused where the election is halted.
    Begin,
    /// The outcome of what had left before; allowed where halted.
    Record,
}

impl MemoryState {
    pub(super) fn new(deployment: Uuid) -> Self {
        Self {
            deployment,
            binding: None,
            system: format!("memory-{deployment}"),
            timeline: 1,
            commits: 0,
            last_id: 0,
            fences: BTreeMap::new(),
            terms: Vec::new(),
            rejects: Vec::new(),
            acts: Vec::new(),
            jobs: BTreeMap::new(),
            runs: BTreeMap::new(),
            batches: Vec::new(),
            units: BTreeMap::new(),
            requests: Vec::new(),
            imports: BTreeMap::new(),
            entries: BTreeMap::new(),
            journals: Vec::new(),
            instructions: BTreeMap::new(),
            receivers: BTreeMap::new(),
            holds: BTreeMap::new(),
            cordons: BTreeMap::new(),
            transfers: BTreeMap::new(),
            four_eyes: false,
            approvals: BTreeMap::new(),
            answers: BTreeMap::new(),
        }
    }

    /// A replica of it was promoted: another timeline from here on.
    pub fn promote(&mut self) {
        self.timeline += 1;
    }

    /// From now on this query for units is answered with these keys; all others fail.
    pub fn answer(&mut self, query: &str, keys: Vec<String>) {
        self.answers.insert(query.to_owned(), keys);
    }

    /// Where it stands in its own history.
    pub(super) fn lineage(&self) -> Lineage {
        Lineage { system_identifier: self.system.clone(), timeline: self.timeline, position: self.commits }
    }

    pub(super) const fn committed(&mut self) {
        self.commits += 1;
    }

    /// What rows that are written now say of when.
    pub(super) const fn xact(&self) -> u64 {
        self.commits + 1
    }

    /// Commits up to now.
    pub(super) const fn snapshot(&self) -> u64 {
        self.commits
    }

    pub(super) const fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    /// The fence's answer to a claim.
    pub(super) fn enter(&self, claim: &Claim, kind: Kind) -> Entered<()> {
        let fence = self.fences.get(&claim.election);
        let Some(fence) = fence.filter(|f| f.holder.term == claim.term && f.holder.tenure_id == claim.tenure_id) else {
            return Entered::Fenced(fence.map(|fence| fence.holder));
        };
        match (&fence.halt, kind) {
            (Some(halt), Kind::Begin) => Entered::Halted(halt.clone()),
            (Some(_), Kind::Record) | (None, Kind::Begin | Kind::Record) => Entered::Mine(()),
        }
    }

    /// A run of the election.
    pub(super) fn run_of(&self, election: &ElectionName, run: i64) -> Option<&Run> {
        self.runs.get(&run).filter(|found| found.election == *election)
    }

    /// The same, where it has to be there.
    pub(super) fn run_or(&self, operation: &'static str, claim: &Claim, run: i64) -> Result<&Run, StoreError> {
        self.run_of(&claim.election, run).ok_or_else(|| StoreError::Broken {
            operation,
            detail: format!("election {} has no run {run}", claim.election),
        })
    }

    /// Whether units of that run may be worked on.
    pub(super) fn is_open(&self, election: &ElectionName, run: i64) -> bool {
        self.run_of(election, run).is_some_and(|run| run.state == RunState::Open && run.why.is_none())
    }

    pub(super) fn units_of(&self, run: i64) -> impl Iterator<Item = &Unit> {
        self.units.values().filter(move |unit| unit.run_id == run)
    }

    /// The id of the call of a unit's generation.
    pub(super) fn call_of(&self, unit: &Unit) -> Option<&Instruction> {
        self.instructions.values().find(|found| {
            found.unit_id == unit.id && found.kind == InstructionKind::Call && found.generation == unit.generation
        })
    }
}

/// Whether a wait is over.
pub(super) fn is_due(at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> bool {
    at.is_none_or(|at| at <= now)
}
