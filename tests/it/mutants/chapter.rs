//! ARCHITECTURE.md's chapter on safety is held to the sources: the files that it names are there, and so are the mutants,
//! each beside a guarantee that it breaks.

use std::collections::BTreeSet;

use super::table::{GUARANTEES, all};
use crate::architecture::reading::root;

/// How the chapter begins, and what ends it.
const BEGINS: &str = "## Safety: what holds each promise, and what does not\n";
const ENDS: &str = "\n## ";

fn chapter() -> String {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it is there");
    let (_, rest) = text.split_once(BEGINS).expect("the chapter is there");
    rest.split_once(ENDS).map_or(rest, |(chapter, _)| chapter).to_owned()
}

/// What stands between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Whether it is the path of a file, and not a command or a name.
fn is_path(words: &str) -> bool {
    ["src/", "tests/", "migrations/", "scripts/", "examples/"].iter().any(|folder| words.starts_with(folder))
}

/// The rows of the table: the guarantee, and its cells.
fn rows(chapter: &str) -> Vec<(&str, Vec<&str>)> {
    chapter
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.strip_prefix("| **")?.split(" | ").collect();
            let (guarantee, rest) = cells.split_first()?;
            Some((guarantee.trim_end_matches('*'), rest.to_vec()))
        })
        .collect()
}

#[test]
fn every_file_that_the_chapter_on_safety_names_is_there() {
    let chapter = chapter();
    let paths: Vec<&str> = quoted(&chapter).into_iter().filter(|words| is_path(words)).collect();
    assert!(paths.len() > 50, "{} files", paths.len());
    let gone: Vec<_> = paths.into_iter().filter(|path| !root().join(path).exists()).collect();
    assert!(gone.is_empty(), "named and not there: {gone:?}");
}

#[test]
fn the_chapter_names_every_mutant_beside_each_guarantee_that_it_breaks() {
    let chapter = chapter();
    let mut named = BTreeSet::new();
    let mut guarantees = Vec::new();
    for (guarantee, cells) in rows(&chapter) {
        let [_, carried, attacked, mutants] = cells.as_slice() else { panic!("{guarantee}: {} cells", cells.len()) };
        guarantees.push(guarantee);
        for cell in [carried, attacked] {
            let words = quoted(cell);
            assert!(!words.is_empty() && words.iter().all(|words| is_path(words)), "{guarantee}: {cell}");
        }
        named.extend(quoted(mutants).into_iter().map(|mutant| (guarantee, mutant)));
    }
    assert_eq!(guarantees, GUARANTEES);
    let held = all().flat_map(|mutant| mutant.holds.split(' ').map(|guarantee| (guarantee, mutant.name)));
    let held: BTreeSet<(&str, &str)> = held.collect();
    let gone: Vec<_> = named.difference(&held).collect();
    assert!(gone.is_empty(), "in the chapter, and not in the table of mutants: {gone:?}");
    let lacking: Vec<_> = held.difference(&named).collect();
    assert!(lacking.is_empty(), "in the table of mutants, and not in the chapter: {lacking:?}");
}
