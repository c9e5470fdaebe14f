//! What the table is held to: every mutant of the sources has a row and every row a mutant, no guarantee is without one, and
//! the tests that it names are there.

use std::collections::BTreeSet;

use bursar::chaos::sql;

use super::table::{GUARANTEES, Test, all};
use crate::architecture::reading::{Token, files, has_extension, root, sources, tokens};

/// Names of the mutants in a source: what stands first in each `mutant!`.
fn named_in(text: &str) -> Vec<String> {
    let found = tokens(text);
    let names = found.windows(4).filter_map(|four| match four {
        [Token::Word(word), Token::Sign('!'), Token::Sign('('), Token::Text(name)] if word == "mutant" => {
            Some(name.clone())
        }
        _ => None,
    });
    names.collect()
}

/// What stands behind that keyword in a source: names of functions, or of constants.
pub fn named_by(keyword: &str, text: &str) -> impl Iterator<Item = String> {
    let found = tokens(text);
    let names: Vec<String> = found
        .windows(2)
        .filter_map(|two| match two {
            [Token::Word(word), Token::Word(name)] if word == keyword => Some(name.clone()),
            _ => None,
        })
        .collect();
    names.into_iter()
}

/// Mutants that no more than a unit test notices, and why.
const BY_A_UNIT_TEST_ALONE: &[(&str, &str)] = &[
    ("calls.stopped-not-counted", "it shows only when a receiver has forgotten a key, hours after it was stopped"),
    ("timers.left-running", "what a timer that was left says is heard by nobody; only a thread more is there"),
];

/// Names of all functions below `src` and `tests`.
pub fn functions() -> BTreeSet<String> {
    let mut paths = Vec::new();
    for folder in ["src", "tests"] {
        files(&root().join(folder), &mut paths);
    }
    let mut functions = BTreeSet::new();
    for path in paths.iter().filter(|path| has_extension(&path.to_string_lossy(), "rs")) {
        functions.extend(named_by("fn", &std::fs::read_to_string(path).expect("sources are UTF-8")));
    }
    functions
}

#[test]
fn every_mutant_has_a_row_and_every_row_a_mutant() {
    let mut there: BTreeSet<String> = sources().iter().flat_map(|source| named_in(&source.text)).collect();
    for broken in sql::ALL {
        assert!(there.insert(broken.mutant.to_owned()), "{} stands in the sources and in chaos::sql", broken.mutant);
    }
    let rows: Vec<&str> = all().map(|mutant| mutant.name).collect();
    let listed: BTreeSet<String> = rows.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(listed.len(), rows.len(), "a row stands twice");
    let lacking: Vec<_> = there.difference(&listed).collect();
    assert!(lacking.is_empty(), "mutants without a row in tests/it/mutants/table: {lacking:?}");
    let idle: Vec<_> = listed.difference(&there).collect();
    assert!(idle.is_empty(), "rows without a mutant in the sources: {idle:?}");
}

#[test]
fn every_guarantee_has_a_mutant_and_every_test_of_the_table_is_there() {
    let functions = functions();
    let mut held = BTreeSet::new();
    for mutant in all() {
        assert!(
            mutant.name.contains(['.', '-']),
            "{}: the release check looks for names with a separator",
            mutant.name
        );
        assert!(!mutant.broken.is_empty() && !mutant.says.is_empty(), "{}", mutant.name);
        for guarantee in mutant.holds.split(' ') {
            assert!(GUARANTEES.contains(&guarantee), "{}: no guarantee {guarantee}", mutant.name);
            held.insert(guarantee);
        }
        for test in mutant.noticed_by() {
            let (Test::Unit(path) | Test::It(path) | Test::Model(path) | Test::Sim(path)) = test;
            let name = path.rsplit("::").next().unwrap_or(path);
            assert!(functions.contains(name), "{}: there is no test {path}", mutant.name);
        }
    }
    assert_eq!(held, GUARANTEES.iter().copied().collect(), "each guarantee has a mutant");
}

#[test]
fn every_mutant_is_noticed_by_more_than_a_unit_test() {
    let alone = all().filter(|mutant| mutant.noticed_by().all(|test| matches!(test, Test::Unit(_))));
    let alone: BTreeSet<&str> = alone.map(|mutant| mutant.name).collect();
    let excused: BTreeSet<&str> = BY_A_UNIT_TEST_ALONE.iter().map(|(name, _)| *name).collect();
    assert_eq!(alone, excused, "by the model, the simulator or a test on real services");
}

#[test]
fn mutants_are_seen_in_sources_however_they_are_written() {
    let text =
        "a(crate::mutant!(\"a.b\")); mutant!(\"c.d\" => x); // mutant!(\"e.f\")\n mutant!(\"g.h\", instead of 1 => 2)";
    assert_eq!(named_in(text), ["a.b", "c.d", "g.h"]);
}
