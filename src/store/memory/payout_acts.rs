//! Operators and payouts: the list, a person's word on what came of one, releases.

use chrono::{DateTime, Utc};

use super::approvals::Eyes;
use super::fence::Act;
use super::holds::MERCHANT;
use super::rows::{Instruction, Released};
use super::state::{Done, MemoryState};
use crate::domain::instruction::{InstructionKind, InstructionState};
use crate::domain::job::{HandlerDefinition, JobDefinition, PayoutDefinition};
use crate::store::payout_words::keys_left;
use crate::store::{
    Actor, GuardedAct, PayoutFilter, PayoutView, ReleaseOutcome, Resolution, ResolveGround, ResolveOutcome, resolve,
};

/// Whether a job of that definition sends its payouts.
const fn sends(definition: &JobDefinition) -> bool {
    match &definition.handler {
        HandlerDefinition::Ledger(ledger) => match ledger.payout {
            PayoutDefinition::Http(_) => true,
            PayoutDefinition::None => false,
        },
        HandlerDefinition::Sql(_) | HandlerDefinition::Http(_) | HandlerDefinition::Command(_) => false,
        #[cfg(feature = "chaos")]
        HandlerDefinition::Probe(_) => false,
    }
}

impl MemoryState {
    /// Payouts, in the order of ids.
    pub(super) fn payouts_view(&self, filter: &PayoutFilter, limit: usize) -> Vec<PayoutView> {
        self.instructions
            .values()
            .filter(|found| filter.run.is_none_or(|run| run == found.run_id))
            .filter(|found| filter.state.is_none_or(|state| state == found.state))
            .filter(|found| filter.key.as_ref().is_none_or(|key| *key == found.key))
            .filter(|found| filter.above.is_none_or(|above| found.id > above))
            .filter(|found| filter.merchant.as_ref().is_none_or(|merchant| found.is_for(merchant)))
            .filter_map(|found| self.payout_view(found))
            .take(limit)
            .collect()
    }

    fn payout_view(&self, found: &Instruction) -> Option<PayoutView> {
        let (merchant, currency, amount) = found.payout.as_ref()?;
        Some(PayoutView {
            id: found.id,
            key: found.key.clone(),
            run: found.run_id,
            job: self.runs.get(&found.run_id)?.job.as_str().to_owned(),
            election: found.election.as_str().to_owned(),
            merchant: merchant.clone(),
            amount: currency.format(*amount),
            currency: currency.code().to_owned(),
            value_date: Some(found.value_date),
            state: found.state,
            reason: found.reason.map(str::to_owned),
            release: found.release.as_str().to_owned(),
            attempts: found.attempts,
            in_doubt: found.in_doubt,
            first_sent_at: found.first_sent_at,
            key_valid_until: found.key_valid_until,
            next_attempt_at: found.next_attempt_at,
            receiver: found.receiver.clone(),
            reference: found.reference.clone(),
            return_reference: found.return_reference.clone(),
            last_error: found.last_error.clone(),
            term: found.term,
            created_at: found.created_at,
            final_at: found.final_at,
            body: String::from_utf8_lossy(&found.body).into_owned(),
        })
    }

    /// Takes a person's word on what came of a payout.
    pub(super) fn resolve_payout(
        &mut self,
        key: &str,
        resolution: &Resolution,
        reason: &str,
        actor: &Actor,
        eyes: Eyes<'_>,
        now: DateTime<Utc>,
    ) -> Done<ResolveOutcome> {
        let payout = |found: &&Instruction| found.kind == InstructionKind::Payout && found.key == key;
        let Some(found) = self.instructions.values().find(payout) else {
            return Done::RollBack(ResolveOutcome::NotFound);
        };
        let (id, was, election) = (found.id, found.state, found.election.clone());
        let becomes = match resolve(was, resolution, self.ground(found, now)) {
            Ok(becomes) => becomes,
            Err(why) => return Done::RollBack(ResolveOutcome::Refused { state: was, why }),
        };
        let asks = GuardedAct::ResolvePayout { key: key.to_owned(), resolution: resolution.clone() };
        if let Some(request) = self.waits(eyes, &asks, reason, actor, now) {
            return Done::Commit(ResolveOutcome::Waits { request });
        }
        let act = Act {
            action: "payouts resolve",
            target: key.to_owned(),
            reason: Some(reason),
            election: Some(&election),
            already: false,
            baseline: None,
        };
        self.act(actor, act, now);
        let reference = match resolution {
            Resolution::Paid(reference) | Resolution::Returned(reference) => Some(reference.clone()),
            Resolution::NotPaid { bank_confirmed } => bank_confirmed.clone(),
        };
        let term = self.fences.get(&election).map_or(0, |fence| fence.holder.term.get());
        self.end_payout(id, becomes, reference, term, now);
        if let Some(found) = self.instructions.get_mut(&id) {
            found.resolved = true;
        }
        Done::Commit(ResolveOutcome::Resolved { was, now: becomes })
    }

    /// What a person's word is measured by.
    pub(super) fn ground(&self, found: &Instruction, now: DateTime<Utc>) -> ResolveGround {
        // Elsewhere somebody else takes payouts from the store.
        let only_sent =
            self.was_to_send(found) && self.jobs.get(&found.job_id).is_some_and(|job| sends(&job.definition));
        ResolveGround {
            never_sent: found.first_sent_at.is_none() && !found.in_doubt && only_sent,
            expired: found.key_valid_until.is_some_and(|until| until < now),
            key_valid_until: found.key_valid_until,
        }
    }

    /// Whether its run sends its payouts, and leaves none in the store for others to take.
    pub(super) fn was_to_send(&self, found: &Instruction) -> bool {
        self.runs.get(&found.run_id).is_some_and(|run| sends(&run.definition))
    }

    /// Releases payouts of a run: those that wait for it, or those that are named, also where they are held for their amount or
    /// because others may have taken them from the store.
    pub(super) fn release_payouts(
        &mut self,
        run: i64,
        keys: &[String],
        reason: &str,
        actor: &Actor,
        eyes: Eyes<'_>,
        now: DateTime<Utc>,
    ) -> Done<ReleaseOutcome> {
        let Some(election) = self.runs.get(&run).map(|run| run.election.clone()) else {
            return Done::RollBack(ReleaseOutcome::NotFound);
        };
        let to_release: Vec<String> = self
            .instructions
            .values()
            .filter(|found| found.is_let_go(run, keys))
            .map(|found| found.key.clone())
            .collect();
        let left = keys_left(keys, &to_release);
        if !left.is_empty() {
            return Done::RollBack(ReleaseOutcome::Unmatched { keys: left });
        }
        if to_release.is_empty() && self.four_eyes {
            return Done::RollBack(ReleaseOutcome::Released { payouts: 0 });
        }
        let asks = GuardedAct::ReleasePayouts { run, keys: keys.to_vec() };
        if let Some(request) = self.waits(eyes, &asks, reason, actor, now) {
            return Done::Commit(ReleaseOutcome::Waits { request });
        }
        let (mut payouts, mut on_hold) = (0, Vec::new());
        for found in self.instructions.values_mut().filter(|found| found.is_let_go(run, keys)) {
            found.cleared |= found.reason == Some("approval");
            found.free();
            found.release = Released::ByHand;
            payouts += 1;
            if self.holds.keys().any(|merchant| found.is_for(merchant)) {
                on_hold.push(found.id);
            }
        }
        for id in on_hold {
            self.hold(id, MERCHANT, None);
        }
        let act = Act {
            action: "payouts release",
            target: run.to_string(),
            reason: Some(reason),
            election: Some(&election),
            already: false,
            baseline: None,
        };
        self.act(actor, act, now);
        Done::Commit(ReleaseOutcome::Released { payouts })
    }
}

impl Instruction {
    /// Whether it is a payout to that merchant.
    pub(super) fn is_for(&self, merchant: &str) -> bool {
        self.payout.as_ref().is_some_and(|(found, _, _)| found == merchant)
    }

    /// Whether a release of that run, of these keys or of all, lets it go.
    pub(super) fn is_let_go(&self, run: i64, keys: &[String]) -> bool {
        let named = keys.contains(&self.key);
        let waits = self.release == Released::Waiting && self.state == InstructionState::Pending;
        let over = self.state == InstructionState::Held && matches!(self.reason, Some("over_limit" | "approval"));
        self.kind == InstructionKind::Payout
            && self.run_id == run
            && ((waits && (named || keys.is_empty())) || (over && named))
    }

    /// Held no more: as it was before.
    pub(super) fn free(&mut self) {
        self.state = self.as_it_was();
        (self.reason, self.next_attempt_at) = (None, None);
    }
}
