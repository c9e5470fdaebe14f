//! What operators want of single replicas: out of leading, or to hand over.

use chrono::{DateTime, Utc};

use super::fence::Act;
use super::state::{Done, MemoryState};
use crate::store::{Actor, Cordon, TransferAsked, TransferWish, Wishes};

impl MemoryState {
    pub(super) fn wishes(&self, replica: &str) -> Wishes {
        let in_force =
            |wish: &&TransferWish| self.fences.get(&wish.election).is_some_and(|fence| fence.holder.term == wish.term);
        Wishes {
            cordoned: self.cordons.contains_key(replica),
            transfers: self.transfers.values().filter(in_force).cloned().collect(),
        }
    }

    pub(super) fn cordon(
        &mut self,
        replica: &str,
        cordoned: bool,
        reason: &str,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> Done<bool> {
        if self.cordons.contains_key(replica) == cordoned {
            return Done::RollBack(false);
        }
        let action = if cordoned { "cordon" } else { "uncordon" };
        if cordoned {
            let (by, reason) = (format!("{}@{}", actor.user, actor.host), Some(reason.to_owned()));
            self.cordons.insert(replica.to_owned(), Cordon { replica: replica.to_owned(), at: now, by, reason });
        } else {
            self.cordons.remove(replica);
        }
        self.act(actor, Act::on_none(action, replica, reason), now);
        Done::Commit(true)
    }

    pub(super) fn ask_transfer(
        &mut self,
        wish: TransferWish,
        reason: &str,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> Done<TransferAsked> {
        let found = self.fences.get(&wish.election).map(|fence| fence.holder);
        if found.is_none_or(|holder| holder.term != wish.term) {
            return Done::RollBack(TransferAsked::OtherTerm(found));
        }
        let target = wish.to.clone().unwrap_or_else(|| "any replica".to_owned());
        let mut act = Act::on_none("transfer", &target, reason);
        act.election = Some(&wish.election);
        self.act(actor, act, now);
        self.transfers.insert(wish.election.clone(), wish);
        Done::Commit(TransferAsked::Filed)
    }
}
