//! Requests of operators: filed by whoever asks, executed once by a leader.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::fence::Act;
use super::jobs::span;
use super::rows::{Request, Unit};
use super::state::{Done, MemoryState};
use crate::domain::Claim;
use crate::domain::instruction::{InstructionKind, InstructionState};
use crate::domain::run::{RunKind, RunState};
use crate::domain::unit::UnitState;
use crate::store::records::why_not_retried_yet;
use crate::store::requests::withdrawn;
use crate::store::{
    Actor, Execution, JobRow, PendingRequest, RequestKind, RequestState, StoreError, TickRecord, WAITING_SHOWN,
    WaitingRequest, WithdrawOutcome,
};

/// The most requests of a page.
const PAGE: usize = 100;

impl MemoryState {
    /// Files a request for the leader of the election that the job or run belongs to.
    pub(super) fn file_request(
        &mut self,
        kind: &RequestKind,
        actor: &Actor,
        reason: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Done<Uuid>, StoreError> {
        let (action, target, election) = match kind {
            RequestKind::Trigger { job, .. } | RequestKind::Backfill { job, .. } => {
                let found =
                    self.jobs.values().find(|found| found.definition.name == *job && found.removed_at.is_none());
                (kind.action(), format!("job {job}"), found.map(|found| found.election.clone()))
            }
            RequestKind::RetryUnits { run, .. } => {
                ("units retry", format!("run {run}"), self.runs.get(run).map(|run| run.election.clone()))
            }
        };
        let Some(election) = election else {
            let detail = format!("{target} does not exist in the store");
            return Err(StoreError::Broken { operation: "request", detail });
        };
        let (filed, by) = (target.clone(), format!("{}@{}", actor.user, actor.host));
        let act = Act { action, target, reason, election: Some(&election), already: false, baseline: None };
        self.act(actor, act, now);
        // Counted, not drawn: the same calls make the same ids.
        let id = Uuid::from_u128(u128::from(self.next_id().unsigned_abs()));
        self.requests.push(Request {
            id,
            election,
            kind: kind.clone(),
            target: filed,
            reason: reason.map(str::to_owned),
            by,
            at: now,
            result: RequestState::Waiting,
        });
        Ok(Done::Commit(id))
    }

    /// Requests that wait in any election, oldest first.
    pub(super) fn waiting_requests(&self) -> Vec<WaitingRequest> {
        let waits = self.requests.iter().filter(|request| request.result == RequestState::Waiting);
        let shown = |request: &Request| WaitingRequest {
            id: request.id,
            election: request.election.clone(),
            action: request.kind.action().to_owned(),
            target: request.target.clone(),
            asked: serde_json::to_value(&request.kind).unwrap_or_default(),
            reason: request.reason.clone(),
            by: request.by.clone(),
            at: request.at,
        };
        waits.take(WAITING_SHOWN).map(shown).collect()
    }

    /// Takes a request back where it still waits.
    pub(super) fn withdraw_request(
        &mut self,
        request: Uuid,
        reason: &str,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> Done<WithdrawOutcome> {
        let Some(found) = self.requests.iter_mut().find(|found| found.id == request) else {
            return Done::RollBack(WithdrawOutcome::NotFound);
        };
        if found.result != RequestState::Waiting {
            return Done::RollBack(WithdrawOutcome::Answered(found.result.clone()));
        }
        found.result = withdrawn(actor, reason);
        let election = found.election.clone();
        let mut act = Act::on_none("requests withdraw", &format!("request {request}"), reason);
        act.election = Some(&election);
        self.act(actor, act, now);
        Done::Commit(WithdrawOutcome::Withdrawn)
    }

    pub(super) fn request_state(&self, request: Uuid) -> Option<RequestState> {
        self.requests.iter().find(|found| found.id == request).map(|found| found.result.clone())
    }

    /// Requests that wait, oldest first.
    pub(super) fn waiting(&self, claim: &Claim) -> Vec<PendingRequest> {
        self.requests
            .iter()
            .filter(|request| request.election == claim.election && request.result == RequestState::Waiting)
            .take(PAGE)
            .map(|request| PendingRequest { id: request.id, kind: request.kind.clone(), at: request.at })
            .collect()
    }

    /// Executes a request once; later it answers what the first made of it.
    pub(super) fn execute(
        &mut self,
        claim: &Claim,
        request: Uuid,
        execution: &Execution,
        now: DateTime<Utc>,
    ) -> Result<Done<RequestState>, StoreError> {
        let place = self.requests.iter().position(|found| found.id == request && found.election == claim.election);
        let Some(place) = place else {
            let detail = format!("there is no request {request} in election {}", claim.election);
            return Err(StoreError::Broken { operation: "execute", detail });
        };
        match &self.requests[place].result {
            RequestState::Waiting => {}
            already @ (RequestState::Done { .. } | RequestState::Opened { .. } | RequestState::Refused { .. }) => {
                return Ok(Done::RollBack(already.clone()));
            }
        }
        let made = match execution {
            Execution::Open { job, tick } => self.open_manual(claim, request, job, tick, now),
            Execution::OpenMany { job, ticks } => self.open_many(claim, request, job, ticks, now),
            Execution::Retry { run, keys } => self.retry(claim, *run, keys),
            Execution::Refuse(why) => RequestState::Refused { why: why.clone() },
        };
        self.requests[place].result = made.clone();
        Ok(Done::Commit(made))
    }

    fn open_manual(
        &mut self,
        claim: &Claim,
        request: Uuid,
        job: &JobRow,
        tick: &TickRecord,
        now: DateTime<Utc>,
    ) -> RequestState {
        let as_read = self.jobs.get(&job.id).is_some_and(|found| {
            found.election == claim.election && found.fingerprint == job.fingerprint && found.removed_at.is_none()
        });
        let run = if as_read && tick.cutoff_at <= now { self.run_row(claim, job.id, tick, now) } else { None };
        let Some(mut run) = run else {
            return RequestState::Refused {
                why: format!(
                    "job {} was changed or removed meanwhile, or the cutoff {} lies in the future; ask again",
                    job.definition.name, tick.cutoff_at
                ),
            };
        };
        run.kind = RunKind::Manual;
        run.request_id = Some(request);
        run.state = RunState::Planning;
        run.finished_at = None;
        run.deadline_at = job.definition.timing.run_deadline.map(|deadline| now + span(deadline));
        let id = run.id;
        self.runs.insert(id, run);
        RequestState::Done { run: id, units: 0 }
    }

    fn open_many(
        &mut self,
        claim: &Claim,
        request: Uuid,
        job: &JobRow,
        ticks: &[TickRecord],
        now: DateTime<Utc>,
    ) -> RequestState {
        if let Some(late) = ticks.iter().find(|tick| tick.cutoff_at > now) {
            // The same words, and nothing of the others.
            return self.open_manual(claim, request, job, late, now);
        }
        let mut runs = Vec::with_capacity(ticks.len());
        for tick in ticks {
            match self.open_manual(claim, request, job, tick, now) {
                RequestState::Done { run, .. } => runs.push(run),
                // The job is another by now: of all ticks or of none.
                refused => return refused,
            }
        }
        RequestState::Opened { runs }
    }

    /// Sets units back to pending and reopens their run.
    fn retry(&mut self, claim: &Claim, run: i64, keys: &BTreeSet<String>) -> RequestState {
        let refused = |why: String| RequestState::Refused { why };
        let Some(found) = self.run_of(&claim.election, run) else {
            return refused(format!("run {run} does not belong to election {}", claim.election));
        };
        let (state, was_planning) = (found.state, found.was_planning);
        match state {
            RunState::Open if found.why.is_some() => return refused(why_not_retried_yet(run)),
            RunState::Open | RunState::CompleteSetAside => {}
            RunState::Planning | RunState::Complete | RunState::Skipped | RunState::Coalesced | RunState::Missed => {
                return refused(format!("run {run} is {}: it has no unit that is set aside", state.as_str()));
            }
        }
        let chosen = self
            .units_of(run)
            .filter(|unit| unit.state == UnitState::SetAside && (keys.is_empty() || keys.contains(&unit.key)));
        let (in_doubt, retried): (Vec<&Unit>, Vec<&Unit>) = chosen.partition(|unit| self.nobody_knows(unit));
        let (in_doubt, retried): (usize, Vec<i64>) =
            (in_doubt.len(), retried.into_iter().map(|unit| unit.id).collect());
        if retried.is_empty() && !(was_planning && keys.is_empty()) {
            return refused(format!(
                "no unit of run {run} with these keys is set aside and may be tried again ({in_doubt} have an \
                 instruction whose outcome is unknown, which a person must find out first)"
            ));
        }
        for unit in &retried {
            self.set_back(*unit);
        }
        if let Some(run) = self.runs.get_mut(&run) {
            if run.state != RunState::Open {
                run.worked_term = None;
            }
            run.state = if run.was_planning { RunState::Planning } else { RunState::Open };
            (run.was_planning, run.finished_at, run.why, run.deaths) = (false, None, None, 0);
        }
        RequestState::Done { run, units: retried.len() as u64 }
    }

    /// Whether a unit's instruction has an outcome that only a person can find out.
    fn nobody_knows(&self, unit: &Unit) -> bool {
        self.instructions.values().any(|found| {
            found.unit_id == unit.id
                && found.generation == unit.generation
                && found.in_doubt
                && !found.idempotent
                && matches!(found.state, InstructionState::Sending | InstructionState::Unknown | InstructionState::Held)
        })
    }

    fn set_back(&mut self, unit: i64) {
        let Some(unit) = self.units.get_mut(&unit) else { return };
        let mut without_effect = false;
        for found in self.instructions.values_mut() {
            if found.unit_id != unit.id || found.generation != unit.generation {
                continue;
            }
            match (found.state, found.kind) {
                (InstructionState::Rejected | InstructionState::Returned, _) => without_effect = true,
                (InstructionState::Held, InstructionKind::Call) => {
                    found.state = if found.in_doubt { InstructionState::Unknown } else { InstructionState::Pending };
                    (found.reason, found.next_attempt_at) = (None, None);
                }
                (
                    InstructionState::Pending
                    | InstructionState::Sending
                    | InstructionState::Unknown
                    | InstructionState::Paid
                    | InstructionState::Held,
                    _,
                ) => {}
            }
        }
        unit.state = UnitState::Pending;
        unit.attempts = 0;
        // One that was final without effect is done: the next has a key of its own.
        unit.generation += u32::from(without_effect);
        (unit.next_attempt_at, unit.ended_at) = (None, None);
        (unit.term, unit.xact, unit.batch_id) = (None, None, None);
    }
}
