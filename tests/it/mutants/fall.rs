//! Runs the test that catches a mutant with the mutant on, for one mutant after the other, several side by side.
//!
//! A mutant falls when that test fails, and fails with the words that the table expects. One whose test passes survives; one
//! whose test fails with other words was caught by accident, which may be over tomorrow. That each of these tests passes
//! without a mutant, the suite itself shows.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::table::{Mutant, Test};

/// Switches mutants on.
pub const SWITCH: &str = "BURSAR_MUTANTS";
/// A case that a mutant makes fail is no regression to be kept in a file.
pub const KEEP_NO_CASES: (&str, &str) = ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");

/// Lines of a test's output that a failure shows.
const TAIL: usize = 30;

/// What became of a test.
pub struct Ended {
    /// Whether it passed.
    pub passed: bool,
    /// All that it wrote.
    pub output: String,
}

/// Whether the test's end is the mutant's fall; else what is wrong.
fn judge(mutant: &Mutant, ended: &Ended) -> Result<(), String> {
    let (Test::Unit(test) | Test::It(test)) = mutant.caught_by else {
        return Err("another binary catches it".to_owned());
    };
    if ended.output.contains("running 0 tests") {
        return Err(format!("there is no test {test}"));
    }
    if ended.passed {
        return Err(format!("it survives: {test} passes with it"));
    }
    if ended.output.contains(mutant.says) {
        return Ok(());
    }
    let from = ended.output.lines().count().saturating_sub(TAIL);
    let tail: Vec<&str> = ended.output.lines().skip(from).collect();
    Err(format!("{test} fails without saying {:?}:\n{}", mutant.says, tail.join("\n")))
}

/// Runs them, `side_by_side` at a time.
///
/// # Panics
/// When one does not fall, after all were tried.
pub fn all_fall(mutants: &[&Mutant], side_by_side: usize, run: impl Fn(&Mutant, &str) -> Ended + Sync) {
    let (next, standing) = (AtomicUsize::new(0), Mutex::new(String::new()));
    let work = || {
        while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::SeqCst)) {
            let (Test::Unit(test) | Test::It(test)) = mutant.caught_by else { continue };
            if let Err(why) = judge(mutant, &run(mutant, test)) {
                let mut standing = standing.lock().unwrap_or_else(PoisonError::into_inner);
                writeln!(standing, "- {} ({}; holds {}): {why}", mutant.name, mutant.broken, mutant.holds)
                    .expect("a text takes text");
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..side_by_side {
            scope.spawn(work);
        }
    });
    let standing = standing.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(standing.is_empty(), "of {} mutants these do not fall:\n{standing}", mutants.len());
}
