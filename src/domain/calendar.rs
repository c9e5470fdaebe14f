//! Business calendars as a definition has them: which built-in ones they rest on, and the days off of their own. Which days
//! that makes is for `schedule` to compute.

use std::collections::BTreeSet;

use chrono::{NaiveDate, Weekday};
use serde::{Deserialize, Serialize};

/// A calendar whose days off are computed, for every year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BuiltIn {
    /// The closing days of T2, which was TARGET2: the euro's.
    Target2,
    /// The Federal Reserve's: the US dollar's.
    UsFederalReserve,
    /// The bank holidays of England and Wales: the pound's.
    EnglandAndWales,
}

impl BuiltIn {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Target2, Self::UsFederalReserve, Self::EnglandAndWales];

    /// The name in the schedule.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Target2 => "target2",
            Self::UsFederalReserve => "us-federal-reserve",
            Self::EnglandAndWales => "england-and-wales",
        }
    }
}

/// A calendar, complete: what it extends is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalendarDefinition {
    /// The name in the schedule.
    pub name: String,
    /// Built-in calendars whose days off are days off here too.
    pub built_in: BTreeSet<BuiltIn>,
    /// Days of the week off, from Monday on; never all of them.
    pub weekend: Vec<Weekday>,
    /// Further days off.
    pub holidays: BTreeSet<NaiveDate>,
    /// SHA-256 over the days off that this release makes of it: another release may know of more.
    pub fingerprint: String,
}

/// What becomes of a tick on a day off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Roll {
    /// It is due on the next business day.
    Following,
    /// On the next one, or, where that is in another month, on the one before.
    ModifiedFollowing,
    /// On the business day before.
    Preceding,
    /// It is recorded as skipped.
    Skip,
}

impl Roll {
    /// The word in the schedule.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Following => "following",
            Self::ModifiedFollowing => "modified_following",
            Self::Preceding => "preceding",
            Self::Skip => "skip",
        }
    }
}

/// Business days for a job's ticks and cutoffs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusinessDays {
    /// Which days are off.
    pub calendar: CalendarDefinition,
    /// What becomes of a tick on one.
    pub roll: Roll,
}
