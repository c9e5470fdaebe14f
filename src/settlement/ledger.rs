//! The ledger: nets a merchant's entries in one currency, posts the journal, writes the payout's instruction. In-store: the
//! rules are [`crate::domain::netting`]'s, the statements the store's, so a whole batch is settled in one transaction.

use super::{Handler, Shape};
use crate::domain::job::LedgerDefinition;
use crate::store::{Effect, PlanSource};

pub(super) fn handler(definition: &LedgerDefinition) -> Handler {
    Handler { plan: PlanSource::Ledger(definition.clone()), shape: Shape::InStore(Effect::Ledger(definition.clone())) }
}
