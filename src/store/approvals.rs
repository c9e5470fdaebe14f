//! Two pairs of eyes on what no program can find out or take back: a person's word on a payout, a release, a reverted import.
//!
//! Whether they are asked for stands in the store, so that no configuration of a client's can leave it out: it is switched on
//! by any of them, and ends only as the acts do, by two. Who asks and who approves are database roles, which the database
//! itself names; a store without roles refuses to switch it on.
//!
//! A request holds the whole of what is asked, and what was found then. It is carried out by its approval, in that transaction,
//! and only where what is found is still the same.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{CallWord, Resolution};
use crate::domain::instruction::InstructionState;

/// What waits for a second pair of eyes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "act")]
pub enum GuardedAct {
    /// A person's word on a payout.
    ResolvePayout {
        /// Its key.
        key: String,
        /// The word.
        resolution: Resolution,
    },
    /// A person's word on what came of a unit's call.
    ResolveCall {
        /// The run.
        run: i64,
        /// The unit's key.
        unit: String,
        /// The call's key.
        key: String,
        /// The word.
        word: CallWord,
    },
    /// Payouts of a run leave that wait for it.
    ReleasePayouts {
        /// The run.
        run: i64,
        /// Only these; empty: all that wait.
        keys: Vec<String>,
    },
    /// An import is taken back.
    RevertImport {
        /// The import.
        import: i64,
    },
    /// Nothing waits for a second pair of eyes any more.
    EndFourEyes,
}

impl GuardedAct {
    /// What, as words of the command line.
    #[must_use]
    pub const fn action(&self) -> &'static str {
        match self {
            Self::ResolvePayout { .. } => "payouts resolve",
            Self::ResolveCall { .. } => "units resolve",
            Self::ReleasePayouts { .. } => "payouts release",
            Self::RevertImport { .. } => "imports revert",
            Self::EndFourEyes => "four eyes end",
        }
    }

    /// The act of asking for it, as the history has it.
    pub(super) const fn asking(&self) -> &'static str {
        match self {
            Self::ResolvePayout { .. } => "ask: payouts resolve",
            Self::ResolveCall { .. } => "ask: units resolve",
            Self::ReleasePayouts { .. } => "ask: payouts release",
            Self::RevertImport { .. } => "ask: imports revert",
            Self::EndFourEyes => "ask: four eyes end",
        }
    }

    /// On what: a key, a run, an import.
    #[must_use]
    pub fn target(&self) -> String {
        match self {
            Self::ResolvePayout { key, .. } | Self::ResolveCall { key, .. } => key.clone(),
            Self::ReleasePayouts { run, .. } => run.to_string(),
            Self::RevertImport { import } => import.to_string(),
            Self::EndFourEyes => "deployment".to_owned(),
        }
    }
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has decided.
    Waiting,
    /// Approved by another role, and carried out.
    Approved,
    /// Rejected by another role.
    Rejected,
    /// Taken back by the role that asked.
    Withdrawn,
}

impl ApprovalState {
    /// The stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// Reads a stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Waiting, Self::Approved, Self::Rejected, Self::Withdrawn]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// One request for a second pair of eyes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalView {
    /// Identity.
    pub id: i64,
    /// What is asked.
    pub asks: GuardedAct,
    /// What was found when it was asked.
    pub found: String,
    /// Why.
    pub reason: String,
    /// Where it stands.
    pub state: ApprovalState,
    /// The database role that asked.
    pub role: String,
    /// User and host that asked.
    pub by: String,
    /// When, by the store's clock.
    pub at: DateTime<Utc>,
    /// Who decided; `None` while it waits.
    pub decided: Option<DecisionView>,
}

/// How a request was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionView {
    /// The database role.
    pub role: String,
    /// User and host.
    pub by: String,
    /// When.
    pub at: DateTime<Utc>,
    /// Why, where it was said.
    pub reason: Option<String>,
}

/// What is made of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is carried out. By another role only.
    Approve,
    /// It is not: rejected by another role, withdrawn by its own.
    Reject,
}

/// What came of an approved act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "done")]
pub enum ActDone {
    /// The payout, or the call, is final.
    Resolved {
        /// The state before.
        was: InstructionState,
        /// The state now.
        now: InstructionState,
    },
    /// Payouts may leave.
    Released {
        /// How many.
        payouts: u64,
    },
    /// The import is taken back.
    Reverted {
        /// Open entries withdrawn.
        withdrawn: u64,
        /// Opposite adjustments written.
        adjusted: u64,
    },
    /// Acts wait for nobody any more.
    FourEyesEnded,
}

/// How deciding went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum DecideOutcome {
    /// Approved and carried out.
    Approved {
        /// What was asked.
        asks: GuardedAct,
        /// What came of it.
        did: ActDone,
    },
    /// Rejected by another role.
    Rejected,
    /// Withdrawn by the role that asked.
    Withdrawn,
    /// There is no such request.
    NotFound,
    /// The role that asked cannot approve.
    SameRole {
        /// The role that asked.
        asked: String,
        /// The role of whoever approves.
        approves: String,
    },
    /// It was decided before.
    Closed {
        /// How.
        state: ApprovalState,
    },
    /// What is there is not what it was when it was asked: nothing was done, and the request waits on.
    Moved {
        /// What was found when it was asked.
        asked: String,
        /// What is found now.
        found: String,
    },
    /// It is not allowed any more: nothing was done, and the request waits on.
    Refused {
        /// Why, and what to do.
        why: String,
    },
}

/// How switching went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum FourEyesOutcome {
    /// Acts wait from now on.
    On,
    /// They did before.
    WasOn,
    /// They do not, and did not.
    Off,
    /// They still do: ending it is an act that waits too.
    Waits {
        /// The request.
        request: i64,
    },
}

/// What a decision comes to before anything is looked at but the request. Pure; every adapter decides by it.
pub(super) fn judge(
    state: ApprovalState,
    asked: &str,
    decides: &str,
    decision: Decision,
) -> Result<ApprovalState, DecideOutcome> {
    match (state, decision) {
        (ApprovalState::Approved | ApprovalState::Rejected | ApprovalState::Withdrawn, _) => {
            Err(DecideOutcome::Closed { state })
        }
        (ApprovalState::Waiting, Decision::Approve) if asked == decides => {
            Err(DecideOutcome::SameRole { asked: asked.to_owned(), approves: decides.to_owned() })
        }
        (ApprovalState::Waiting, Decision::Approve) => Ok(ApprovalState::Approved),
        (ApprovalState::Waiting, Decision::Reject) if asked == decides => Ok(ApprovalState::Withdrawn),
        (ApprovalState::Waiting, Decision::Reject) => Ok(ApprovalState::Rejected),
    }
}

/// What is found of a payout, in words that change with whatever a person's word goes by. Tries are among it only where the word is
/// that nothing was done: what was found out of earlier ones says nothing of a later one. One that stays unknown is tried on while
/// its word waits for the second pair of eyes, and a payment that was seen stays one.
pub(super) fn found_payout(
    state: InstructionState,
    reason: Option<&str>,
    tries: u32,
    in_doubt: bool,
    word: &Resolution,
) -> String {
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let tries = match word {
        Resolution::NotPaid { .. } => format!(", {tries} tries"),
        Resolution::Paid(_) | Resolution::Returned(_) => String::new(),
    };
    let doubt = if in_doubt { ", in doubt" } else { "" };
    format!("{}{reason}{tries}{doubt}", state.as_str())
}

/// What is found of the payouts that a release lets go, in the order of their ids.
pub(super) fn found_release<'a>(keys: impl Iterator<Item = &'a str>) -> String {
    let (mut digest, mut payouts) = (Sha256::new(), 0_u64);
    for key in keys {
        digest.update(key.as_bytes());
        digest.update(b"\n");
        payouts += 1;
    }
    let digest = data_encoding::HEXLOWER.encode(&digest.finalize());
    format!("{payouts} payouts to release (sha-256 of their keys {})", digest.get(..16).unwrap_or(&digest))
}

/// What is found of an import's entries.
pub(super) fn found_import(open: u64, settled: u64) -> String {
    format!("{open} entries open, {settled} settled")
}

/// What is found where acts wait.
pub(super) const FOUND_ON: &str = "acts wait for two";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asked_can_take_it_back_but_never_approve_it_and_what_is_decided_stays_so() {
        use ApprovalState::{Approved, Rejected, Waiting, Withdrawn};
        assert_eq!(judge(Waiting, "ann", "bob", Decision::Approve), Ok(Approved));
        assert_eq!(judge(Waiting, "ann", "bob", Decision::Reject), Ok(Rejected));
        assert_eq!(judge(Waiting, "ann", "ann", Decision::Reject), Ok(Withdrawn));
        let same = DecideOutcome::SameRole { asked: "ann".to_owned(), approves: "ann".to_owned() };
        assert_eq!(judge(Waiting, "ann", "ann", Decision::Approve), Err(same));
        for state in [Approved, Rejected, Withdrawn] {
            assert_eq!(ApprovalState::parse(state.as_str()), Some(state));
            for decision in [Decision::Approve, Decision::Reject] {
                assert_eq!(judge(state, "ann", "bob", decision), Err(DecideOutcome::Closed { state }));
            }
        }
    }

    #[test]
    fn what_was_found_reads_otherwise_when_anything_of_it_changes() {
        let one = |keys: &[&str]| found_release(keys.iter().copied());
        assert_ne!(one(&["a", "b"]), one(&["ab"]));
        assert_ne!(one(&["a", "b"]), one(&["b", "a"]));
        let told = |word: &Resolution| found_payout(InstructionState::Held, Some("unknown"), 3, true, word);
        assert_eq!(told(&Resolution::Paid("R".to_owned())), "held (unknown), in doubt");
        assert_eq!(told(&Resolution::NotPaid { bank_confirmed: None }), "held (unknown), 3 tries, in doubt");
    }
}
