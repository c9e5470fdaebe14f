//! ARCHITECTURE.md's chapter on safety is held to the sources: the files, functions and properties that it names are there, and
//! so are the mutants, each beside a guarantee that it breaks.

use std::collections::BTreeSet;

use super::sources::named_by;
use super::table::{GUARANTEES, all};
use crate::architecture::reading::{Token, has_extension, root, tokens};

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
    let gone: Vec<_> = paths.into_iter().filter(|path| !is_there(path)).collect();
    assert!(gone.is_empty(), "named and not there: {gone:?}");
}

/// Whether the file is there, and the function, constant or trigger in it that is named after `::`.
fn is_there(words: &str) -> bool {
    let (path, name) = words.split_once("::").map_or((words, None), |(path, name)| (path, Some(name)));
    let Ok(text) = std::fs::read_to_string(root().join(path)) else { return root().join(path).is_dir() };
    name.is_none_or(|name| {
        if has_extension(path, "sql") {
            text.contains(&format!("function bursar.{name}("))
        } else {
            named_by("fn", &text).chain(named_by("const", &text)).any(|found| found == name)
        }
    })
}

/// What the property of the model says that a constant of that file names.
fn says(words: &str) -> Option<String> {
    let (path, name) = words.strip_prefix("tests/model/").and_then(|rest| rest.split_once("::"))?;
    let found = tokens(&std::fs::read_to_string(root().join("tests/model").join(path)).ok()?);
    let at = found
        .windows(2)
        .position(|two| matches!(two, [Token::Word(word), Token::Word(found)] if word == "const" && found == name))?;
    found[at..].iter().find_map(|token| match token {
        Token::Text(text) => Some(text.clone()),
        Token::Word(_) | Token::Path | Token::Sign(_) => None,
    })
}

/// What carries a guarantee is a function or a statement: of a file with code the function is named.
fn is_exact(words: &str) -> bool {
    words.contains("::") || has_extension(words, "sql")
}

#[test]
fn the_chapter_names_every_mutant_beside_each_guarantee_that_it_breaks() {
    let chapter = chapter();
    let mut named = BTreeSet::new();
    let mut guarantees = Vec::new();
    for (guarantee, cells) in rows(&chapter) {
        let [_, carried, attacked, shown, mutants] = cells.as_slice() else {
            panic!("{guarantee}: {} cells", cells.len())
        };
        guarantees.push(guarantee);
        for cell in [carried, attacked, shown] {
            let words = quoted(cell);
            assert!(!words.is_empty() && words.iter().all(|words| is_path(words)), "{guarantee}: {cell}");
        }
        let whole: Vec<_> = quoted(carried).into_iter().filter(|words| !is_exact(words)).collect();
        assert!(whole.is_empty(), "{guarantee}: by which function of {whole:?}?");
        let properties: Vec<String> = quoted(shown).into_iter().filter_map(says).collect();
        assert!(!properties.is_empty(), "{guarantee}: no property of the model");
        let others: Vec<_> = properties.iter().filter(|says| !says.starts_with(&format!("{guarantee} "))).collect();
        assert!(others.is_empty(), "{guarantee}: properties of something else: {others:?}");
        assert!(quoted(shown).iter().any(|words| words.starts_with("tests/sim/")), "{guarantee}: nothing simulated");
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
