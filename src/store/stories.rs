//! The story of a term: how it came about, what its leader found and did, how it ended, and what of it was refused afterwards.
//! All of it is durable; what is noted best effort (the win, the first work, the end) may be missing, and is `None` then.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{ActView, Recovery, TermView};
use crate::domain::ElectionName;

/// The most stories that are told at once; each costs a few questions.
pub const STORIES_TOLD: u32 = 100;

/// The most acts of operators that a story shows.
pub const STORY_ACTS: u32 = 50;

/// How a term was won and what its leader found, as it is noted with the term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promotion {
    /// Handed over by the leader before it, not won in a campaign.
    pub handed_over: bool,
    /// How long the replica had seen the place free when it won; `None` where it had not.
    pub vacant_for: Option<Duration>,
    /// How long ago the replica learnt that it had won.
    pub won_ago: Duration,
    /// What it took over.
    pub recovery: Recovery,
}

impl Promotion {
    /// Since the win, and the time that the place was seen free before it: microseconds.
    pub(crate) fn micros(&self) -> (i64, Option<i64>) {
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        (micros(self.won_ago), self.vacant_for.map(micros))
    }

    /// Runs taken over, of those set aside, outcomes unknown.
    pub(crate) fn taken(&self) -> [i64; 3] {
        let Recovery { calls_unknown, runs_set_aside, runs_taken_over } = &self.recovery;
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        [number(*runs_taken_over), number(runs_set_aside.len() as u64), number(*calls_unknown)]
    }
}

/// Ends of payouts by kind, without those that never came: paid, rejected, returned.
pub(crate) fn payout_ends(counts: [u64; 3]) -> BTreeMap<String, u64> {
    let kinds = ["paid", "rejected", "returned"].map(str::to_owned);
    kinds.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()
}

/// Which stories are told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoryFilter {
    /// Of this election.
    pub election: Option<ElectionName>,
    /// Of this term.
    pub term: Option<i64>,
    /// At most so many, newest first; 1 to [`STORIES_TOLD`].
    pub limit: u32,
}

/// The term before, of the same election.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermBefore {
    /// The term.
    pub term: i64,
    /// Its replica.
    pub replica: String,
    /// When it was noted to have ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// Why it ended.
    pub end_reason: Option<String>,
}

/// What a leader took over from lower terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenOver {
    /// Open runs that a lower term was working on.
    pub runs: u64,
    /// Of those, runs set aside because too many leaders had died over them.
    pub set_aside: u64,
    /// Instructions found on the wire, whose outcome is unknown.
    pub unknown: u64,
}

/// What was committed under a term.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermWork {
    /// Runs opened.
    pub runs_opened: u64,
    /// Ticks recorded that opened no run: skipped, coalesced, missed.
    pub ticks_without_run: u64,
    /// Transactions that ended units.
    pub batches: u64,
    /// Units that ended settled.
    pub settled: u64,
    /// Units that ended carried.
    pub carried: u64,
    /// Units that had nothing left to bind.
    pub empty: u64,
    /// Units set aside.
    pub set_aside: u64,
    /// Instructions written.
    pub instructions: u64,
    /// Ends of payouts recorded under it, by kind: `paid`, `rejected`, `returned`.
    pub payouts: BTreeMap<String, u64>,
}

/// Writes under a term that the store refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The operation.
    pub operation: String,
    /// How often.
    pub count: u64,
    /// The last time.
    pub last_at: DateTime<Utc>,
}

/// One term's story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermStory {
    /// Who, when, why it ended.
    #[serde(flatten)]
    pub term: TermView,
    /// Whether the fence still holds this term.
    pub in_force: bool,
    /// The term before it.
    pub before: Option<TermBefore>,
    /// When the replica saw the place free.
    pub stood_at: Option<DateTime<Utc>>,
    /// When it won.
    pub won_at: Option<DateTime<Utc>>,
    /// Whether it was handed over; `None`: not on record.
    pub handed_over: Option<bool>,
    /// What it took over; `None`: not on record.
    pub taken_over: Option<TakenOver>,
    /// What was committed under it.
    pub work: TermWork,
    /// What of it was refused, by operation.
    pub refused: Vec<Refused>,
    /// Acts of operators while it was in force, on its election or on what belongs to none (a replica, a merchant), oldest first,
    /// without imports; at most [`STORY_ACTS`].
    pub acts: Vec<ActView>,
}
