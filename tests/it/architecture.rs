//! Holds the arrows between modules, and the rules of the house that a compiler cannot see.
//!
//! The table below is the table of ARCHITECTURE.md. Every path in a source file that starts in our own crate (`crate::`,
//! `super::`, grouped or not, in a `use` or in the middle of a line) is resolved and looked up in it; so is every use of a
//! client crate. Comments, texts and unit tests in `#[cfg(test)]` modules do not count.
//!
//! Each rule is a function from sources to offences, and beside the test that the tree has none stands one that the rule
//! sees an offence when there is one.

pub mod reading;

use std::fs;

use self::reading::{Source, Token, all_sources, has_extension, paths, product, repository, sources, test_files};

/// What may be used by whom: a component is the modules below a path, and the longest path that fits counts.
const ARROWS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("secret", &[]),
    ("tls", &[]),
    ("schedule", &["domain"]),
    // The words that the machine, the coordinator's port and everyone else share.
    ("leadership::record", &["domain"]),
    ("leadership::reason", &["domain", "leadership::record"]),
    ("leadership::lease", &["domain", "leadership::record", "leadership::reason"]),
    ("leadership::machine", &["domain", "leadership::record", "leadership::reason", "leadership::lease"]),
    // An adapter: its port, the words, and one client crate.
    (
        "leadership::etcd",
        &[
            "domain",
            "secret",
            "tls",
            "leadership::record",
            "leadership::reason",
            "leadership::lease",
            "leadership",
            "chaos",
        ],
    ),
    (
        "leadership::database",
        &[
            "domain",
            "leadership::record",
            "leadership::reason",
            "leadership::lease",
            "leadership",
            "clock",
            "hostproc",
            "secret",
            "tls",
            "chaos",
        ],
    ),
    (
        "leadership",
        &[
            "domain",
            "leadership::record",
            "leadership::reason",
            "leadership::lease",
            "leadership::machine",
            "clock",
            "telemetry",
            "chaos",
        ],
    ),
    ("store::postgres", &["domain", "store", "clock", "secret", "tls", "chaos"]),
    ("store::sqlite", &["domain", "store", "clock", "hostproc", "chaos"]),
    ("store::memory", &["domain", "store"]),
    ("store", &["domain"]),
    ("settlement::http", &["domain", "store", "settlement", "clock", "secret", "tls", "chaos"]),
    ("settlement::command", &["domain", "store", "settlement", "clock", "chaos"]),
    ("settlement", &["domain", "store", "settlement::http", "settlement::command", "clock", "chaos"]),
    // Never an adapter: neither leadership::etcd nor a store.
    (
        "tenure",
        &[
            "domain",
            "schedule",
            "store",
            "leadership::record",
            "leadership::reason",
            "leadership::lease",
            "leadership::machine",
            "leadership",
            "settlement",
            "settlement::http",
            "settlement::command",
            "clock",
            "telemetry",
            "chaos",
        ],
    ),
    ("config", &["domain", "schedule", "secret"]),
    ("ingest", &["domain", "schedule"]),
    ("telemetry", &["domain", "store", "leadership::record", "leadership::reason", "leadership", "clock"]),
    ("web", &["domain", "store", "leadership::record", "leadership::reason", "leadership", "telemetry", "clock"]),
    ("lifecycle", &["domain", "clock"]),
    ("clock", &["domain"]),
    ("hostproc", &["domain"]),
    ("chaos", &[]),
    (
        "cli",
        &[
            "domain",
            "schedule",
            "config",
            "store",
            "leadership::record",
            "leadership::reason",
            "leadership",
            "ingest",
            "telemetry",
            "clock",
            "lifecycle",
            "app",
            // Whether the process of a demo that was killed lives.
            "hostproc",
            // Its supervisor alone, which is a process of its own.
            "settlement::command",
        ],
    ),
    ("app", EVERYTHING),
];

/// The composition root may use all; the crate's root and the binary only name modules.
const EVERYTHING: &[&str] = &["*"];

/// Components that decide and do nothing else: no clock, no I/O, no log.
const PURE: &[&str] = &[
    "domain",
    "schedule",
    "leadership::record",
    "leadership::reason",
    "leadership::lease",
    "leadership::machine",
    "config",
    "ingest",
];

/// What has no place in [`PURE`].
const IMPURE: &[&str] = &[
    "tokio",
    "tokio_util",
    "sqlx",
    "etcd_client",
    "tracing",
    "metrics",
    "axum",
    "rustix",
    "fastrand",
    "tokio_cron_scheduler",
];

/// Crates that have one home, so that they can be replaced there.
const HOMES: &[(&str, &[&str])] = &[
    ("sqlx", &["store::postgres", "store::sqlite", "leadership::database"]),
    ("etcd_client", &["leadership::etcd"]),
    ("axum", &["web"]),
    ("hyper", &["settlement::http", "web"]),
    ("hyper_util", &["settlement::http", "web"]),
    ("tokio_rustls", &["settlement::http", "tls"]),
    ("hmac", &["settlement::http"]),
    ("tokio_cron_scheduler", &["tenure"]),
    ("croner", &["schedule"]),
    ("clap", &["cli"]),
    ("comfy_table", &["cli"]),
    ("csv", &["ingest", "cli"]),
    ("fastrand", &["clock"]),
    ("metrics_exporter_prometheus", &["telemetry"]),
];

/// The longest that a source file may be, in lines. The aim is 400.
const LINES: usize = 450;

/// Macros at the crate's root, and the component that they belong to.
const MACROS: &[(&str, &str)] = &[("point", "chaos"), ("sql", "chaos")];

/// Macros that may be used anywhere, also where everything is pure: a mutant is a constant of its process, and `false` in a
/// release.
const ANYWHERE: &[&str] = &["mutant"];

/// The component that a module's path belongs to.
fn component(module: &[String]) -> Option<&'static str> {
    let path = module.join("::");
    let fits = |name: &&str| path == **name || path.starts_with(&format!("{name}::"));
    ARROWS.iter().map(|(name, _)| *name).filter(fits).max_by_key(|name| name.len())
}

/// A path of our own crate from its root on; `None` for another crate's.
fn ours(source: &Source, path: &[String]) -> Option<Vec<String>> {
    match path.first().map(String::as_str) {
        Some("crate" | "bursar") => Some(path[1..].to_vec()),
        Some("super") => {
            let ups = path.iter().take_while(|step| *step == "super").count();
            let base = source.module.len().saturating_sub(ups);
            Some(source.module[..base].iter().chain(&path[ups..]).cloned().collect())
        }
        Some("self") => Some(source.module.iter().chain(&path[1..]).cloned().collect()),
        Some(_) | None => None,
    }
}

/// The paths of a source that the table forbids.
fn forbidden_arrows(source: &Source) -> Vec<String> {
    let Some(from) = component(&source.module) else { return Vec::new() };
    let allowed = ARROWS.iter().find(|(name, _)| *name == from).map_or(EVERYTHING, |(_, allowed)| allowed);
    if allowed == EVERYTHING {
        return Vec::new();
    }
    let mut offences = Vec::new();
    for path in paths(&product(source)) {
        let Some(target) = ours(source, &path) else { continue };
        let Some(first) = target.first() else { continue };
        if ANYWHERE.contains(&first.as_str()) {
            continue;
        }
        let by_macro = MACROS.iter().find(|(name, _)| name == first).map(|(_, home)| *home);
        match by_macro.or_else(|| component(&target)) {
            Some(to) if to == from || allowed.contains(&to) => {}
            Some(to) => offences.push(format!("{}: {from} may not use {to}: {}", source.path, path.join("::"))),
            None => offences.push(format!("{}: the table does not know {}", source.path, path.join("::"))),
        }
    }
    offences
}

/// Uses of crates where they have no place.
fn strangers(source: &Source) -> Vec<String> {
    let Some(from) = component(&source.module) else { return Vec::new() };
    let mut offences = Vec::new();
    for path in paths(&product(source)) {
        let name = path[0].as_str();
        if PURE.contains(&from) && IMPURE.contains(&name) {
            offences.push(format!("{}: {from} is pure and uses {}", source.path, path.join("::")));
        }
        if PURE.contains(&from) && path.iter().any(|step| step == "Instant" || step == "SystemTime") {
            offences.push(format!("{}: {from} is pure and asks for the time: {}", source.path, path.join("::")));
        }
        if let Some((_, homes)) = HOMES.iter().find(|(stranger, _)| *stranger == name)
            && from != "app"
            && !homes.contains(&from)
        {
            offences.push(format!("{}: {name} lives in {homes:?}, not in {from}", source.path));
        }
    }
    offences
}

/// Texts that are statements of SQL, outside the store and the mutants of its statements.
fn stray_sql(source: &Source) -> Vec<String> {
    if source.module.first().is_some_and(|name| name == "store") || source.path == "src/chaos/sql.rs" {
        return Vec::new();
    }
    let is_sql = |text: &str| {
        let text = format!("{} ", text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase());
        let both = |first: &str, then: &str| {
            text.split_once(first).is_some_and(|(before, rest)| {
                (before.is_empty() || before.ends_with([' ', '(', ';'])) && rest.contains(then)
            })
        };
        both("select ", " from ") || both("insert into ", "") || both("update ", " set ") || both("delete from ", "")
    };
    let texts = product(source).into_iter().filter_map(|token| match token {
        Token::Text(text) if is_sql(&text) => Some(text),
        Token::Text(_) | Token::Word(_) | Token::Path | Token::Sign(_) => None,
    });
    texts.map(|text| format!("{}: SQL outside the store: {text}", source.path)).collect()
}

/// Files of SQL outside the store, the migrations, the roles that a deployment has, and the benchmark's ceiling, which is SQL
/// by its nature.
fn stray_sql_file(path: &str) -> bool {
    let homes = ["src/store/", "src/leadership/database/", "migrations/", "deploy/postgres/", "benches/"];
    has_extension(path, "sql") && !homes.iter().any(|home| path.starts_with(home))
}

/// Mentions of places that are no part of the repository.
fn outside_places(text: &str) -> Vec<&'static str> {
    // Put together here, so that this file does not mention it; and where this checkout happens to lie.
    const PLACES: &[&str] = &[concat!("..", "/shared"), env!("CARGO_MANIFEST_DIR")];
    // A longer path may end like one of them.
    let begins = |at: usize| !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '/');
    PLACES.iter().filter(|place| text.match_indices(**place).any(|(at, _)| begins(at))).copied().collect()
}

fn none(offences: &[String]) {
    assert!(offences.is_empty(), "{} offences:\n{}", offences.len(), offences.join("\n"));
}

#[test]
fn modules_use_what_the_table_of_arrows_allows() {
    none(&sources().iter().flat_map(forbidden_arrows).collect::<Vec<_>>());
}

#[test]
fn pure_modules_are_pure_and_client_crates_stay_at_home() {
    none(&sources().iter().flat_map(strangers).collect::<Vec<_>>());
}

#[test]
fn sql_stands_in_the_store_alone() {
    none(&sources().iter().flat_map(stray_sql).collect::<Vec<_>>());
    let files = repository().into_iter().map(|(name, _)| name);
    none(&files.filter(|name| stray_sql_file(name)).collect::<Vec<_>>());
}

#[test]
fn source_files_stay_short() {
    let long = |source: &Source| {
        let lines = source.text.lines().count();
        (lines > LINES).then(|| format!("{}: {lines} lines, {LINES} are allowed", source.path))
    };
    none(&all_sources().iter().filter_map(long).collect::<Vec<_>>());
}

#[test]
fn no_file_mentions_a_place_outside_the_repository() {
    let mut offences = Vec::new();
    for (name, path) in repository() {
        let text = String::from_utf8_lossy(&fs::read(&path).expect("it can be read")).into_owned();
        offences.extend(outside_places(&text).into_iter().map(|place| format!("{name}: mentions {place}")));
    }
    none(&offences);
}

#[test]
fn the_rule_of_arrows_sees_every_way_to_write_one() {
    for (path, text) in [
        ("src/domain/x.rs", "use crate::clock::boottime;"),
        ("src/schedule/x.rs", "fn f() { let now = crate::clock::boottime(); }"),
        ("src/tenure/x.rs", "use crate::{domain::Term, store::{Store, postgres::Pool}};"),
        ("src/tenure/x.rs", "use super::super::leadership::etcd::Etcd as Coordinator;"),
        ("src/tenure.rs", "use super::store::postgres;"),
        ("src/tenure/mod.rs", "use crate::store::postgres::*;"),
        ("src/leadership/machine/x.rs", "use crate::leadership::Driver;"),
        ("src/leadership/machine.rs", "use super::driver::Driver;"),
        ("src/leadership/etcd/x.rs", "use crate::store::Store;"),
        ("src/store/port.rs", "type T = crate::store::postgres::Row;"),
        ("src/web/x.rs", "fn f<T: crate::tenure::Tenure>() {}"),
        ("src/domain/x.rs", "crate::point!(\"a.b\");"),
        ("src/store/mod.rs", "use crate::novelty::Thing;"),
        ("src/store/mod.rs", "// \"\n use crate::tenure::A; // \""),
    ] {
        assert_eq!(forbidden_arrows(&Source::new(path, text)).len(), 1, "{path}: {text}");
    }
}

#[test]
fn the_rule_of_arrows_lets_be_what_is_allowed_or_is_no_use() {
    for (path, text) in [
        ("src/domain/x.rs", "use super::money::Currency; use std::fmt; // crate::clock"),
        (
            "src/domain/x.rs",
            "const A: &str = \"crate::store\"; const B: char = '\"'; const C: &str = \"crate::store\";",
        ),
        (
            "src/domain/x.rs",
            "fn f<'a>(x: &'a str) {} /* crate::store::Store */ const R: &str = r#\"\" crate::store::A\"#;",
        ),
        ("src/tenure/x.rs", "use crate::{domain::Term, store::{Store, Entered}}; crate::point!(\"x\");"),
        ("src/leadership/machine/x.rs", "use super::super::lease::Window;"),
        ("src/app.rs", "use crate::store::postgres::Pool;"),
        ("src/lib.rs", "pub use crate::store::postgres::Pool;"),
        ("src/domain/x.rs", "fn f() {}\n#[cfg(test)]\nmod tests { use crate::clock::boottime; fn g() { {} } }"),
        ("src/domain/x.rs", "enum A { #[cfg(test)] B(crate::clock::C), D }"),
        ("src/domain/x.rs", "fn f() -> bool { crate::mutant!(\"a.b\") }"),
        ("src/leadership/machine/x.rs", "use crate::leadership::record::LeaseId;"),
    ] {
        assert_eq!(forbidden_arrows(&Source::new(path, text)), Vec::<String>::new(), "{path}: {text}");
    }
    for text in [
        "#[cfg(test)]\nmod tests { fn g() {} }\nuse crate::clock::boottime;",
        "#[cfg(test)]\nmod tests;\nuse crate::clock::boottime;",
        "enum A { #[cfg(test)] B, C(crate::clock::D) }",
        "fn f() { match x { #[cfg(test)] A::B => { 1 } A::C => crate::clock::d() } }",
    ] {
        assert_eq!(forbidden_arrows(&Source::new("src/domain/x.rs", text)).len(), 1, "{text}");
    }
}

#[test]
fn files_of_tests_are_known_by_their_declaration() {
    for (path, text, expected) in [
        ("src/a/b.rs", "#[cfg(test)]\n#[path = \"b_tests.rs\"]\npub(super) mod tests;", vec!["src/a/b_tests"]),
        (
            "src/a/mod.rs",
            "#[cfg(test)] mod tests;\n#[cfg(test)] mod pretended;",
            vec!["src/a/tests", "src/a/pretended"],
        ),
        ("src/a.rs", "#[cfg(test)] mod tests { mod inner; }\nmod store;", vec![]),
        ("src/a.rs", "#[cfg(test)] const A: &str = \"x\";\nmod b;", vec![]),
        ("src/a.rs", "#[cfg(test)] use x::y;\nmod b;", vec![]),
    ] {
        assert_eq!(test_files(&Source::new(path, text)), expected, "{path}: {text}");
    }
}

#[test]
fn the_rules_of_crates_sql_and_places_see_offences() {
    for (path, text) in [
        ("src/domain/x.rs", "use tokio::time::sleep;"),
        ("src/schedule/x.rs", "fn f() { tracing::info!(\"x\"); }"),
        ("src/leadership/lease.rs", "use std::time::Instant;"),
        ("src/tenure/x.rs", "fn f(_: sqlx::PgPool) {}"),
        ("src/leadership/driver.rs", "use etcd_client::Client;"),
    ] {
        assert_eq!(strangers(&Source::new(path, text)).len(), 1, "{path}: {text}");
    }
    assert!(strangers(&Source::new("src/store/postgres/x.rs", "use sqlx::PgPool;")).is_empty());
    for text in [
        "\"select id\n from unit\"",
        "r\"with a as (select 1 from b) update unit set a = 1\"",
        "\"INSERT INTO unit values (1)\"",
        "\"Delete  From unit\"",
    ] {
        assert_eq!(stray_sql(&Source::new("src/tenure/x.rs", text)).len(), 1, "{text}");
        assert!(stray_sql(&Source::new("src/store/postgres/x.rs", text)).is_empty());
    }
    assert!(stray_sql(&Source::new("src/tenure/x.rs", "\"an updated set\" // select a from b")).is_empty());
    assert!(stray_sql_file("src/tenure/x.sql") && !stray_sql_file("migrations/postgres/1.sql"));
    assert_eq!(outside_places(concat!("see ..", "/shared/x")).len(), 1);
}
