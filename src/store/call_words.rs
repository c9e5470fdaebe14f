//! A person's word on what came of a unit's call: the way out for a unit of an outside handler that no program can settle.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::ResolveGround;
use super::bounds::wait;
use crate::domain::instruction::InstructionState;
use crate::domain::job::{HandlerDefinition, JobDefinition};
use crate::domain::unit::UnitState;

/// An operator's word on what came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallWord {
    /// It was carried out, under this reference: its unit is settled.
    Done(String),
    /// It was not, and will not be: its unit has come to nothing, and its key is free for the job's later runs. Only where the
    /// receiver no longer knows the call's key, or has confirmed it.
    NotDone {
        /// The receiver's own word for it.
        confirmed: Option<String>,
    },
}

impl CallWord {
    /// What is kept with the call.
    #[must_use]
    pub fn reference(&self) -> Option<&str> {
        match self {
            Self::Done(reference) => Some(reference),
            Self::NotDone { confirmed } => confirmed.as_deref(),
        }
    }

    /// What its unit becomes.
    #[must_use]
    pub const fn unit_becomes(&self) -> UnitState {
        match self {
            Self::Done(_) => UnitState::Settled,
            Self::NotDone { .. } => UnitState::Empty,
        }
    }
}

/// What an operator's word makes of a call that was found like this, with its unit. Pure; every adapter decides by it.
///
/// # Errors
/// Why not, and what to do.
pub fn resolve_call(
    unit: UnitState,
    call: InstructionState,
    word: &CallWord,
    ground: ResolveGround,
) -> Result<InstructionState, String> {
    if unit != UnitState::SetAside {
        return Err(format!("its unit is {}: only one that is set aside waits for a word", unit.as_str()));
    }
    match (call, word) {
        (InstructionState::Held, CallWord::Done(_)) => Ok(InstructionState::Paid),
        (InstructionState::Held, CallWord::NotDone { confirmed }) => {
            if confirmed.is_some() || ground.never_sent || ground.expired {
                return Ok(InstructionState::Rejected);
            }
            let until = ground.key_valid_until.map_or_else(String::new, |until| format!(" until {until}"));
            Err(format!(
                "the receiver knows its key{until} and may still carry it out: wait, or give its word with \
                 --bank-confirmed REF"
            ))
        }
        // It surely had no effect; what is left to say is that it is not to be tried again.
        (InstructionState::Rejected, CallWord::NotDone { .. }) => Ok(InstructionState::Rejected),
        (InstructionState::Rejected, CallWord::Done(_)) => {
            Err("it was refused, or surely had no effect: retry it, or say --not-done".to_owned())
        }
        (
            InstructionState::Pending
            | InstructionState::Sending
            | InstructionState::Unknown
            | InstructionState::Paid
            | InstructionState::Returned,
            _,
        ) => Err("it does not wait for a word".to_owned()),
    }
}

/// What [`resolve_call`] goes by. A program that has ended carries nothing out any more; a receiver may, as long as it knows the key.
pub(super) fn call_ground(
    definition: &JobDefinition,
    in_doubt: bool,
    first_sent_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> ResolveGround {
    let valid_for = match &definition.handler {
        HandlerDefinition::Http(http) => Some(http.receiver.key_valid_for),
        HandlerDefinition::Ledger(_) | HandlerDefinition::Sql(_) | HandlerDefinition::Command(_) => None,
        #[cfg(feature = "chaos")]
        HandlerDefinition::Probe(_) => None,
    };
    let valid_for =
        valid_for.map(|valid_for| chrono::TimeDelta::from_std(wait(valid_for)).unwrap_or(chrono::TimeDelta::MAX));
    let key_valid_until = first_sent_at.zip(valid_for).map(|(first, valid_for)| first + valid_for);
    ResolveGround {
        never_sent: first_sent_at.is_none() && !in_doubt,
        expired: key_valid_until.is_none_or(|until| until < now),
        key_valid_until,
    }
}

/// What is found of a unit's call, in words that change with whatever a person's word goes by: which call it is, and how often it
/// was tried, too. A unit that is set aside is not tried on while its word waits, unless somebody retries it.
pub(super) fn found_call(
    unit: UnitState,
    (key, tries): (&str, u32),
    call: InstructionState,
    reason: Option<&str>,
    in_doubt: bool,
) -> String {
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let doubt = if in_doubt { ", in doubt" } else { "" };
    format!("unit {}, call {key} {}{reason}, {tries} tries{doubt}", unit.as_str(), call.as_str())
}

/// Why there is nothing to say a word on.
pub(super) const NEVER_CALLED: &str = "it was never called: `bursar units retry` has it tried";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_taken_of_what_waits_for_one_and_where_nothing_can_contradict_it() {
        use InstructionState::{Held, Paid, Pending, Rejected, Returned, Sending, Unknown};
        let done = CallWord::Done("R".to_owned());
        let not = |confirmed: Option<&str>| CallWord::NotDone { confirmed: confirmed.map(str::to_owned) };
        let valid = ResolveGround::default();
        let expired = ResolveGround { expired: true, ..valid };
        let aside = UnitState::SetAside;
        assert_eq!(resolve_call(aside, Held, &done, valid), Ok(Paid));
        assert_eq!(resolve_call(aside, Held, &not(Some("W")), valid), Ok(Rejected));
        assert_eq!(resolve_call(aside, Held, &not(None), expired), Ok(Rejected));
        assert_eq!(resolve_call(aside, Rejected, &not(None), valid), Ok(Rejected), "it is closed");
        assert!(resolve_call(aside, Held, &not(None), valid).is_err());
        assert!(resolve_call(aside, Rejected, &done, expired).is_err());
        for call in [Pending, Sending, Unknown, Paid, Returned] {
            assert!(resolve_call(aside, call, &done, expired).is_err(), "{call:?}");
            assert!(resolve_call(aside, call, &not(Some("W")), expired).is_err(), "{call:?}");
        }
        for unit in [UnitState::Pending, UnitState::Settled, UnitState::Empty] {
            assert!(resolve_call(unit, Held, &done, expired).is_err(), "{unit:?}");
        }
    }
}
