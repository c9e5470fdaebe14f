use super::super::plan::PAGE_TICKS;
use super::super::test_timing::{at, schedule, timing};
use super::*;
use crate::domain::calendar::{BusinessDays, Roll};
use crate::domain::job::{CutoffRule, Timing};

fn state(evaluated_until: &str, now: &str) -> ScanState {
    ScanState {
        evaluated_until: at(evaluated_until),
        now: at(now),
        paused: None,
        pauses: Vec::new(),
        run_open: false,
        misfired: false,
        recorded: BTreeSet::new(),
    }
}

fn minutely(change: impl FnOnce(&mut Timing)) -> Schedule {
    let mut timing = timing("* * * * *", "UTC");
    timing.misfire_grace = Duration::from_secs(10);
    change(&mut timing);
    Schedule::new(&timing).expect("valid")
}

fn labels(scan: &Scan) -> Vec<&'static str> {
    scan.decisions.iter().map(|decision| decision.outcome.label()).collect()
}

/// Down for five ticks, back 30 s after the fifth.
fn outage() -> ScanState {
    state("2027-01-01T00:00:10Z", "2027-01-01T00:05:30Z")
}

#[test]
fn a_tick_on_time_is_opened_with_its_lateness() {
    let job = minutely(|_| {});
    let scan = decide(&job, &state("2027-01-01T00:00:10Z", "2027-01-01T00:01:02Z"));
    assert_eq!(scan.decisions.len(), 1);
    let decision = &scan.decisions[0];
    assert_eq!(decision.outcome, Outcome::Open { lateness: Duration::from_secs(2) });
    assert_eq!(decision.tick.nominal, at("2027-01-01T00:01:00Z"));
    assert_eq!(decision.cutoff_at, at("2027-01-01T00:01:00Z"));
    assert_eq!(decision.value_date.to_string(), "2027-01-01");
    assert_eq!(scan.evaluated_until, at("2027-01-01T00:01:02Z"));
    assert!(!scan.more && !scan.misfired && scan.opens());
}

#[test]
fn the_grace_is_on_time_up_to_its_edge() {
    let job = minutely(|_| {});
    let scan = decide(&job, &state("2027-01-01T00:00:10Z", "2027-01-01T00:01:10Z"));
    assert_eq!(labels(&scan), ["run"]);
    let scan = decide(&job, &state("2027-01-01T00:00:10Z", "2027-01-01T00:01:10.001Z"));
    assert_eq!(labels(&scan), ["caught_up"]);
}

#[test]
fn run_latest_runs_the_newest_and_coalesces_the_others_into_it() {
    let scan = decide(&minutely(|_| {}), &outage());
    assert_eq!(labels(&scan), ["coalesced", "coalesced", "coalesced", "coalesced", "caught_up"]);
    assert_eq!(scan.decisions[0].outcome, Outcome::Coalesced { into: at("2027-01-01T00:05:00Z") });
    assert_eq!(scan.decisions[4].outcome, Outcome::CatchUp { lateness: Duration::from_secs(30) });
    assert_eq!(scan.decisions[0].outcome.why().as_deref(), Some("coalesced into 2027-01-01T00:05:00Z"));
}

#[test]
fn run_all_runs_each_in_order_with_its_own_cutoff() {
    let job = minutely(|timing| {
        timing.misfire = Misfire::RunAll;
        timing.cutoff = CutoffRule::Before(Duration::from_secs(5));
    });
    let scan = decide(&job, &outage());
    assert_eq!(labels(&scan), ["caught_up"; 5]);
    let cutoffs: Vec<_> =
        scan.decisions.iter().map(|decision| decision.cutoff_at.format("%M:%S").to_string()).collect();
    assert_eq!(cutoffs, ["00:55", "01:55", "02:55", "03:55", "04:55"]);
}

#[test]
fn skip_runs_none_and_records_each() {
    let job = minutely(|timing| timing.misfire = Misfire::Skip);
    let scan = decide(&job, &outage());
    assert_eq!(labels(&scan), ["skipped"; 5]);
    assert!(!scan.opens());
    assert_eq!(scan.decisions[0].outcome.why().as_deref(), Some("misfire: skip"));
}

#[test]
fn one_tick_past_the_grace_takes_those_on_time_with_it() {
    let late = state("2027-01-01T00:00:10Z", "2027-01-01T00:02:05Z");
    assert_eq!(labels(&decide(&minutely(|_| {}), &late)), ["coalesced", "run"]);
    assert_eq!(labels(&decide(&minutely(|timing| timing.misfire = Misfire::RunAll), &late)), ["caught_up", "run"]);
    assert_eq!(labels(&decide(&minutely(|timing| timing.misfire = Misfire::Skip), &late)), ["skipped", "skipped"]);
}

#[test]
fn what_is_older_than_the_window_is_missed() {
    let job = minutely(|timing| {
        timing.misfire = Misfire::RunAll;
        timing.catch_up_window = Duration::from_secs(150);
    });
    let scan = decide(&job, &outage());
    assert_eq!(labels(&scan), ["missed", "missed", "caught_up", "caught_up", "caught_up"]);
    assert!(scan.decisions[0].outcome.why().is_some_and(|why| why.contains("270 s late")));
    let job = minutely(|timing| timing.catch_up_window = Duration::ZERO);
    assert_eq!(labels(&decide(&job, &outage())), ["missed"; 5]);
}

#[test]
fn a_pause_that_has_ended_takes_the_ticks_that_fell_into_it_and_no_other() {
    let pause = |from: &str, until: &str| PastPause { from: at(from), until: at(until), reason: "audit".to_owned() };
    let mut state = outage();
    state.pauses = vec![
        pause("2027-01-01T00:01:30Z", "2027-01-01T00:03:00Z"),
        pause("2027-01-01T00:04:30Z", "2027-01-01T00:05:10Z"),
    ];
    let scan = decide(&minutely(|_| {}), &state);
    assert_eq!(labels(&scan), ["coalesced", "skipped", "coalesced", "caught_up", "skipped"]);
    assert_eq!(scan.decisions[1].outcome.why().as_deref(), Some("paused: audit"));
    assert_eq!(scan.decisions[0].outcome, Outcome::Coalesced { into: at("2027-01-01T00:04:00Z") });
    // What was not wanted then is no reason for the policy to strike now.
    state.now = at("2027-01-01T00:05:05Z");
    state.pauses = vec![pause("2027-01-01T00:00:00Z", "2027-01-01T00:04:30Z")];
    let scan = decide(&minutely(|timing| timing.misfire = Misfire::Skip), &state);
    assert_eq!(labels(&scan), ["skipped", "skipped", "skipped", "skipped", "run"]);
}

#[test]
fn the_newest_wanted_tick_is_found_beyond_a_page_and_around_pauses() {
    let mut state = state("2027-01-01T00:00:10Z", "2027-01-02T12:00:10Z");
    state.pauses = vec![PastPause {
        from: at("2027-01-01T20:00:00Z"),
        until: at("2027-01-02T12:00:05Z"),
        reason: "audit".to_owned(),
    }];
    let job = minutely(|_| {});
    let mut opened = Vec::new();
    loop {
        let scan = decide(&job, &state);
        opened.extend(
            scan.decisions.iter().filter(|decision| decision.outcome.opens()).map(|decision| decision.tick.nominal),
        );
        (state.evaluated_until, state.misfired) = (scan.evaluated_until, scan.misfired);
        if !scan.more {
            break;
        }
    }
    assert_eq!(opened, [at("2027-01-01T19:59:00Z")], "the newest that was wanted, in another page than the newest");
}

#[test]
fn overlap_skips_while_an_earlier_run_is_open() {
    let job = minutely(|timing| timing.overlap = Overlap::Skip);
    let mut now = state("2027-01-01T00:00:10Z", "2027-01-01T00:01:02Z");
    assert_eq!(labels(&decide(&job, &now)), ["run"]);
    now.run_open = true;
    let scan = decide(&job, &now);
    assert_eq!(scan.decisions[0].outcome, Outcome::Skipped(SkipReason::Overlap));
    // A run that the scan opens counts too, in this page as in the next.
    let job = minutely(|timing| {
        timing.overlap = Overlap::Skip;
        timing.misfire = Misfire::RunAll;
    });
    assert_eq!(labels(&decide(&job, &outage())), ["caught_up", "skipped", "skipped", "skipped", "skipped"]);
    assert_eq!(labels(&decide(&minutely(|_| {}), &now)), ["run"], "overlap = queue opens it all the same");
}

#[test]
fn a_paused_job_is_evaluated_and_its_ticks_are_skipped() {
    let job = minutely(|timing| timing.catch_up_window = Duration::from_secs(150));
    let mut paused = outage();
    paused.paused = Some("bank holiday".to_owned());
    let scan = decide(&job, &paused);
    assert_eq!(labels(&scan), ["skipped"; 5]);
    assert_eq!(scan.decisions[0].outcome.why().as_deref(), Some("paused: bank holiday"));
    assert_eq!(scan.evaluated_until, paused.now);
}

#[test]
fn a_clock_stepped_back_decides_nothing_and_keeps_the_mark() {
    let job = minutely(|_| {});
    let scan = decide(&job, &state("2027-01-01T00:05:30Z", "2027-01-01T00:04:30Z"));
    assert!(scan.decisions.is_empty() && !scan.more);
    assert_eq!(scan.evaluated_until, at("2027-01-01T00:05:30Z"));
    assert!(decide(&job, &state("2027-01-01T00:05:00Z", "2027-01-01T00:05:00Z")).decisions.is_empty());
}

#[test]
fn ticks_rolled_onto_one_due_time_are_one_run() {
    // Saturday and Sunday are due on Monday, with Monday's own.
    let job = schedule("0 9 * * *", "UTC").rolled();
    let scan = decide(&job, &state("2027-01-01T12:00:00Z", "2027-01-04T09:00:01Z"));
    assert_eq!(labels(&scan), ["run", "coalesced", "coalesced"]);
    assert_eq!(scan.decisions[2].outcome, Outcome::Coalesced { into: at("2027-01-02T09:00:00Z") });
    // Late, and with a newer due time: everything goes into the first of the newest.
    let mut timing = timing("0 9 * * *", "UTC");
    timing.catch_up_window = Duration::from_hours(96);
    let job = Schedule::new(&timing).expect("valid").rolled();
    let scan = decide(&job, &state("2027-01-07T12:00:00Z", "2027-01-11T10:00:00Z"));
    assert_eq!(labels(&scan), ["coalesced", "caught_up", "coalesced", "coalesced"]);
    for decision in [&scan.decisions[0], &scan.decisions[2], &scan.decisions[3]] {
        assert_eq!(decision.outcome, Outcome::Coalesced { into: at("2027-01-09T09:00:00Z") });
    }
}

#[test]
fn a_long_absence_is_decided_in_pages_as_one_scan() {
    for (misfire, opened) in [(Misfire::RunLatest, 1), (Misfire::RunAll, 2880), (Misfire::Skip, 0)] {
        let job = minutely(|timing| timing.misfire = misfire);
        let mut state = state("2027-01-01T00:00:30Z", "2027-01-05T00:00:00Z");
        let (mut count, mut runs, mut missed) = (0, 0, 0);
        loop {
            let scan = decide(&job, &state);
            assert!(scan.decisions.len() <= PAGE_TICKS && scan.misfired);
            count += scan.decisions.len();
            runs += scan.decisions.iter().filter(|decision| decision.outcome.opens()).count();
            missed += labels(&scan).iter().filter(|label| **label == "missed").count();
            for decision in &scan.decisions {
                if let Outcome::Coalesced { into } = decision.outcome {
                    assert_eq!(into, at("2027-01-05T00:00:00Z"));
                }
            }
            (state.evaluated_until, state.misfired) = (scan.evaluated_until, scan.misfired);
            if !scan.more {
                break;
            }
        }
        assert_eq!((count, missed), (4 * 1440, 2 * 1440 - 1));
        assert_eq!(state.evaluated_until, state.now);
        assert!(runs == opened || misfire == Misfire::RunAll && runs == opened + 1, "{misfire:?}: {runs}");
    }
}

#[test]
fn a_last_page_that_is_on_time_belongs_to_the_late_scan() {
    let mut timing = timing("* * * * * *", "UTC");
    timing.misfire_grace = Duration::from_mins(1);
    let job = Schedule::new(&timing).expect("valid");
    let mut state = state("2027-01-01T00:00:00Z", "2027-01-01T00:17:10Z");
    let first = decide(&job, &state);
    assert!(first.more && first.misfired && !first.opens());
    (state.evaluated_until, state.misfired) = (first.evaluated_until, first.misfired);
    let last = decide(&job, &state);
    assert!(last.decisions.iter().all(|decision| decision.tick.due_at >= at("2027-01-01T00:16:40Z")));
    assert_eq!(last.decisions.iter().filter(|decision| decision.outcome.opens()).count(), 1);
}

#[test]
fn an_edit_settles_the_old_definition_and_fires_nothing_in_the_past() {
    // At 12:00 the daily job moves from 13:00 to 11:00.
    let (old, new) = (schedule("0 13 * * *", "UTC"), schedule("0 11 * * *", "UTC"));
    let scan = settle_edit(&old, &new, &state("2027-01-05T11:59:00Z", "2027-01-05T12:00:00Z"));
    assert_eq!(scan.decisions.len(), 1);
    assert_eq!(scan.decisions[0].tick.nominal, at("2027-01-05T11:00:00Z"));
    assert_eq!(scan.decisions[0].outcome, Outcome::Skipped(SkipReason::Edited));
    let next = decide(&new, &state("2027-01-05T12:00:00Z", "2027-01-06T11:00:00Z"));
    assert_eq!(next.decisions[0].tick.nominal, at("2027-01-06T11:00:00Z"));

    // The other way round: today's run was at 11:00, and there is another at 13:00.
    let scan = settle_edit(&new, &old, &state("2027-01-05T11:59:00Z", "2027-01-05T12:00:00Z"));
    assert!(scan.decisions.is_empty());

    // What the old one owed is decided by its own rules.
    let scan = settle_edit(&old, &new, &state("2027-01-05T12:59:00Z", "2027-01-05T13:00:30Z"));
    assert_eq!(labels(&scan), ["run"]);
    assert_eq!(scan.evaluated_until, at("2027-01-05T13:00:30Z"));
}

#[test]
fn an_edit_of_anything_but_the_times_owes_nothing_more() {
    let old = schedule("*/5 * * * *", "Europe/Berlin");
    let mut changed = timing("0-59/5 * * * *", "Europe/London");
    changed.misfire = Misfire::RunAll;
    let new = Schedule::new(&changed).expect("valid");
    let scan = settle_edit(&old, &new, &state("2027-01-05T11:59:30Z", "2027-01-05T12:02:00Z"));
    assert_eq!(labels(&scan), ["caught_up"]);
}

#[test]
fn an_edit_records_a_bounded_number_of_ticks() {
    let (old, new) = (schedule("0 0 1 1 *", "UTC"), schedule("* * * * * *", "UTC"));
    let scan = settle_edit(&old, &new, &state("2027-06-05T11:59:00Z", "2027-06-05T12:00:00Z"));
    assert_eq!(scan.decisions.len(), EDIT_TICKS);
    assert_eq!(scan.decisions.last().map(|decision| decision.tick.nominal), Some(at("2027-06-05T12:00:00Z")));
}

#[test]
fn an_edit_after_a_long_absence_comes_in_pages() {
    let (old, new) = (minutely(|_| {}), schedule("30 * * * *", "UTC"));
    let mut state = state("2027-01-01T00:00:30Z", "2027-01-02T00:00:30Z");
    let first = settle_edit(&old, &new, &state);
    assert!(first.more && first.decisions.len() == PAGE_TICKS);
    (state.evaluated_until, state.misfired) = (first.evaluated_until, first.misfired);
    let second = settle_edit(&old, &new, &state);
    assert!(!second.more);
    assert_eq!(labels(&second).iter().filter(|label| **label == "caught_up").count(), 1);
    assert_eq!(second.decisions.len(), 440);
}

#[test]
fn a_day_off_that_is_skipped_is_recorded_and_no_reason_for_the_policy_to_strike() {
    use crate::domain::calendar::{BuiltIn, BusinessDays, Roll};
    let calendar = super::super::calendar::define(
        "target2",
        [BuiltIn::Target2].into(),
        &super::super::calendar::USUAL_WEEKEND,
        [].into(),
    );
    let mut timing = timing("0 9 * * *", "UTC");
    timing.misfire = Misfire::Skip;
    timing.business_days = Some(BusinessDays { calendar: calendar.expect("a calendar"), roll: Roll::Skip });
    let job = Schedule::new(&timing).expect("valid");
    // Easter, found on the Tuesday after it.
    let scan = decide(&job, &state("2027-03-25T12:00:00Z", "2027-03-30T09:00:30Z"));
    assert_eq!(labels(&scan), ["skipped", "skipped", "skipped", "skipped", "run"]);
    assert_eq!(scan.decisions[0].outcome.why().as_deref(), Some("a day off in target2"));
    timing.misfire = Misfire::RunLatest;
    let job = Schedule::new(&timing).expect("valid");
    let scan = decide(&job, &state("2027-03-24T12:00:00Z", "2027-03-26T10:00:00Z"));
    assert_eq!(labels(&scan), ["caught_up", "skipped"], "the newest that is wanted");
}

/// Saturday's tick ran on Saturday; on Sunday an edit made weekends roll. On Monday Saturday's, Sunday's and Monday's are due.
#[test]
fn no_tick_is_coalesced_into_one_that_has_its_outcome_already() {
    let job = schedule("0 17 * * *", "UTC").rolled();
    let mut state = state("2027-01-03T18:00:00Z", "2027-01-04T17:00:01Z");
    let saturday = at("2027-01-02T17:00:00Z");
    assert_eq!(labels(&decide(&job, &state)), ["run", "coalesced", "coalesced"]);
    assert_eq!(decide(&job, &state).leans_on(), [saturday].into());
    state.recorded = [saturday].into();
    let scan = decide(&job, &state);
    assert_eq!(labels(&scan), ["run", "coalesced"]);
    assert_eq!(scan.decisions[0].tick.nominal, at("2027-01-03T17:00:00Z"));
    assert_eq!(scan.leans_on(), [at("2027-01-03T17:00:00Z")].into());
    // Past the grace all go into the newest, unless that one is on record.
    state.now = at("2027-01-05T18:00:00Z");
    state.recorded = [at("2027-01-05T17:00:00Z"), saturday].into();
    let scan = decide(&job, &state);
    assert_eq!(labels(&scan), ["caught_up", "coalesced"]);
    assert_eq!(scan.decisions[1].outcome, Outcome::Coalesced { into: at("2027-01-03T17:00:00Z") });
}

/// Friday's tick was the last of the old definition; the new one has the weekend's due with it.
#[test]
fn ticks_that_an_edit_moves_onto_the_last_due_time_are_recorded_and_the_one_that_was_due_then_is_left() {
    let old = schedule("0 17 * * *", "UTC");
    let mut timing = timing("0 17 * * *", "UTC");
    let calendar = crate::schedule::calendar::tests::weekends();
    timing.business_days = Some(BusinessDays { calendar, roll: Roll::Preceding });
    let new = Schedule::new(&timing).expect("valid");
    let scan = settle_edit(&old, &new, &state("2027-01-01T17:30:00Z", "2027-01-01T18:00:00Z"));
    let moved: Vec<_> = scan.decisions.iter().map(|decision| decision.tick.nominal).collect();
    assert_eq!(moved, [at("2027-01-02T17:00:00Z"), at("2027-01-03T17:00:00Z")]);
    assert!(scan.decisions.iter().all(|decision| decision.outcome == Outcome::Skipped(SkipReason::Edited)));
}
