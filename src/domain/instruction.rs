//! Instructions: what leaves the house for one unit.

use serde::{Deserialize, Serialize};

/// What kind of instruction it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstructionKind {
    /// A payout of a ledger unit.
    Payout,
    /// The call of an outside handler (`http`, `command`, and `probe` in the test build).
    Call,
}

impl InstructionKind {
    /// The name in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Payout => "payout",
            Self::Call => "call",
        }
    }
}

/// The state of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstructionState {
    /// Written, not sent.
    Pending,
    /// Committed under the fence, on the wire now.
    Sending,
    /// No answer.
    Unknown,
    /// Done.
    Paid,
    /// Finally refused.
    Rejected,
    /// For a person, with a reason.
    Held,
    /// The bank sent it back.
    Returned,
}

impl InstructionState {
    /// All states, in the order of reports.
    pub const ALL: [Self; 7] =
        [Self::Pending, Self::Sending, Self::Unknown, Self::Paid, Self::Rejected, Self::Held, Self::Returned];

    /// The name in the store, in metrics and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Unknown => "unknown",
            Self::Paid => "paid",
            Self::Rejected => "rejected",
            Self::Held => "held",
            Self::Returned => "returned",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether nothing more happens by itself or by a person, but for a return by the bank.
    #[must_use]
    pub const fn is_final(self) -> bool {
        match self {
            Self::Paid | Self::Rejected | Self::Returned => true,
            Self::Pending | Self::Sending | Self::Unknown | Self::Held => false,
        }
    }
}
