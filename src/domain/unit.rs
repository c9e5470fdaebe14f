//! Settlement units: their states and the only transitions that exist.

use serde::{Deserialize, Serialize};

/// The state of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitState {
    /// To be settled, or to be tried again later.
    Pending,
    /// Its effect is in the store.
    Settled,
    /// Its net was negative or below the minimum and went into a carry.
    Carried,
    /// Nothing was left to bind when it was settled; or, of a unit that was called, a person says that nothing was done.
    Empty,
    /// For a person, with its error.
    SetAside,
}

impl UnitState {
    /// All states, in the order of reports.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Settled, Self::Carried, Self::Empty, Self::SetAside];

    /// The name used in the store, in metrics and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Settled => "settled",
            Self::Carried => "carried",
            Self::Empty => "empty",
            Self::SetAside => "set_aside",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether the unit is done with, as far as its run is concerned.
    #[must_use]
    pub const fn has_ended(self) -> bool {
        match self {
            Self::Pending => false,
            Self::Settled | Self::Carried | Self::Empty | Self::SetAside => true,
        }
    }

    /// Whether a unit may go from `self` to `to`. A unit set aside comes back only by an operator's retry,
    /// and ends only by a person's word on its call.
    #[must_use]
    pub const fn may_become(self, to: Self) -> bool {
        match (self, to) {
            (Self::Pending, Self::Settled | Self::Carried | Self::Empty | Self::SetAside)
            | (Self::SetAside, Self::Pending | Self::Settled | Self::Empty) => true,
            (Self::Pending, Self::Pending)
            | (Self::SetAside, Self::Carried | Self::SetAside)
            | (Self::Settled | Self::Carried | Self::Empty, _) => false,
        }
    }
}

/// Which outcome an attempt at a unit had, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptOutcome {
    /// The unit ended settled, carried or empty.
    Settled,
    /// The attempt failed and will be repeated.
    Failed,
    /// The unit was set aside.
    SetAside,
}

impl AttemptOutcome {
    /// All outcomes.
    pub const ALL: [Self; 3] = [Self::Settled, Self::Failed, Self::SetAside];

    /// The label in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Failed => "failed",
            Self::SetAside => "set_aside",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_units_never_change_but_for_a_retry_or_a_persons_word() {
        for from in UnitState::ALL {
            for to in UnitState::ALL {
                let legal = from == UnitState::Pending && to != UnitState::Pending
                    || from == UnitState::SetAside
                        && matches!(to, UnitState::Pending | UnitState::Settled | UnitState::Empty);
                assert_eq!(from.may_become(to), legal, "{from:?} to {to:?}");
            }
            assert_eq!(UnitState::parse(from.as_str()), Some(from));
        }
    }
}
