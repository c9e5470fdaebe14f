//! Mutants of the test build that the simulator notices: each is switched on in a process of its own, which runs the one seed
//! that is known to show it and has to fail with the words of the invariant that it breaks.
//!
//! A seed is the same wherever it runs, so one is enough; which one, `BURSAR_MUTANTS=NAME scripts/simulate` says.

#[path = "../it/mutants/also.rs"]
mod also;

use std::collections::BTreeSet;
use std::process::Command;

use crate::seeds_of_another_process;

/// The mutant, a seed that shows it, and words of what it breaks.
const SEEN: &[(&str, u64, &str)] = &[
    ("batch.charged-without-halving", 79, "charged_alone"),
    ("calls.unknown-made-again", 4, "unit_has_one_effect"),
    ("http.5xx-taken-for-undone", 8, "book_agrees_with_store"),
    ("http.redirect-taken-for-done", 28, "book_agrees_with_store"),
    ("misfire.grace-ignored", 1, "policy_strikes_past_the_grace_only"),
    ("resign.revokes-the-lease", 89, "no_session_is_lost_for_nothing"),
];

/// The words of all.
pub fn words() -> impl Iterator<Item = &'static str> {
    SEEN.iter().map(|(_, _, words)| *words)
}

/// What the seed said with the mutant on, where it did not fail as it should.
fn survives((name, seed, words): (&str, u64, &str)) -> Option<String> {
    let mut command: Command = seeds_of_another_process(seed, 1);
    let ended = command.env("BURSAR_MUTANTS", name).env("RUST_BACKTRACE", "0").output().expect("a child");
    let said = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    let fell = !ended.status.success() && said.contains(words);
    let last: Vec<&str> = said.lines().rev().take(20).collect();
    (!fell).then(|| format!("{name} survives seed {seed}: {words:?} is not in:\n{}", last.join("\n")))
}

#[test]
fn mutants_that_the_simulator_sees_fall() {
    let seen: BTreeSet<&str> = SEEN.iter().map(|(name, ..)| *name).collect();
    let said = also::noticed_by("mutants::mutants_that_the_simulator_sees_fall");
    assert_eq!(seen, said, "the table of mutants says the same");
    let survivors: Vec<String> = std::thread::scope(|scope| {
        let children: Vec<_> = SEEN.iter().map(|one| scope.spawn(|| survives(*one))).collect();
        children.into_iter().filter_map(|child| child.join().expect("no panic")).collect()
    });
    assert!(survivors.is_empty(), "{}", survivors.join("\n\n"));
}
