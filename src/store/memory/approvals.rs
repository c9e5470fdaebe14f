//! Two pairs of eyes. A role is the name by which a replica sees the store.

use chrono::{DateTime, Utc};

use super::fence::Act;
use super::rows::{Approval, Instruction};
use super::state::{Done, MemoryState};
use crate::domain::instruction::InstructionKind;
use crate::store::approvals::{FOUND_ON, found_import, found_payout, found_release, judge};
use crate::store::{
    ActDone, Actor, ApprovalState, ApprovalView, DecideOutcome, Decision, DecisionView, FourEyesOutcome, GuardedAct,
    ReleaseOutcome, ResolveOutcome, RevertOutcome, nothing_waits, resolve,
};

/// Whether an act has been seen by two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eyes<'a> {
    /// By this role: where two are needed it is filed instead.
    One(&'a str),
    /// By another role too, in this operation.
    Both,
}

impl MemoryState {
    /// Files a request where two are needed and only one has seen it; `None`: it may be done.
    pub(super) fn waits(
        &mut self,
        eyes: Eyes<'_>,
        asks: &GuardedAct,
        reason: &str,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> Option<i64> {
        let role = match eyes {
            Eyes::One(role) if self.four_eyes => role,
            Eyes::One(_) | Eyes::Both => return None,
        };
        let found = self.look_at(asks, now).unwrap_or_else(|why| why);
        Some(self.file_approval(role, asks, found, reason, actor, now))
    }

    fn file_approval(
        &mut self,
        role: &str,
        asks: &GuardedAct,
        found: String,
        reason: &str,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> i64 {
        // Of what is as it was then: one that nobody can approve any more is no answer.
        let same = |row: &&Approval| {
            row.view.state == ApprovalState::Waiting && row.view.asks == *asks && row.view.found == found
        };
        if let Some(same) = self.approvals.values().find(same) {
            return same.view.id;
        }
        self.act(actor, Act::on_none(asks.asking(), &asks.target(), reason), now);
        let id = self.next_id();
        let view = ApprovalView {
            id,
            asks: asks.clone(),
            found,
            reason: reason.to_owned(),
            state: ApprovalState::Waiting,
            role: role.to_owned(),
            by: format!("{}@{}", actor.user, actor.host),
            at: now,
            decided: None,
        };
        self.approvals.insert(id, Approval { view });
        id
    }

    pub(super) fn set_four_eyes(
        &mut self,
        on: bool,
        role: &str,
        reason: &str,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> Done<FourEyesOutcome> {
        match (self.four_eyes, on) {
            (true, true) => Done::RollBack(FourEyesOutcome::WasOn),
            (false, false) => Done::RollBack(FourEyesOutcome::Off),
            (true, false) => {
                let found = FOUND_ON.to_owned();
                let request = self.file_approval(role, &GuardedAct::EndFourEyes, found, reason, actor, now);
                Done::Commit(FourEyesOutcome::Waits { request })
            }
            (false, true) => {
                self.act(actor, Act::on_none("four eyes", "deployment", reason), now);
                self.four_eyes = true;
                Done::Commit(FourEyesOutcome::On)
            }
        }
    }

    pub(super) fn approvals_view(&self, one: Option<i64>, decided: bool, limit: usize) -> Vec<ApprovalView> {
        self.approvals
            .values()
            .rev()
            .map(|row| &row.view)
            .filter(|view| one.is_none_or(|one| one == view.id))
            .filter(|view| decided || view.state == ApprovalState::Waiting)
            .take(limit)
            .cloned()
            .collect()
    }

    pub(super) fn decide(
        &mut self,
        request: i64,
        decision: Decision,
        role: &str,
        reason: Option<&str>,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> Done<DecideOutcome> {
        let Some(view) = self.approvals.get(&request).map(|row| row.view.clone()) else {
            return Done::RollBack(DecideOutcome::NotFound);
        };
        let becomes = match judge(view.state, &view.role, role, decision) {
            Ok(becomes) => becomes,
            Err(outcome) => return Done::RollBack(outcome),
        };
        if becomes == ApprovalState::Approved {
            match self.look_at(&view.asks, now) {
                Err(why) => return Done::RollBack(DecideOutcome::Refused { why }),
                Ok(found) if found != view.found => {
                    return Done::RollBack(DecideOutcome::Moved { asked: view.found, found });
                }
                Ok(_) => {}
            }
        }
        let outcome = match becomes {
            ApprovalState::Rejected => DecideOutcome::Rejected,
            ApprovalState::Withdrawn => DecideOutcome::Withdrawn,
            ApprovalState::Approved | ApprovalState::Waiting => {
                match self.carry_out(&view.asks, &view.reason, actor, now) {
                    Ok(did) => DecideOutcome::Approved { asks: view.asks.clone(), did },
                    Err(why) => return Done::RollBack(DecideOutcome::Refused { why }),
                }
            }
        };
        let action = match becomes {
            ApprovalState::Approved | ApprovalState::Waiting => "approve",
            ApprovalState::Rejected => "reject",
            ApprovalState::Withdrawn => "withdraw",
        };
        let target = format!("request {request}: {} {}", view.asks.action(), view.asks.target());
        let act = Act { action, target, reason, election: None, already: false, baseline: None };
        self.act(actor, act, now);
        if let Some(row) = self.approvals.get_mut(&request) {
            row.view.state = becomes;
            let by = format!("{}@{}", actor.user, actor.host);
            let reason = reason.map(str::to_owned);
            row.view.decided = Some(DecisionView { role: role.to_owned(), by, at: now, reason });
        }
        Done::Commit(outcome)
    }

    /// What an act would find now; or why it is not allowed.
    fn look_at(&self, asks: &GuardedAct, now: DateTime<Utc>) -> Result<String, String> {
        match asks {
            GuardedAct::ResolvePayout { key, resolution } => {
                let is = |found: &&Instruction| found.kind == InstructionKind::Payout && found.key == *key;
                let found = self.instructions.values().find(is).ok_or_else(|| format!("there is no payout {key}"))?;
                resolve(found.state, resolution, self.ground(found, now))?;
                Ok(found_payout(found.state, found.reason, found.attempts, found.in_doubt, resolution))
            }
            GuardedAct::ResolveCall { run, unit, key: _, word } => self.look_at_call(*run, unit, word, now),
            GuardedAct::ReleasePayouts { run, keys } => {
                if !self.runs.contains_key(run) {
                    return Err(format!("there is no run {run}"));
                }
                let of = self.instructions.values().filter(|found| found.is_let_go(*run, keys));
                Ok(found_release(of.map(|found| found.key.as_str())))
            }
            GuardedAct::RevertImport { import } => {
                let view = self.import_view(*import).ok_or_else(|| format!("there is no import {import}"))?;
                match view.record.reverted_at {
                    Some(at) => Err(format!("import {import} was taken back at {at}")),
                    None => Ok(found_import(view.open, view.settled)),
                }
            }
            GuardedAct::EndFourEyes if self.four_eyes => Ok(FOUND_ON.to_owned()),
            GuardedAct::EndFourEyes => Err("acts wait for nobody".to_owned()),
        }
    }

    /// Does what was asked; or says why not, and then nothing has changed.
    fn carry_out(
        &mut self,
        asks: &GuardedAct,
        reason: &str,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> Result<ActDone, String> {
        let gone = |what: &str| Err(format!("there is no {what} {}", asks.target()));
        match asks {
            GuardedAct::ResolvePayout { key, resolution } => {
                match self.resolve_payout(key, resolution, reason, actor, Eyes::Both, now).into_inner() {
                    ResolveOutcome::Resolved { was, now } => Ok(ActDone::Resolved { was, now }),
                    ResolveOutcome::Refused { why, .. } => Err(why),
                    ResolveOutcome::NotFound | ResolveOutcome::Waits { .. } => gone("payout"),
                }
            }
            GuardedAct::ResolveCall { run, unit, key: _, word } => {
                match self.resolve_call((*run, unit), word, reason, actor, Eyes::Both, now).into_inner() {
                    ResolveOutcome::Resolved { was, now } => Ok(ActDone::Resolved { was, now }),
                    ResolveOutcome::Refused { why, .. } => Err(why),
                    ResolveOutcome::NotFound | ResolveOutcome::Waits { .. } => gone("call"),
                }
            }
            GuardedAct::ReleasePayouts { run, keys } => {
                match self.release_payouts(*run, keys, reason, actor, Eyes::Both, now).into_inner() {
                    ReleaseOutcome::Released { payouts } => Ok(ActDone::Released { payouts }),
                    ReleaseOutcome::Unmatched { keys } => Err(nothing_waits(&keys)),
                    ReleaseOutcome::NotFound | ReleaseOutcome::Waits { .. } => gone("run"),
                }
            }
            GuardedAct::RevertImport { import } => {
                match self.revert_import(*import, reason, actor, Eyes::Both, now).into_inner() {
                    RevertOutcome::Reverted { withdrawn, adjusted } => Ok(ActDone::Reverted { withdrawn, adjusted }),
                    RevertOutcome::Already { at } => Err(format!("it was taken back at {at}")),
                    RevertOutcome::NotFound | RevertOutcome::Waits { .. } => gone("import"),
                }
            }
            GuardedAct::EndFourEyes => {
                self.act(actor, Act::on_none("four eyes end", "deployment", reason), now);
                self.four_eyes = false;
                Ok(ActDone::FourEyesEnded)
            }
        }
    }
}
