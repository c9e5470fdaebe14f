//! The same for payouts, whose takes and records have rules of their own. [`twin`](crate::twin) compares them too.

use bursar::domain::instruction::InstructionState;

use super::{Rules, Store};

/// What is recorded of a try at a payout: the product's `PayoutFate`, without what is for people and without waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayoutFate {
    /// The payment was made.
    Paid,
    /// The receiver has something else under the key.
    Mismatch,
    /// A final no.
    Rejected,
    /// Nobody knows.
    Unknown {
        /// It may be tried again.
        again: bool,
    },
    /// As it was before the try.
    Back {
        /// A try left.
        left: bool,
    },
}

impl PayoutFate {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Paid,
        Self::Mismatch,
        Self::Rejected,
        Self::Unknown { again: true },
        Self::Unknown { again: false },
        Self::Back { left: true },
        Self::Back { left: false },
    ];
}

impl Store {
    /// Takes a payout: how many leave, and how many are held instead. What is in doubt leaves again only where the receiver is
    /// idempotent.
    pub fn take_payout(&mut self, term: u8, instruction: usize, rules: Rules) -> (u8, u8) {
        match self.rows[instruction].state {
            InstructionState::Unknown if !rules.idempotent => {
                self.rows[instruction].state = InstructionState::Held;
                (0, 1)
            }
            InstructionState::Pending | InstructionState::Unknown => {
                self.take(term, instruction);
                (1, 0)
            }
            InstructionState::Sending
            | InstructionState::Paid
            | InstructionState::Rejected
            | InstructionState::Held
            | InstructionState::Returned => (0, 0),
        }
    }

    /// Records what a try came to, where it is the one on the wire under that term; answers whether it was.
    pub fn record_payout(&mut self, term: u8, instruction: usize, attempt: u8, fate: PayoutFate) -> bool {
        let row = &mut self.rows[instruction];
        if !row.is_sent_by(term) || row.attempts != attempt {
            return false;
        }
        row.state = match fate {
            PayoutFate::Paid => InstructionState::Paid,
            // Nothing in doubt is reversed.
            PayoutFate::Rejected if !row.in_doubt => InstructionState::Rejected,
            PayoutFate::Rejected | PayoutFate::Mismatch | PayoutFate::Unknown { again: false } => {
                row.in_doubt = true;
                InstructionState::Held
            }
            PayoutFate::Unknown { again: true } => {
                row.in_doubt = true;
                InstructionState::Unknown
            }
            PayoutFate::Back { .. } => row.as_it_was(),
        };
        true
    }
}
