//! The simulator is seen to fail: each deliberate break of what stands around the replicas is found within the first seeds of a
//! plain run, by the invariant that it breaks; and each invariant is seen to fail by one of them, or by a mutant.

use std::time::Duration;

use crate::breaks::Break;
use crate::invariants::INVARIANTS;
use crate::liveness::CHECKS;
use crate::mutants;
use crate::receiver::Habits;
use crate::scenario::{Act, Scenario};
use crate::{SEEDS, simulate_scenario};

/// A break, and words of what notices it.
const NOTICED: &[(Break, &str)] = &[
    (Break::Unfenced, "older_term_writes_nothing"),
    (Break::KeyMadeAnew, "key_and_bytes_stay"),
    (Break::UnknownTakenForFailure, "liveness"),
    (Break::RecordsLost, "payouts_end"),
    (Break::FenceForgotten, "at_work_in_time"),
    (Break::HaltIgnored, "halted_does_nothing"),
    (Break::BatchesLost, "runs_end"),
    (Break::FenceGoesDown, "terms_only_rise"),
    (Break::TermForTwo, "one_leader_per_term"),
    (Break::LeasesLapseEarly, "one_leader_at_a_time"),
    (Break::LeasesLapseEarly, "begins_under_its_own_key"),
    (Break::LeasesForgotten, "no_session_is_lost_for_nothing"),
    (Break::AsksAfterItsEnd, "nothing_after_demotion"),
    (Break::MarkMovedFirst, "every_tick_has_one_outcome"),
    (Break::JobChangesLost, "jobs_are_brought_up"),
    (Break::FenceForgotten, "ticks_are_evaluated"),
    (Break::MerchantSkipped, "entries_are_bound"),
    (Break::ImportedTwice, "ledger_balances"),
    (Break::FinalTakenBack, "final_stays_final"),
    (Break::RunsDoubled, "one_run_per_tick"),
    (Break::RunsEndEarly, "ended_runs_have_no_pending_units"),
    (Break::BytesChanged, "written_before_it_is_sent"),
    (Break::PaidUnbooked, "book_agrees_with_store"),
    (Break::OldTokensBooked, "tokens_never_go_down"),
    (Break::RefusesForNothing, "mild_receivers_are_paid_at"),
];

/// A seed's scenario; for what a seed shows seldom, with more of what shows it.
fn scenario(seed: u64, broken: Break) -> Scenario {
    let mut scenario = Scenario::of(seed);
    if broken == Break::OldTokensBooked {
        // Requests are on the way while one leader follows another.
        for habits in scenario.receivers.values_mut() {
            *habits = Habits { checks_tokens: true, slow: 3_000, ..Habits::default() };
        }
        scenario.acts.retain(|(_, act)| matches!(act, Act::Import { .. }));
        let election = &scenario.elections[0];
        let deleted = (2..28).map(|at| (Duration::from_secs(at), Act::DeleteLeader { election: election.clone() }));
        scenario.acts.extend(deleted.collect::<Vec<_>>());
        scenario.acts.sort_by_key(|(at, _)| *at);
    }
    scenario
}

/// The first seed that notices in these words, and what it says.
fn noticed(broken: Break, by: &str, within: u64) -> Result<(u64, Vec<String>), String> {
    let says = |found: &[String]| found.iter().any(|violation| violation.contains(by));
    let run = |seed| (seed, simulate_scenario(scenario(seed, broken), broken).violations);
    let found = (0..within).map(run).find(|(_, found)| says(found));
    found.ok_or_else(|| format!("{within} seeds did not notice {broken:?} by {by:?}"))
}

fn assert_noticed(broken: Break) {
    assert_noticed_within(broken, SEEDS / 10);
}

#[expect(clippy::print_stdout, reason = "which seed notices what is what a person wants to know")]
fn assert_noticed_within(broken: Break, seeds: u64) {
    let rows = NOTICED.iter().filter(|(of, _)| *of == broken);
    let unnoticed: Vec<String> = rows
        .filter_map(|(_, by)| match noticed(broken, by, seeds) {
            Ok((seed, found)) => {
                println!("{broken:?}: seed {seed}: {found:?}");
                None
            }
            Err(why) => Some(why),
        })
        .collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?}");
}

#[test]
fn a_fence_that_lets_everybody_in_is_noticed() {
    assert_noticed(Break::Unfenced);
}

#[test]
fn a_key_made_anew_is_noticed() {
    assert_noticed(Break::KeyMadeAnew);
}

#[test]
fn an_unknown_commit_taken_for_a_failure_is_noticed() {
    // Seldom: the answer has to be lost of the one take that nothing else makes good.
    assert_noticed_within(Break::UnknownTakenForFailure, SEEDS / 2);
}

#[test]
fn a_halt_that_is_not_in_force_is_noticed() {
    assert_noticed(Break::HaltIgnored);
}

#[test]
fn a_coordinator_that_breaks_its_word_is_noticed() {
    assert_noticed(Break::LeasesLapseEarly);
    assert_noticed(Break::LeasesForgotten);
}

#[test]
fn a_store_whose_fence_is_not_one_is_noticed() {
    assert_noticed(Break::FenceForgotten);
    assert_noticed(Break::FenceGoesDown);
    assert_noticed(Break::TermForTwo);
}

#[test]
fn a_session_that_asks_on_after_its_tenure_is_noticed() {
    assert_noticed(Break::AsksAfterItsEnd);
}

#[test]
fn what_was_never_written_is_noticed() {
    assert_noticed(Break::RecordsLost);
    assert_noticed(Break::BatchesLost);
    assert_noticed(Break::JobChangesLost);
}

#[test]
fn a_tick_and_a_merchant_that_are_left_out_are_noticed() {
    assert_noticed(Break::MarkMovedFirst);
    assert_noticed(Break::MerchantSkipped);
}

#[test]
fn rows_that_contradict_each_other_are_noticed() {
    assert_noticed(Break::ImportedTwice);
    assert_noticed(Break::FinalTakenBack);
    assert_noticed(Break::RunsDoubled);
    assert_noticed(Break::RunsEndEarly);
}

#[test]
fn receivers_that_break_their_word_are_noticed() {
    assert_noticed(Break::BytesChanged);
    assert_noticed(Break::PaidUnbooked);
    assert_noticed(Break::OldTokensBooked);
    assert_noticed(Break::RefusesForNothing);
}

#[test]
fn each_invariant_is_seen_to_fail() {
    let words: Vec<&str> = NOTICED.iter().map(|(_, by)| *by).chain(mutants::words()).collect();
    let names = INVARIANTS.iter().map(|(name, _)| *name).chain(CHECKS.iter().map(|(name, _)| *name));
    let never: Vec<&str> = names.filter(|name| !words.contains(name)).collect();
    assert!(never.is_empty(), "no break and no mutant is noticed by these: {never:?}");
}
