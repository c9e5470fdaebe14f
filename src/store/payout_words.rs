//! What operators say of payouts: a word on what came of one, and releases; with the rules by which every adapter takes them.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::instruction::InstructionState;

/// An operator's word on what came of a payout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// It was paid, under this reference.
    Paid(String),
    /// It was not, and will not be: the net comes back as a carry. Only where the key is no longer valid, nothing was ever
    /// sent, or the bank has confirmed it.
    NotPaid {
        /// The bank's own word for it.
        bank_confirmed: Option<String>,
    },
    /// It was paid and the bank sent it back, under this reference: the net comes back as a carry.
    Returned(String),
}

/// How resolving went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum ResolveOutcome {
    /// Done.
    Resolved {
        /// The state before.
        was: InstructionState,
        /// The state now.
        now: InstructionState,
    },
    /// There is no such payout.
    NotFound,
    /// Its state does not allow it.
    Refused {
        /// The state found.
        state: InstructionState,
        /// Why, and what to do.
        why: String,
    },
    /// It waits for another role.
    Waits {
        /// The request.
        request: i64,
    },
}

/// How releasing the payouts of a run went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum ReleaseOutcome {
    /// Done.
    Released {
        /// How many.
        payouts: u64,
    },
    /// Of these keys the run has no payout that waits for a release: nothing is changed.
    Unmatched {
        /// In the order in which they were named.
        keys: Vec<String>,
    },
    /// There is no such run.
    NotFound,
    /// It waits for another role.
    Waits {
        /// The request.
        request: i64,
    },
}

/// The keys that were named and are not among those found.
pub(super) fn keys_left(named: &[String], found: &[String]) -> Vec<String> {
    let found: HashSet<&String> = found.iter().collect();
    named.iter().filter(|key| !found.contains(key)).cloned().collect()
}

/// Why a release with these keys is not done, in words.
#[must_use]
pub fn nothing_waits(keys: &[String]) -> String {
    format!("nothing of these keys waits for a release: {}", keys.join(", "))
}

/// What an operator's word makes of a payout that was found like this. Pure; every adapter decides by it.
///
/// # Errors
/// Why not, and what to do.
pub fn resolve(
    state: InstructionState,
    resolution: &Resolution,
    ground: ResolveGround,
) -> Result<InstructionState, String> {
    match (resolution, state) {
        (_, InstructionState::Sending) => {
            Err("it is on the wire right now: wait for its answer, then look again".to_owned())
        }
        (Resolution::Returned(_), InstructionState::Paid) => Ok(InstructionState::Returned),
        (Resolution::Returned(_), _) => Err("only what was paid can be returned".to_owned()),
        (_, InstructionState::Paid | InstructionState::Rejected | InstructionState::Returned) => {
            Err("it is final".to_owned())
        }
        (Resolution::Paid(_), InstructionState::Pending | InstructionState::Unknown | InstructionState::Held) => {
            Ok(InstructionState::Paid)
        }
        (
            Resolution::NotPaid { bank_confirmed },
            InstructionState::Pending | InstructionState::Unknown | InstructionState::Held,
        ) => {
            if bank_confirmed.is_some() || ground.never_sent || ground.expired {
                Ok(InstructionState::Rejected)
            } else if let Some(until) = ground.key_valid_until {
                Err(format!(
                    "the receiver knows its key until {until} and may still carry it out: wait, or give the bank's word \
                     with --bank-confirmed REF"
                ))
            } else {
                Err("somebody may have taken it from the store: give the bank's word with --bank-confirmed REF"
                    .to_owned())
            }
        }
    }
}

/// What [`resolve`] goes by, besides the state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResolveGround {
    /// Surely nothing was ever sent.
    pub never_sent: bool,
    /// The key is no longer valid.
    pub expired: bool,
    /// When it ends.
    pub key_valid_until: Option<DateTime<Utc>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_persons_word_is_taken_only_where_nothing_can_contradict_it() {
        use InstructionState::{Held, Paid, Pending, Rejected, Returned, Sending, Unknown};
        let paid = Resolution::Paid("R".to_owned());
        let returned = Resolution::Returned("R".to_owned());
        let not_paid = |word: Option<&str>| Resolution::NotPaid { bank_confirmed: word.map(str::to_owned) };
        let nothing = ResolveGround::default();
        let expired = ResolveGround { expired: true, ..nothing };
        let never = ResolveGround { never_sent: true, ..nothing };
        for state in [Pending, Unknown, Held] {
            assert_eq!(resolve(state, &paid, nothing), Ok(Paid));
            assert_eq!(resolve(state, &not_paid(Some("W")), nothing), Ok(Rejected));
            assert_eq!(resolve(state, &not_paid(None), expired), Ok(Rejected));
            assert_eq!(resolve(state, &not_paid(None), never), Ok(Rejected));
            assert!(resolve(state, &not_paid(None), nothing).is_err());
            assert!(resolve(state, &returned, never).is_err());
        }
        assert_eq!(resolve(Paid, &returned, nothing), Ok(Returned));
        for state in [Sending, Rejected, Returned] {
            for resolution in [&paid, &returned, &not_paid(Some("W"))] {
                assert!(resolve(state, resolution, expired).is_err(), "{state:?} {resolution:?}");
            }
        }
        assert!(resolve(Paid, &not_paid(Some("W")), expired).is_err(), "what was paid is returned, not unpaid");
    }
}
