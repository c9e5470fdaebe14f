//! The mutants that a unit test catches: run by the binary that the unit tests are in. The others, and the rules that the
//! table is held to, are in the integration tests.

mod fall;
#[expect(dead_code, reason = "what the integration tests hold the table to")]
mod table;

use std::process::Command;

use self::fall::{Ended, KEEP_NO_CASES, SWITCH, all_fall};
use self::table::{Mutant, Test, all};

fn run(mutant: &Mutant, name: &str) -> Ended {
    let binary = std::env::current_exe().expect("it runs");
    let output = Command::new(binary)
        .args(["--exact", name])
        .env(SWITCH, mutant.name)
        .env(KEEP_NO_CASES.0, KEEP_NO_CASES.1)
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("it can be started again");
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    Ended { passed: output.status.success(), output: text }
}

#[test]
fn every_mutant_falls_that_a_unit_test_catches() {
    let mutants: Vec<&Mutant> = all().filter(|mutant| matches!(mutant.caught_by, Test::Unit(_))).collect();
    assert!(mutants.len() > 10, "{} mutants", mutants.len());
    all_fall(&mutants, 4, run);
}
