//! What operators want of single replicas, and what each of them asks the store for: out of leading, or to hand over.
//!
//! Neither is an act under a term: whoever leads is told, and resigns as planned. So it belongs to no election's gate, but a
//! transfer names the term that it is asked of, and means nothing to a later one.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::FenceHolder;
use crate::domain::{ElectionName, Term};

/// What is wanted of one replica now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wishes {
    /// It shall not lead until the cordon is lifted.
    pub cordoned: bool,
    /// Hand-overs that are asked of the terms in force, whoever leads them; at most one an election.
    pub transfers: Vec<TransferWish>,
}

/// A replica that operators keep from leading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cordon {
    /// Its id, whether it is there or not.
    pub replica: String,
    /// Since when, by the store's clock.
    pub at: DateTime<Utc>,
    /// Operating system user and host.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
}

/// A hand-over that is asked of a term.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TransferWish {
    /// The election.
    pub election: ElectionName,
    /// The term in force when it was asked for.
    pub term: Term,
    /// The successor's replica id; any that may lead where there is none.
    pub to: Option<String>,
}

/// How asking for a hand-over went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferAsked {
    /// The leader of that term is told within a second or two.
    Filed,
    /// Another term is in force, or nobody ever led: nothing was changed.
    OtherTerm(Option<FenceHolder>),
}
