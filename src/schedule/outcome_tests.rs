//! For random schedules, zones, calendars, outages, pauses and edits: the ticks with an outcome are those of the definitions in
//! force, each once, in order; and what is coalesced goes into a tick that is not lost itself.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::calendar::tests::{calendars, rolls};
use super::super::plan::tests::{all_between, expressions, zones};
use super::super::test_timing::timing;
use super::*;
use crate::domain::calendar::{BusinessDays, CalendarDefinition, Roll};

type Calendar = Option<(CalendarDefinition, Roll)>;

fn policies() -> impl Strategy<Value = (Misfire, Overlap, u64, u64)> {
    (
        prop::sample::select(vec![Misfire::RunLatest, Misfire::RunAll, Misfire::Skip]),
        prop::sample::select(vec![Overlap::Queue, Overlap::Skip]),
        prop::sample::select(vec![0, 1, 60, 3600]),
        prop::sample::select(vec![0, 3600, 86_400, 200_000]),
    )
}

/// What an operator did to the job meanwhile.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pause {
    None,
    /// It is paused when it is looked at.
    Lasts,
    /// It was, from and to these thousandths of the time that passed.
    Ended(i32, i32),
}

/// What happens to a job between two looks at it.
#[derive(Debug, Clone)]
struct Turn {
    /// Seconds that pass; below zero the store's clock is stepped back.
    pass: i64,
    pause: Pause,
    run_open: bool,
    edit: Option<(String, Calendar)>,
    /// Whoever looks dies after its first page.
    dies: bool,
}

fn some_calendar() -> impl Strategy<Value = Calendar> {
    prop::option::weighted(0.5, (calendars(), rolls()))
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let pass = prop::sample::select(vec![-4000, -1, 1, 30, 61, 900, 3600, 7200, 20_000, 90_000, 250_000, 1_500_000]);
    let pause = prop_oneof![
        6 => Just(Pause::None),
        2 => Just(Pause::Lasts),
        2 => (0..1000, 0..1000).prop_map(|(a, b): (i32, i32)| Pause::Ended(a.min(b), a.max(b))),
    ];
    let edit = prop::option::weighted(0.2, (expressions(), some_calendar()));
    let turn = (pass, pause, any::<bool>(), edit, prop::bool::weighted(0.1))
        .prop_map(|(pass, pause, run_open, edit, dies)| Turn { pass, pause, run_open, edit, dies });
    prop::collection::vec(turn, 1..10)
}

/// Sees that under `run_latest` the newest wanted tick is not lost, and nothing is coalesced into one that is.
fn assert_none_is_lost(decisions: &[TickDecision]) -> Result<(), TestCaseError> {
    let by_nominal: BTreeMap<_, _> =
        decisions.iter().map(|decision| (decision.tick.nominal, &decision.outcome)).collect();
    for decision in decisions {
        if let Outcome::Coalesced { into } = decision.outcome {
            let into = by_nominal.get(&into).copied();
            let sound = matches!(
                into,
                Some(
                    Outcome::Open { .. }
                        | Outcome::CatchUp { .. }
                        | Outcome::Missed { .. }
                        | Outcome::Skipped(SkipReason::Overlap | SkipReason::Misfire)
                        // Ticks of one due time that goes into a newer one.
                        | Outcome::Coalesced { .. }
                )
            );
            prop_assert!(sound, "{:?} goes into {:?}", decision, into);
        }
    }
    Ok(())
}

/// Cases of a plain run, and of a long one.
fn cases() -> u32 {
    if std::env::var_os("BURSAR_TEST_LONG").is_some_and(|value| !value.is_empty()) { 30_000 } else { 300 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn every_tick_of_the_definition_in_force_gets_one_outcome_in_order(
        (zone, year) in zones(), first in expressions(), (misfire, overlap, grace, window) in policies(),
        start in 0i64..31_536_000, turns in turns(), calendar in some_calendar()
    ) {
        let make = |cron: &str, calendar: &Calendar| {
            let mut timing = timing(cron, zone);
            (timing.misfire, timing.overlap) = (misfire, overlap);
            timing.misfire_grace = Duration::from_secs(grace);
            timing.catch_up_window = Duration::from_secs(window);
            timing.business_days =
                calendar.as_ref().map(|(calendar, roll)| BusinessDays { calendar: calendar.clone(), roll: *roll });
            Schedule::new(&timing).expect("valid")
        };
        let mut job = make(&first, &calendar);
        let begin = NaiveDate::from_yo_opt(year, 1).expect("a year").and_time(chrono::NaiveTime::MIN).and_utc()
            + TimeDelta::seconds(start);
        let mut state = ScanState {
            evaluated_until: begin, now: begin, paused: None, pauses: Vec::new(), run_open: false, misfired: false,
            recorded: std::collections::BTreeSet::new(),
        };
        // What the definitions in force owe: due in (the mark before a look, the mark after it].
        let mut expected = Vec::new();
        let mut found: Vec<(DateTime<Utc>, DateTime<Utc>)> = Vec::new();
        for turn in turns {
            let passed = TimeDelta::seconds(turn.pass);
            if let (Pause::Ended(from, until), true) = (turn.pause, turn.pass > 0) {
                let at = |part: i32| state.now + passed * part / 1000;
                let pause = PastPause { from: at(from), until: at(until), reason: "audit".to_owned() };
                state.pauses = PastPause::kept(std::mem::take(&mut state.pauses), pause, state.evaluated_until);
            }
            state.now += passed;
            state.paused = (turn.pause == Pause::Lasts).then(|| "closed".to_owned());
            state.run_open = turn.run_open;
            let before = state.evaluated_until;
            let mut next = turn.edit.as_ref().map(|(cron, calendar)| make(cron, calendar));
            let mut decisions = Vec::new();
            loop {
                let scan = next.as_ref().map_or_else(|| decide(&job, &state), |next| settle_edit(&job, next, &state));
                prop_assert!(scan.evaluated_until >= state.evaluated_until);
                for decision in &scan.decisions {
                    let tick = decision.tick;
                    prop_assert!(tick.due_at <= state.now.max(before));
                    prop_assert!(decision.cutoff_at <= tick.due_at);
                    if decision.outcome == Outcome::Skipped(SkipReason::Edited) {
                        prop_assert!(next.is_some() && !scan.more && tick.due_at <= scan.evaluated_until);
                        continue;
                    }
                    prop_assert!(tick.due_at > state.evaluated_until && tick.due_at <= scan.evaluated_until);
                    let paused = state.paused.is_some() || state.pauses.iter().any(|pause| pause.holds(tick.due_at));
                    prop_assert_eq!(paused, matches!(decision.outcome, Outcome::Skipped(SkipReason::Paused(_))));
                    found.push((tick.due_at, tick.nominal));
                    decisions.push(decision.clone());
                }
                if overlap == Overlap::Skip && state.run_open {
                    prop_assert!(!scan.opens());
                }
                state.run_open |= scan.opens();
                (state.evaluated_until, state.misfired) = (scan.evaluated_until, scan.misfired);
                if scan.more && turn.dies {
                    // The edit is not in force; whoever comes next finds the old definition and the mark.
                    next = None;
                    decisions.clear();
                    break;
                }
                if !scan.more {
                    break;
                }
            }
            if misfire == Misfire::RunLatest && state.misfired {
                prop_assert!(decisions.iter().filter(|decision| decision.outcome.opens()).count() <= 1);
            }
            assert_none_is_lost(&decisions)?;
            state.misfired = false;
            let owed = all_between(&job, before, state.evaluated_until);
            expected.extend(owed.iter().map(|tick| (tick.due_at, tick.nominal)));
            if let Some(next) = next {
                job = next;
            }
        }
        prop_assert_eq!(&found, &expected);
        prop_assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
