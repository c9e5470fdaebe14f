//! The simulator is seen to fail: each deliberate break of what stands around the replicas is found within the first seeds of a
//! plain run.

use crate::breaks::Break;
use crate::{SEEDS, simulate};

/// The first seed that notices in these words, and what it says.
fn noticed(broken: Break, by: &str, within: u64) -> (u64, Vec<String>) {
    let says = |found: &[String]| found.iter().any(|violation| violation.contains(by));
    let found = (0..within).map(|seed| (seed, simulate(seed, broken).violations)).find(|(_, found)| says(found));
    found.unwrap_or_else(|| panic!("{within} seeds did not notice {broken:?} by {by:?}"))
}

fn assert_noticed(broken: Break, by: &str) {
    assert_noticed_within(broken, by, SEEDS / 10);
}

#[expect(clippy::print_stdout, reason = "which seed notices what is what a person wants to know")]
fn assert_noticed_within(broken: Break, by: &str, seeds: u64) {
    let (seed, found) = noticed(broken, by, seeds);
    println!("{broken:?}: seed {seed}: {found:?}");
}

#[test]
fn a_fence_that_lets_everybody_in_is_noticed() {
    assert_noticed(Break::Unfenced, "older_term_writes_nothing");
}

#[test]
fn a_key_made_anew_is_noticed() {
    assert_noticed(Break::KeyMadeAnew, "key_and_bytes_stay");
}

#[test]
fn an_unknown_commit_taken_for_a_failure_is_noticed() {
    // Seldom: the answer has to be lost of the one take that nothing else makes good.
    assert_noticed_within(Break::UnknownTakenForFailure, "liveness", SEEDS / 2);
}

#[test]
fn records_that_were_never_written_are_noticed() {
    assert_noticed(Break::RecordsLost, "");
}

#[test]
fn a_store_that_forgets_its_fence_is_noticed() {
    assert_noticed(Break::FenceForgotten, "liveness");
}

#[test]
fn a_halt_that_is_not_in_force_is_noticed() {
    assert_noticed(Break::HaltIgnored, "halted_does_nothing");
}

#[test]
fn batches_that_were_never_settled_are_noticed() {
    assert_noticed(Break::BatchesLost, "liveness");
}
