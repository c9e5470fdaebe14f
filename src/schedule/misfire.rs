//! What becomes of every tick that fell due since the last look: the misfire policy, overlap, pauses and edits.
//!
//! One scan takes the ticks with due in (`evaluated_until`, `now`], in order, and gives each exactly one outcome; the
//! caller writes them and the new `evaluated_until` in one transaction. So a late, lost or doubled timer changes nothing.
//!
//! In this order, the first that holds decides:
//! 1. paused, or due in a pause that has ended: skipped, however old, and no reason for the policy to strike;
//! 2. on a day off, and those are skipped: the same;
//! 3. due together with an earlier tick of the scan (a roll): coalesced into it;
//! 4. older than `catch_up_window`: missed;
//! 5. no tick of the scan is past the grace: each is opened;
//! 6. otherwise the misfire policy takes all due ones together: `run_latest` coalesces all into the newest, `run_all`
//!    opens all, `skip` skips all, also those on time;
//! 7. what would be opened while an earlier run of the job is open is skipped where `overlap = "skip"`; a run that this
//!    scan opens counts. (So `run_all` with `overlap = "skip"` opens one.)
//!
//! A scan that is longer than a page is continued with the next one: pass [`Scan::misfired`] on, and the outcome is that
//! of one scan. Lost between two pages, it is a scan of its own, and each tick still has one outcome.
//!
//! Deliberately absent: the store. Its unique key on job and tick is what prevents a second run; nothing here remembers. A
//! tick may have run when an edit, or a holiday that was added, makes it due once more: none is coalesced into such a one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::plan::{DayOff, Schedule, Tick, TickPage};
use crate::domain::job::{Misfire, Overlap};
use crate::domain::pause::PastPause;
use crate::domain::run::RunState;

/// The most ticks that an edit records as moved into the past, the newest of them.
pub const EDIT_TICKS: usize = 100;

/// What a scan starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanState {
    /// Ticks due up to here (included) have their outcome.
    pub evaluated_until: DateTime<Utc>,
    /// The store's time.
    pub now: DateTime<Utc>,
    /// The reason, where the job is paused.
    pub paused: Option<String>,
    /// Pauses that have ended, oldest first.
    pub pauses: Vec<PastPause>,
    /// Whether a run of the job that a tick opened has not ended, in whatever election.
    pub run_open: bool,
    /// Whether an earlier page of the same scan had a tick past the grace. False at first.
    pub misfired: bool,
    /// Nominal times of ticks that have an outcome on record though they are due in this scan: an edit, or a new holiday, moved
    /// them. They get no second one, and none is coalesced into them.
    pub recorded: BTreeSet<DateTime<Utc>>,
}

impl ScanState {
    /// Why a tick that is due then is not wanted, where it is not: the pause that lasts takes every tick without an outcome,
    /// one that has ended those that fell due in it.
    fn pause_of(&self, due_at: DateTime<Utc>) -> Option<&str> {
        let past = || self.pauses.iter().find(|pause| pause.holds(due_at)).map(|pause| pause.reason.as_str());
        self.paused.as_deref().or_else(past)
    }

    /// Whether a tick is skipped for its own sake, whatever the policy.
    fn is_unwanted(&self, tick: &Tick) -> bool {
        tick.day_off == Some(DayOff::Skipped) || self.pause_of(tick.due_at).is_some() || self.has_outcome(tick)
    }

    fn has_outcome(&self, tick: &Tick) -> bool {
        self.recorded.contains(&tick.nominal)
    }

    /// The last tick of the scan that is wanted; of the whole scan, not of the page.
    fn newest_wanted(&self, schedule: &Schedule, page: &TickPage) -> Option<Tick> {
        if page.more {
            schedule.latest_where(self.evaluated_until, self.now, |tick| !self.is_unwanted(tick))
        } else {
            page.ticks.iter().rev().find(|tick| !self.is_unwanted(tick)).copied()
        }
    }
}

/// Why a tick was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// The job is paused, for that reason.
    Paused(String),
    /// It falls on a day off of that calendar, and `roll = "skip"`.
    DayOff(String),
    /// `misfire = "skip"`.
    Misfire,
    /// `overlap = "skip"`, and an earlier run is open.
    Overlap,
    /// An edit moved it into the past.
    Edited,
}

/// What becomes of a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A run is opened, on time.
    Open {
        /// From due to now; at most the grace.
        lateness: Duration,
    },
    /// A run is opened, past the grace.
    CatchUp {
        /// From due to now.
        lateness: Duration,
    },
    /// Taken together with another tick of the job, which has an outcome of its own.
    Coalesced {
        /// That tick's nominal time.
        into: DateTime<Utc>,
    },
    /// Not run.
    Skipped(SkipReason),
    /// Not run: older than the catch-up window.
    Missed {
        /// From due to now.
        lateness: Duration,
    },
}

impl Outcome {
    /// All labels of [`Self::label`].
    pub const LABELS: [&'static str; 5] = ["run", "caught_up", "coalesced", "skipped", "missed"];

    /// The label in metrics.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Open { .. } => "run",
            Self::CatchUp { .. } => "caught_up",
            Self::Coalesced { .. } => "coalesced",
            Self::Skipped(_) => "skipped",
            Self::Missed { .. } => "missed",
        }
    }

    /// The state in which its run is written.
    #[must_use]
    pub const fn run_state(&self) -> RunState {
        match self {
            Self::Open { .. } | Self::CatchUp { .. } => RunState::Planning,
            Self::Coalesced { .. } => RunState::Coalesced,
            Self::Skipped(_) => RunState::Skipped,
            Self::Missed { .. } => RunState::Missed,
        }
    }

    /// Whether a run is opened.
    #[must_use]
    pub const fn opens(&self) -> bool {
        self.run_state().is_open()
    }

    /// Why no run is opened, for a person; `None` where one is.
    #[must_use]
    pub fn why(&self) -> Option<String> {
        match self {
            Self::Open { .. } | Self::CatchUp { .. } => None,
            Self::Coalesced { into } => Some(format!("coalesced into {}", into.format("%Y-%m-%dT%H:%M:%SZ"))),
            Self::Skipped(SkipReason::Paused(reason)) => Some(format!("paused: {reason}")),
            Self::Skipped(SkipReason::DayOff(calendar)) => Some(format!("a day off in {calendar}")),
            Self::Skipped(SkipReason::Misfire) => Some("misfire: skip".to_owned()),
            Self::Skipped(SkipReason::Overlap) => Some("overlap: an earlier run is open".to_owned()),
            Self::Skipped(SkipReason::Edited) => Some("an edit moved it into the past".to_owned()),
            Self::Missed { lateness } => Some(format!("older than the catch-up window: {} s late", lateness.as_secs())),
        }
    }
}

/// A tick with its outcome, and what its run is written with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TickDecision {
    /// The tick.
    pub tick: Tick,
    /// Entries available before it belong to the run.
    pub cutoff_at: DateTime<Utc>,
    /// The day on which its money counts.
    pub value_date: NaiveDate,
    /// What becomes of it.
    pub outcome: Outcome,
}

/// The decisions of one scan, or of a page of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// In the order of due and then nominal time.
    pub decisions: Vec<TickDecision>,
    /// The new mark; never before the old one.
    pub evaluated_until: DateTime<Utc>,
    /// Whether the scan goes on after this page.
    pub more: bool,
    /// To be passed on to the next page.
    pub misfired: bool,
}

impl Scan {
    /// Whether a run is opened.
    #[must_use]
    pub fn opens(&self) -> bool {
        self.decisions.iter().any(|decision| decision.outcome.opens())
    }

    /// Nominal times of the ticks that others are coalesced into. Where one of them turns out to have an outcome already, it
    /// opens no run, and the work of those others would never be done.
    #[must_use]
    pub fn leans_on(&self) -> BTreeSet<DateTime<Utc>> {
        let into = |decision: &TickDecision| match decision.outcome {
            Outcome::Coalesced { into } => Some(into),
            Outcome::Open { .. } | Outcome::CatchUp { .. } | Outcome::Skipped(_) | Outcome::Missed { .. } => None,
        };
        self.decisions.iter().filter_map(into).collect()
    }
}

fn decided(schedule: &Schedule, tick: Tick, outcome: Outcome) -> TickDecision {
    let cutoff_at = schedule.cutoff_at(tick.due_at);
    TickDecision { tick, cutoff_at, value_date: schedule.value_date(tick.due_at), outcome }
}

fn lateness(tick: &Tick, now: DateTime<Utc>) -> Duration {
    (now - tick.due_at).to_std().unwrap_or(Duration::ZERO)
}

/// Decides a page of the ticks due in (`evaluated_until`, `now`]. Where [`Scan::leans_on`] names ticks, whoever calls looks up
/// which of them have an outcome already, and decides again with those in [`ScanState::recorded`]. With a `now` at or before `evaluated_until` (a clock that
/// was stepped back) there is nothing to decide, and the mark stays.
#[must_use]
pub fn decide(schedule: &Schedule, state: &ScanState) -> Scan {
    if state.now <= state.evaluated_until {
        let evaluated_until = state.evaluated_until;
        return Scan { decisions: Vec::new(), evaluated_until, more: false, misfired: state.misfired };
    }
    let page = schedule.ticks_between(state.evaluated_until, state.now);
    let grace = crate::mutant!("misfire.grace-ignored", instead of schedule.timing().misfire_grace => Duration::ZERO);
    let late = |tick: &Tick| lateness(tick, state.now) > grace && !state.is_unwanted(tick);
    let misfired = state.misfired || page.ticks.iter().any(late);
    // Of those due with it the one that they are coalesced into.
    let newest = state
        .newest_wanted(schedule, &page)
        .and_then(|last| schedule.due_at(last.due_at).into_iter().find(|tick| !state.has_outcome(tick)));
    let mut decider =
        Decider { schedule, state, misfired, newest, run_open: state.run_open, first_of_due: BTreeMap::new() };
    let undecided = page.ticks.into_iter().filter(|tick| !state.has_outcome(tick));
    let decisions = undecided.map(|tick| decided(schedule, tick, decider.outcome(&tick))).collect();
    Scan { decisions, evaluated_until: page.complete_until, more: page.more, misfired }
}

struct Decider<'a> {
    schedule: &'a Schedule,
    state: &'a ScanState,
    misfired: bool,
    newest: Option<Tick>,
    run_open: bool,
    /// Nominal time of the first tick by due time.
    first_of_due: BTreeMap<DateTime<Utc>, DateTime<Utc>>,
}

impl Decider<'_> {
    fn outcome(&mut self, tick: &Tick) -> Outcome {
        if let Some(reason) = self.state.pause_of(tick.due_at) {
            return Outcome::Skipped(SkipReason::Paused(reason.to_owned()));
        }
        if tick.day_off == Some(DayOff::Skipped) {
            let calendar = self.schedule.calendar().map(|calendar| calendar.name().to_owned());
            return Outcome::Skipped(SkipReason::DayOff(calendar.unwrap_or_default()));
        }
        let first = *self.first_of_due.entry(tick.due_at).or_insert(tick.nominal);
        if first != tick.nominal {
            return Outcome::Coalesced { into: first };
        }
        let timing = self.schedule.timing();
        let lateness = lateness(tick, self.state.now);
        if lateness > timing.catch_up_window {
            return Outcome::Missed { lateness };
        }
        if self.misfired {
            match timing.misfire {
                Misfire::RunAll => {}
                Misfire::Skip => return Outcome::Skipped(SkipReason::Misfire),
                Misfire::RunLatest => {
                    if let Some(newest) = self.newest.filter(|newest| newest.due_at != tick.due_at) {
                        return Outcome::Coalesced { into: newest.nominal };
                    }
                }
            }
        }
        match timing.overlap {
            Overlap::Skip if self.run_open => return Outcome::Skipped(SkipReason::Overlap),
            Overlap::Skip | Overlap::Queue => self.run_open = true,
        }
        if lateness > timing.misfire_grace { Outcome::CatchUp { lateness } } else { Outcome::Open { lateness } }
    }
}

/// What a changed definition owes before it counts: the old one is evaluated up to now, in pages; with the last page
/// (`more` is false) come the ticks of the new definition that the edit moved into the past, recorded as skipped, and
/// from its `evaluated_until` on the new definition counts. So an edit fires no tick that lies in the past.
///
/// Moved into the past is a tick that the new definition has due after the last tick of the old one and not after now:
/// the old one would still have run in the future what the new one would have run already. At most [`EDIT_TICKS`] are
/// recorded, the newest, none older than the new catch-up window. A tick among them that has a run already (an earlier
/// definition's) keeps it: the store inserts nothing where job and tick exist. So does one due with the last tick of the
/// old definition, which therefore counts among those moved.
#[must_use]
pub fn settle_edit(old: &Schedule, new: &Schedule, state: &ScanState) -> Scan {
    let mut scan = decide(old, state);
    if scan.more {
        return scan;
    }
    let until = scan.evaluated_until;
    let reach = TimeDelta::from_std(new.timing().catch_up_window).unwrap_or(TimeDelta::MAX);
    let oldest = until.checked_sub_signed(reach).unwrap_or(DateTime::<Utc>::MIN_UTC);
    let last = old.latest_between(oldest, until).map(|last| last.due_at);
    let since = last.map_or(oldest, |due_at| due_at - TimeDelta::seconds(1));
    let old_ones = last.map_or_else(Vec::new, |due_at| old.due_at(due_at));
    let mut moved = new.last_ticks(since, until, EDIT_TICKS);
    moved.retain(|tick| old_ones.iter().all(|old| old.nominal != tick.nominal));
    let skipped = moved.into_iter().map(|tick| decided(new, tick, Outcome::Skipped(SkipReason::Edited)));
    scan.decisions.extend(skipped);
    scan
}

#[cfg(test)]
#[path = "misfire_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod outcome_tests;
