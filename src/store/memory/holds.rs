//! Merchants on hold: no unit, and nothing of theirs that is pending is sent. They belong to no election.

use chrono::{DateTime, Utc};

use super::fence::Act;
use super::rows::Hold;
use super::state::{Done, MemoryState};
use crate::domain::instruction::InstructionState;
use crate::store::{Actor, HoldReport, MerchantHold};

/// Why a payout of such a merchant is held.
pub(super) const MERCHANT: &str = "merchant";

impl MemoryState {
    /// Puts a merchant on hold. What is on the wire cannot be called back; what is taken later finds the hold itself.
    pub(super) fn hold_merchant(
        &mut self,
        merchant: &str,
        reason: &str,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> Done<HoldReport> {
        self.act(actor, Act::on_none("merchant hold", merchant, reason), now);
        let by = format!("{}@{}", actor.user, actor.host);
        let already = self.holds.contains_key(merchant);
        self.holds.entry(merchant.to_owned()).or_insert(Hold { reason: reason.to_owned(), held_at: now, by });
        let (mut waiting, mut on_the_wire) = (Vec::new(), 0);
        for found in self.instructions.values().filter(|found| found.is_for(merchant)) {
            match found.state {
                InstructionState::Pending | InstructionState::Unknown => waiting.push(found.id),
                InstructionState::Sending => on_the_wire += 1,
                InstructionState::Paid
                | InstructionState::Rejected
                | InstructionState::Held
                | InstructionState::Returned => {}
            }
        }
        for id in &waiting {
            self.hold(*id, MERCHANT, None);
        }
        Done::Commit(HoldReport { already, held: waiting.len() as u64, on_the_wire })
    }

    /// Ends a merchant's hold; what was held for it is as it was before.
    pub(super) fn release_merchant(
        &mut self,
        merchant: &str,
        reason: &str,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> Done<Option<u64>> {
        if self.holds.remove(merchant).is_none() {
            return Done::RollBack(None);
        }
        let mut freed = 0;
        for found in self.instructions.values_mut().filter(|found| found.is_for(merchant)) {
            if found.state == InstructionState::Held && found.reason == Some(MERCHANT) {
                found.free();
                freed += 1;
            }
        }
        self.act(actor, Act::on_none("merchant release", merchant, reason), now);
        Done::Commit(Some(freed))
    }

    pub(super) fn merchant_holds(&self) -> Vec<MerchantHold> {
        let view = |(merchant, hold): (&String, &Hold)| MerchantHold {
            merchant: merchant.clone(),
            reason: hold.reason.clone(),
            held_at: hold.held_at,
            by: hold.by.clone(),
        };
        self.holds.iter().map(view).collect()
    }
}
