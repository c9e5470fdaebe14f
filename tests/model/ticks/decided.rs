//! What becomes of ticks, by the product's own decisions: the job is due once a minute, and a minute is one step of this time.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use bursar::domain::job::{CatchUpOrder, CutoffRule, FoldRule, GapRule, Misfire, Overlap, Timing};
use bursar::schedule::{Outcome, Scan, ScanState, Schedule, decide, settle_edit};
use chrono::{DateTime, TimeDelta, Utc};

/// The last time that there is in any world.
const LATEST: u8 = 6;

/// A tick is on time for so long.
pub const GRACE: u8 = 1;

/// The policies of the worlds.
const POLICIES: [Misfire; 3] = [Misfire::RunAll, Misfire::RunLatest, Misfire::Skip];

/// What a tick's row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fate {
    /// A run was opened.
    Opened,
    /// Taken together with a later one.
    Coalesced,
    /// Recorded as skipped, or as missed.
    Skipped,
}

/// A tick, from the first on, with its outcome.
pub type Decided = (u8, Fate);

/// When that time is.
pub fn at(time: u8) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).expect("in range") + TimeDelta::minutes(i64::from(time))
}

/// The timing with that policy.
pub fn timing(misfire: Misfire) -> Timing {
    Timing {
        cron: "* * * * *".to_owned(),
        timezone: chrono_tz::UTC,
        gap: GapRule::Skip,
        fold: FoldRule::Both,
        misfire,
        misfire_grace: Duration::from_mins(u64::from(GRACE)),
        catch_up_window: Duration::from_hours(48),
        catch_up_max: 1,
        catch_up_order: CatchUpOrder::Oldest,
        overlap: Overlap::Queue,
        cutoff: CutoffRule::Before(Duration::ZERO),
        business_days: None,
        run_deadline: None,
    }
}

/// The scan of a leader that read these two times, under one policy; or with the edit to another.
pub fn scan(policy: Misfire, edit: Option<Misfire>, from: u8, to: u8) -> Scan {
    let schedule = |misfire| Schedule::new(&timing(misfire)).expect("a valid timing");
    let state = ScanState {
        evaluated_until: at(from),
        now: at(to),
        paused: None,
        pauses: Vec::new(),
        run_open: false,
        misfired: false,
        recorded: std::collections::BTreeSet::new(),
    };
    match edit {
        None => decide(&schedule(policy), &state),
        Some(new) => settle_edit(&schedule(policy), &schedule(new), &state),
    }
}

fn decided(policy: Misfire, edit: Option<Misfire>, from: u8, to: u8) -> Vec<Decided> {
    let scan = scan(policy, edit, from, to);
    assert!(!scan.more && scan.evaluated_until == at(from.max(to)), "one page up to the time that was read");
    let of_tick = |decision: &bursar::schedule::TickDecision| {
        let tick = (decision.tick.due_at - at(0)).num_minutes() - 1;
        let fate = match decision.outcome {
            Outcome::Open { .. } | Outcome::CatchUp { .. } => Fate::Opened,
            Outcome::Coalesced { .. } => Fate::Coalesced,
            Outcome::Skipped(_) | Outcome::Missed { .. } => Fate::Skipped,
        };
        (u8::try_from(tick).expect("within the world"), fate)
    };
    scan.decisions.iter().map(of_tick).collect()
}

/// The same, worked out once.
pub fn decisions(policy: Misfire, edit: Option<Misfire>, from: u8, to: u8) -> &'static [Decided] {
    type Table = HashMap<(Misfire, Option<Misfire>, u8, u8), Vec<Decided>>;
    static TABLE: OnceLock<Table> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let edits = || std::iter::once(None).chain(POLICIES.map(Some));
        let mut table = Table::new();
        for (policy, edit) in POLICIES.into_iter().flat_map(|policy| edits().map(move |edit| (policy, edit))) {
            for (from, to) in (0..=LATEST).flat_map(|from| (0..=LATEST).map(move |to| (from, to))) {
                table.insert((policy, edit, from, to), decided(policy, edit, from, to));
            }
        }
        table
    });
    table.get(&(policy, edit, from, to)).map_or(&[], Vec::as_slice)
}
