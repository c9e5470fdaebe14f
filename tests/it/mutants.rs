//! Mutants: deliberate defects of the test build, each of which one test has to notice. Anyone can write tests that pass;
//! these show what the tests are good for.
//!
//! [`table`] names them all, says which guarantee each would break and which test catches it. Those that a unit test
//! catches are run by that binary (`unit.rs`, which `src/chaos.rs` takes in), the others here: the test binary runs itself,
//! with one test and one mutant, and replicas that the test starts inherit the mutant. Servers are lent to it.
//!
//! A new mutant is a `mutant!` where the defect is (or a line of `chaos::sql`), and a row.

mod chapter;
mod fall;
mod sources;
mod table;

use std::time::Duration;

use bursar::clock;

use self::fall::{Ended, KEEP_NO_CASES, SWITCH, all_fall};
use self::table::{Mutant, Test, all};
use crate::support::process::Launch;
use crate::support::{Etcd, Postgres, etcd, measured, postgres};

/// The slowest of them waits for a bound of ten seconds; the rest is for a busy machine.
const WITHIN: Duration = Duration::from_secs(90);

/// How often a test is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Most of them wait most of the time.
const SIDE_BY_SIDE: usize = 4;

fn run(mutant: &Mutant, test: &str) -> Ended {
    let process = Launch::new("mutant", std::env::current_exe().expect("it runs"))
        .args(["--exact", test])
        .env(SWITCH, mutant.name)
        .env(KEEP_NO_CASES.0, KEEP_NO_CASES.1)
        .env("RUST_BACKTRACE", "0")
        .env(postgres::LENT, Postgres::shared().port().to_string())
        .env(etcd::LENT, Etcd::shared().ports()[0].to_string())
        .start();
    let until = clock::boottime() + WITHIN;
    while process.is_running() && clock::boottime() < until {
        std::thread::sleep(LOOK_AGAIN);
    }
    let Some(status) = process.ended() else {
        process.kill();
        return Ended { passed: false, output: format!("it has not ended within {WITHIN:?}") };
    };
    Ended { passed: status.success(), output: process.log() }
}

#[test]
fn every_mutant_falls_that_a_test_on_real_services_catches() {
    let mutants: Vec<&Mutant> = all().filter(|mutant| matches!(mutant.caught_by, Test::It(_))).collect();
    assert!(mutants.len() > 15, "{} mutants", mutants.len());
    let took = std::sync::Mutex::new(Vec::new());
    let began = clock::boottime();
    all_fall(&mutants, SIDE_BY_SIDE, |mutant, test| {
        let began = clock::boottime();
        let ended = run(mutant, test);
        took.lock().expect("a push does not panic").push((clock::boottime().since(began).as_millis(), mutant.name));
        ended
    });
    let all = clock::boottime().since(began).as_secs();
    let slowest = took.into_inner().expect("a push does not panic").into_iter().max();
    measured(&format!(
        "{} mutants fell on real services in {all} s, the slowest of them in (ms): {slowest:?}",
        mutants.len()
    ));
}
