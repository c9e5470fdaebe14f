//! The session: one lease, its renewal, and what its loss means.

use super::{Command, Failed, Machine, Note, OpId, Step, Survey, Timer};
use crate::domain::{ElectionName, Moment};
use crate::leadership::lease::Window;
use crate::leadership::reason::{EndReason, SessionState, Suspicion};
use crate::leadership::record::{Grant, LeaseId, RegisterOutcome, RenewOutcome};

/// The session's state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Session {
    /// No lease; one is asked for when its timer fires.
    None { lost: bool, failures: u32 },
    /// A lease is being asked for.
    Granting { op: OpId, sent_at: Moment, lost: bool, failures: u32 },
    /// A lease is held.
    Held(Held),
}

/// A lease that is held.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) lease: LeaseId,
    pub(super) window: Window,
    renewing: Option<(OpId, Moment)>,
    pub(super) suspicion: Option<Suspicion>,
    failures: u32,
}

impl Session {
    pub(super) const fn state(&self) -> SessionState {
        match self {
            Self::None { lost: true, .. } | Self::Granting { lost: true, .. } => SessionState::Lost,
            Self::None { lost: false, .. } => SessionState::None,
            Self::Granting { lost: false, .. } => SessionState::Granting,
            Self::Held(Held { suspicion: Some(_), .. }) => SessionState::Suspect,
            Self::Held(Held { suspicion: None, .. }) => SessionState::Live,
        }
    }

    pub(super) const fn held(&self) -> Option<&Held> {
        match self {
            Self::Held(held) => Some(held),
            Self::None { .. } | Self::Granting { .. } => None,
        }
    }

    /// The lease, if it is live and not suspect.
    pub(super) fn live_lease(&self) -> Option<LeaseId> {
        self.held().filter(|held| held.suspicion.is_none()).map(|held| held.lease)
    }

    /// The lease, suspect or not.
    pub(super) fn lease(&self) -> Option<LeaseId> {
        self.held().map(|held| held.lease)
    }
}

impl Machine {
    pub(super) fn ask_for_lease(&mut self, step: &mut Step) {
        let Session::None { lost, failures } = self.session else { return };
        if self.leaving.has_begun() {
            return;
        }
        let op = self.op();
        self.session = Session::Granting { op, sent_at: step.now, lost, failures };
        step.push(Command::Grant { op, ttl: self.settings.ttl });
        self.note_session(step);
    }

    pub(super) fn granted(&mut self, step: &mut Step, op: OpId, outcome: Result<Grant, Failed>) {
        let Session::Granting { op: expected, sent_at, lost, failures } = self.session else { return };
        if op != expected {
            return;
        }
        let sent_at = crate::mutant!("session.deadline-counted-from-the-answer", instead of sent_at => step.now);
        self.answered(step, outcome.is_ok());
        let window =
            outcome.ok().map(|grant| (grant.lease, Window::new(sent_at, grant.ttl, self.settings.teardown_budget)));
        match window {
            Some((lease, window)) if window.deadline() > step.now => {
                self.session = Session::Held(Held { lease, window, renewing: None, suspicion: None, failures: 0 });
                self.registered = false;
                self.open_window(step);
                self.register(step);
                self.survey(step);
                self.note_session(step);
                for name in self.names() {
                    self.reconsider(step, &name);
                }
            }
            // Answered too late, or with too little time to live to work with: as good as no lease.
            Some(_) | None => {
                let failures = failures.saturating_add(1);
                self.session = Session::None { lost, failures };
                self.set(Timer::Grant, step.now + step.retry(failures));
            }
        }
    }

    pub(super) fn send_renewal(&mut self, step: &mut Step) {
        let op = OpId(self.next_op + 1);
        let Session::Held(held) = &mut self.session else { return };
        if held.renewing.is_some() {
            return;
        }
        self.next_op += 1;
        held.renewing = Some((op, step.now));
        step.push(Command::Renew { op, lease: held.lease });
    }

    pub(super) fn renewed(&mut self, step: &mut Step, op: OpId, outcome: Result<RenewOutcome, Failed>) {
        let Session::Held(held) = &mut self.session else { return };
        let Some((_, sent_at)) = held.renewing.filter(|(expected, _)| *expected == op) else { return };
        held.renewing = None;
        match outcome {
            Ok(RenewOutcome::Renewed { ttl }) => {
                let sent_at =
                    crate::mutant!("session.deadline-counted-from-the-answer", instead of sent_at => step.now);
                held.window.renewed(sent_at, ttl);
                held.failures = 0;
                let was_suspect = held.suspicion.take().is_some();
                let gone = held.window.deadline() <= step.now;
                self.answered(step, true);
                step.note(Note::RenewalTook(step.now.since(sent_at)));
                if gone {
                    self.lose_session(step, EndReason::SessionLost);
                    return;
                }
                self.open_window(step);
                if was_suspect {
                    self.note_session(step);
                    for name in self.names() {
                        self.reconsider(step, &name);
                    }
                }
            }
            Ok(RenewOutcome::Gone) => {
                self.answered(step, true);
                self.lose_session(step, EndReason::LeaseGone);
            }
            Err(Failed) => {
                held.failures = held.failures.saturating_add(1);
                // The adapter goes on to the next member: the first retry is sent at once.
                let failures = held.failures;
                let wait = if failures == 1 { std::time::Duration::ZERO } else { step.retry(failures - 1) };
                self.answered(step, false);
                self.suspect(step, Suspicion::RenewalFailed);
                self.set(Timer::Renew, step.now + wait);
            }
        }
    }

    /// Sets everything that follows from the window: the timers, and what gates see.
    fn open_window(&mut self, step: &mut Step) {
        let Session::Held(held) = &self.session else { return };
        let (lease, deadline, fresh_until) = (held.lease, held.window.deadline(), held.window.overdue_at());
        let renew_at = held.window.renew_at().max(step.now);
        self.set(Timer::Deadline, deadline);
        self.set(Timer::Overdue, fresh_until);
        self.set(Timer::Renew, renew_at);
        step.push(Command::Open { lease, deadline, fresh_until });
    }

    pub(super) fn suspect(&mut self, step: &mut Step, suspicion: Suspicion) {
        let Session::Held(held) = &mut self.session else { return };
        if held.suspicion.is_some() {
            return;
        }
        held.suspicion = Some(suspicion);
        let lease = held.lease;
        step.push(Command::Hold { lease });
        self.note_session(step);
    }

    /// After a pause: nothing new begins until a renewal shows that the lease still stands.
    pub(super) fn suspect_and_renew(&mut self, step: &mut Step, suspicion: Suspicion) {
        if self.session.held().is_some() {
            self.suspect(step, suspicion);
            self.set(Timer::Renew, step.now);
        }
    }

    /// The session is lost for good: every tenure ends now, and a new lease is asked for.
    pub(super) fn lose_session(&mut self, step: &mut Step, reason: EndReason) {
        let Session::Held(held) = &self.session else { return };
        let lease = held.lease;
        self.session = Session::None { lost: true, failures: 0 };
        for timer in [Timer::Deadline, Timer::Overdue, Timer::Renew, Timer::Register] {
            self.clear(&timer);
        }
        self.registering = None;
        self.register_again = false;
        self.registered = false;
        // What the coordinator called gone needs no giving back; what lapsed by our own count may still stand there.
        self.stale_lease = (reason == EndReason::SessionLost).then_some(lease);
        step.push(Command::Close { lease });
        step.note(Note::Expired { reason });
        for name in self.names() {
            self.session_lost(step, &name, reason);
        }
        self.give_back_stale_lease(step);
        self.note_session(step);
        self.ask_for_lease(step);
    }

    /// Revokes a lost lease once nothing leads on it any more, so that others need not wait for it to lapse. Best effort.
    pub(super) fn give_back_stale_lease(&mut self, step: &mut Step) {
        if self.elections.values().any(|election| election.phase.has_tenure()) {
            return;
        }
        if let Some(lease) = self.stale_lease.take() {
            let op = self.op();
            step.push(Command::Revoke { op, lease });
        }
    }

    /// Says where the session stands, where that is news.
    pub(super) fn note_session(&mut self, step: &mut Step) {
        let suspicion = self.session.held().and_then(|held| held.suspicion);
        let shown = (self.session.state(), suspicion);
        if self.shown_session != Some(shown) {
            self.shown_session = Some(shown);
            step.note(Note::Session { state: shown.0, suspicion });
        }
    }

    pub(super) fn register(&mut self, step: &mut Step) {
        self.clear(&Timer::Register);
        let Some(lease) = self.session.lease() else { return };
        if self.leaving.has_begun() {
            return;
        }
        // One at a time: of two on their way the earlier could arrive last, and stand.
        if self.registering.is_some() {
            self.register_again = true;
            return;
        }
        let eligible = self.shown();
        let op = self.op();
        self.registering = Some(op);
        step.push(Command::Register { op, lease, eligible });
    }

    /// The elections that this replica may lead, as its record shows them.
    fn shown(&self) -> Vec<ElectionName> {
        let eligible = self.elections.values().filter(|e| e.eligible.is_ok() && !self.cordoned);
        eligible.map(|e| e.name.clone()).collect()
    }

    pub(super) fn register_soon(&mut self, step: &mut Step) {
        if self.session.held().is_some() {
            self.set(Timer::Register, step.now);
        }
    }

    pub(super) fn register_answered(&mut self, step: &mut Step, op: OpId, outcome: Result<RegisterOutcome, Failed>) {
        if self.registering != Some(op) {
            return;
        }
        self.registering = None;
        self.answered(step, outcome.is_ok());
        match outcome {
            Ok(RegisterOutcome::Registered) => self.registered = true,
            Ok(RegisterOutcome::LeaseGone) => self.lose_session(step, EndReason::LeaseGone),
            Err(Failed) => self.set(Timer::Register, step.now + super::LONGEST_RETRY),
        }
        if std::mem::take(&mut self.register_again) {
            self.register_soon(step);
        }
    }

    /// Counts the replicas, once per TTL.
    pub(super) fn survey(&mut self, step: &mut Step) {
        self.set(Timer::Survey, step.now + self.settings.ttl);
        if self.surveying.is_none() {
            let op = self.op();
            self.surveying = Some(op);
            step.push(Command::Survey { op });
        }
    }

    pub(super) fn surveyed(&mut self, step: &mut Step, op: OpId, outcome: Result<Survey, Failed>) {
        if self.surveying != Some(op) {
            return;
        }
        self.surveying = None;
        self.answered(step, outcome.is_ok());
        if let Ok(survey) = outcome {
            self.replicas = survey.replicas.max(1);
            // Deleted by hand, or of before a restore: nobody would hand over to a replica that does not show.
            let wanted = self.session.lease().map(|lease| (lease, self.shown()));
            if self.registered && self.registering.is_none() && survey.own != wanted {
                self.register_soon(step);
            }
        }
    }
}
