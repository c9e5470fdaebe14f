//! Payouts on their way out: which jobs have any, and which of them may leave now, to be sent or only asked for.
//!
//! Invariant: what may not leave any more is held in the same step that finds it.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::jobs::span;
use super::rows::{Instruction, Released};
use super::state::{Done, MemoryState, is_due};
use crate::domain::Claim;
use crate::domain::instruction::{InstructionKind, InstructionState};
use crate::store::bounds::wait;
use crate::store::payouts::LEFT_IN_STORE;
use crate::store::{Errand, Payout, PayoutJob, PayoutTake, PayoutTerms, PayoutsTaken, ReceiverWay};

/// The most that one take asks for.
const MOST_TAKEN: u32 = 1_000;

/// What becomes of a payout that is due.
enum Verdict {
    Leaves(Errand),
    /// For that reason, and with that error where there is something to say.
    Held(&'static str, Option<&'static str>),
}

impl Instruction {
    /// Whether it is a payout of the election that may have to be sent, at some time.
    fn is_to_leave(&self, claim: &Claim) -> bool {
        let released = match self.release {
            Released::Auto | Released::ByHand => true,
            Released::Waiting => false,
        };
        let open = match self.state {
            InstructionState::Pending | InstructionState::Unknown => true,
            InstructionState::Sending
            | InstructionState::Paid
            | InstructionState::Rejected
            | InstructionState::Held
            | InstructionState::Returned => false,
        };
        self.kind == InstructionKind::Payout && self.election == claim.election && open && released
    }

    /// Whether it was never tried and is above what its job sends by itself now.
    fn is_over(&self, terms: &PayoutTerms) -> bool {
        let over = |(_, currency, amount): &(_, _, i64)| terms.maximum.get(currency).is_some_and(|most| amount > most);
        self.attempts == 0 && self.release != Released::ByHand && self.payout.as_ref().is_some_and(over)
    }

    /// Whether the receiver may have forgotten the key before an answer could come.
    fn has_expired(&self, terms: &PayoutTerms, now: DateTime<Utc>) -> bool {
        let by_now = self.first_sent_at.map(|first| first + span(wait(terms.key_valid_for)));
        let ends = [self.key_valid_until, by_now].into_iter().flatten().min();
        ends.is_some_and(|end| end - span(wait(terms.timeout)) * 2 < now)
    }
}

/// From now until then, and nothing where that is over.
fn until(then: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    wait((then - now).to_std().unwrap_or(Duration::ZERO))
}

impl MemoryState {
    /// Jobs with payouts that may have to be sent, also those that were removed or moved.
    pub(super) fn payout_jobs(&self, claim: &Claim) -> Vec<PayoutJob> {
        let has = |job: i64| self.to_leave(claim, job).next().is_some();
        let jobs = self.jobs.values().filter(|job| has(job.id));
        jobs.map(|job| PayoutJob { id: job.id, definition: job.definition.clone() }).collect()
    }

    fn to_leave(&self, claim: &Claim, job: i64) -> impl Iterator<Item = &Instruction> {
        self.instructions.values().filter(move |found| found.job_id == job && found.is_to_leave(claim))
    }

    /// Takes payouts for one receiver, and holds those that may not leave.
    pub(super) fn take_payouts(&mut self, claim: &Claim, take: &PayoutTake, now: DateTime<Utc>) -> Done<PayoutsTaken> {
        let (limit, stopped) = match self.way(&take.origin, take.probe_now, now) {
            ReceiverWay::Open => (take.limit.clamp(1, MOST_TAKEN), None),
            ReceiverWay::Probe(reason) => (1, Some(reason)),
            ReceiverWay::Closed { reason, next_in } => {
                let stopped = Some(reason);
                return Done::RollBack(PayoutsTaken { stopped, next_in, ..PayoutsTaken::default() });
            }
        };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let picked = self.pick(claim, take, limit, now);
        let full = picked.len() >= limit;
        let next_in = if full { Some(Duration::ZERO) } else { self.next_in(claim, take, now) };
        let mut taken = PayoutsTaken { stopped, next_in, full, ..PayoutsTaken::default() };
        if picked.is_empty() {
            return Done::RollBack(taken);
        }
        for (id, terms, verdict) in picked {
            match verdict {
                Verdict::Leaves(errand) => taken.payouts.extend(self.leave(claim, take, terms, id, errand, now)),
                Verdict::Held(reason, error) => {
                    self.hold(id, reason, error);
                    taken.held += 1;
                }
            }
        }
        taken.payouts.sort_unstable_by_key(|payout| payout.instruction);
        if taken.stopped.is_some() && !taken.payouts.is_empty() {
            self.tried(&take.origin, take.probe_waits, now);
        }
        Done::Commit(taken)
    }

    /// What is due, job by job, with what becomes of each.
    fn pick<'a>(
        &self,
        claim: &Claim,
        take: &'a PayoutTake,
        limit: usize,
        now: DateTime<Utc>,
    ) -> Vec<(i64, &'a PayoutTerms, Verdict)> {
        let mut picked = Vec::new();
        for terms in &take.jobs {
            let due = |found: &&Instruction| is_due(found.next_attempt_at, now);
            let mut due: Vec<&Instruction> = self.to_leave(claim, terms.job).filter(due).collect();
            due.sort_by_key(|found| (found.next_attempt_at, found.id));
            picked.extend(due.into_iter().map(|found| (found.id, terms, self.verdict(take, terms, found, now))));
        }
        picked.truncate(limit);
        picked
    }

    /// What a person said comes first, then what can only be asked for, then what nobody can know any more.
    fn verdict(&self, take: &PayoutTake, terms: &PayoutTerms, found: &Instruction, now: DateTime<Utc>) -> Verdict {
        let on_hold = found.payout.as_ref().is_some_and(|(merchant, _, _)| self.holds.contains_key(merchant));
        if on_hold {
            return Verdict::Held("merchant", None);
        }
        if found.is_over(terms) {
            return Verdict::Held("over_limit", None);
        }
        if !found.cleared && !self.was_to_send(found) {
            return Verdict::Held("approval", Some(LEFT_IN_STORE));
        }
        if !found.in_doubt {
            return if found.has_expired(terms, now) {
                Verdict::Held("unknown", Some("put off until the receiver may have forgotten its key"))
            } else {
                Verdict::Leaves(Errand::Send)
            };
        }
        let elsewhere = found.receiver_url.as_ref().is_some_and(|url| *url != terms.url);
        if elsewhere || found.receiver.as_ref() != Some(&take.origin) {
            return Verdict::Held("unknown", Some("in doubt at another receiver than the job's now"));
        }
        let again = found.idempotent && terms.idempotent;
        let asks = found.looks_up && terms.looks_up;
        match (again, asks, found.has_expired(terms, now)) {
            (true, true, false) => Verdict::Leaves(Errand::AskThenSend),
            (true, false, false) => Verdict::Leaves(Errand::Send),
            (_, true, last) => Verdict::Leaves(Errand::Ask { last }),
            (_, false, true) => {
                Verdict::Held("unknown", Some("in doubt, and its key may be forgotten by the receiver"))
            }
            (false, false, false) => Verdict::Held("unknown", None),
        }
    }

    /// On the wire under this term from now on; or, where it is only asked for, not taken again before that is over.
    fn leave(
        &mut self,
        claim: &Claim,
        take: &PayoutTake,
        terms: &PayoutTerms,
        id: i64,
        errand: Errand,
        now: DateTime<Utc>,
    ) -> Option<Payout> {
        let found = self.instructions.get_mut(&id)?;
        let timeout = span(wait(terms.timeout));
        match errand {
            Errand::Send | Errand::AskThenSend => {
                found.state = InstructionState::Sending;
                found.sending_term = Some(claim.term.get());
                found.next_attempt_at = None;
            }
            Errand::Ask { .. } => {
                found.sending_term = None;
                found.next_attempt_at = Some(now + timeout * 3 + span(Duration::from_secs(1)));
            }
        }
        let left_before = found.first_sent_at.is_some();
        let first = *found.first_sent_at.get_or_insert(now);
        let valid_for = span(wait(terms.key_valid_for));
        let valid_until = (*found.key_valid_until.get_or_insert(now + valid_for)).min(first + valid_for);
        found.receiver = Some(take.origin.clone());
        found.begin_try(matches!(errand, Errand::Ask { .. }), claim.term.get(), now);
        found.receiver_url = Some(terms.url.clone());
        // An edit makes no doubt idempotent.
        found.idempotent = terms.idempotent && (found.idempotent || !found.in_doubt);
        found.looks_up = terms.looks_up;
        Some(Payout {
            instruction: id,
            job: found.job_id,
            run: found.run_id,
            batch: self.units.get(&found.unit_id).and_then(|unit| unit.batch_id),
            idempotency_key: found.key.clone(),
            body: found.body.clone(),
            attempt: found.attempts,
            in_doubt: found.in_doubt,
            left_before,
            errand,
            leaves_within: until(valid_until - timeout * 2, now),
            taken_at: now,
        })
    }

    /// Holds a payout for a person.
    pub(super) fn hold(&mut self, id: i64, reason: &'static str, error: Option<&str>) {
        let Some(found) = self.instructions.get_mut(&id) else { return };
        found.state = InstructionState::Held;
        found.reason = Some(reason);
        // Once its key may be forgotten, nobody knows what another try would do.
        found.in_doubt |= reason == "unknown";
        found.next_attempt_at = None;
        if let Some(error) = error {
            found.last_error = Some(error.to_owned());
        }
    }

    /// When the next one is due that waits for a time.
    fn next_in(&self, claim: &Claim, take: &PayoutTake, now: DateTime<Utc>) -> Option<Duration> {
        let of = |terms: &PayoutTerms| self.to_leave(claim, terms.job).filter_map(|found| found.next_attempt_at).min();
        take.jobs.iter().filter_map(of).min().map(|next| until(next, now))
    }
}
