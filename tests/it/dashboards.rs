//! Alerts, boards and the runbook belong together, and name what there is: series that a replica exports, commands that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::support::replica::BINARY;
use super::support::{Setup, eventually};

/// A job that never fires while a test runs.
const NEVER: &str = "[[job]]\nname = \"yearly\"\ncron = \"0 0 29 2 *\"\nhandler = \"ledger\"\n";
/// The boards, by the name of their file.
const BOARDS: [&str; 3] = ["leadership", "settlement", "fleet"];
/// Series of ours that no replica exports, and the file that writes them.
const WRITTEN_ELSEWHERE: [(&str, &str); 2] =
    [("bursar_audit_exit_code", "deploy/audit"), ("bursar_audit_success_timestamp_seconds", "deploy/audit")];
/// What an entry of the runbook says, in this order.
const PARTS: [&str; 5] = ["**Means.**", "**Does not mean.**", "**First look.**", "**Do.**", "**Never.**"];

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    let path = repository().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// An alert as the rules have it: its name, and its lines up to the next rule.
fn alerts() -> Vec<(String, String)> {
    let rules = read("dashboards/rules.yaml");
    let blocks = rules.split("\n      - alert: ").skip(1);
    blocks
        .map(|block| {
            let (name, rest) = block.split_once('\n').expect("an alert has more than its name");
            let end = rest.find("\n  - name: ").unwrap_or(rest.len());
            (name.trim().to_owned(), rest[..end].to_owned())
        })
        .collect()
}

/// Names that begin with `bursar_` and are not part of a recorded series' name.
fn series_in(text: &str) -> BTreeSet<String> {
    let of_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    text.split(|c: char| !of_a_name(c)).filter(|word| word.starts_with("bursar_")).map(str::to_owned).collect()
}

fn promtool(args: &[&str]) {
    let folder = repository().join("dashboards");
    let output = Command::new("promtool").args(args).current_dir(folder).output();
    let output = output.expect("promtool is installed (scripts/test installs it)");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "promtool {args:?}:\n{}", String::from_utf8_lossy(&said));
}

fn board(name: &str) -> Value {
    let path = format!("dashboards/{name}.json");
    serde_json::from_str(&read(&path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All panels of a board but the rows.
fn panels(board: &Value) -> Vec<&Value> {
    let all = board["panels"].as_array().expect("a board has panels");
    all.iter().filter(|panel| panel["type"] != "row").collect()
}

fn queries(panel: &Value) -> Vec<&str> {
    let targets = panel["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
    targets.iter().map(|target| target["expr"].as_str().expect("a target has a query")).collect()
}

#[test]
fn each_alert_is_described_tested_and_in_the_runbook() {
    let (tests, runbook) = (read("dashboards/rules_test.yaml"), read("dashboards/RUNBOOK.md"));
    let alerts = alerts();
    assert!(alerts.len() > 20, "the rules are read: {alerts:?}");
    for (name, block) in &alerts {
        for key in ["summary: ", "description: ", "severity: "] {
            assert!(block.contains(key), "{name} has no {key}");
        }
        let url = format!("runbook_url: dashboards/RUNBOOK.md#{}\n", name.to_lowercase());
        assert!(format!("{block}\n").contains(&url), "{name} has no {url}");
        let entry = runbook.split("\n### ").find(|entry| entry.lines().next() == Some(name));
        let entry = entry.unwrap_or_else(|| panic!("{name} is not in the runbook"));
        let places: Vec<Option<usize>> = PARTS.iter().map(|part| entry.find(part)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{name} lacks one of {PARTS:?}");
        let its_tests: Vec<&str> =
            tests.split("\n  - name: ").filter(|test| test.starts_with(&format!("\"{name}: "))).collect();
        let of_it = |line: &&str| line.contains(&format!("alertname=\"{name}\""));
        let lines: Vec<&str> = its_tests.iter().flat_map(|test| test.lines()).filter(of_it).collect();
        assert!(lines.iter().any(|line| line.contains("value: 1 }")), "no test sees {name} fire");
        assert!(
            its_tests.concat().contains("exp_samples: []") || lines.iter().any(|line| line.contains("count by")),
            "no test sees {name} not fire"
        );
    }
    let known: BTreeSet<&str> = alerts.iter().map(|(name, _)| name.as_str()).collect();
    let entries = runbook.lines().filter_map(|line| line.strip_prefix("### "));
    let gone: Vec<&str> = entries.filter(|name| !known.contains(name)).collect();
    assert!(gone.is_empty(), "the runbook has entries of alerts that are no more: {gone:?}");
}

#[tokio::test]
async fn every_series_of_rules_and_boards_is_exported() {
    let cluster = Setup::new(1, NEVER).embedded().start().await;
    let page = eventually(Duration::from_secs(20), "a scrape", async || cluster.replica(0).metrics().await).await;
    let exported: BTreeSet<&str> = page.names().collect();
    let written: BTreeSet<&str> = WRITTEN_ELSEWHERE.iter().map(|(series, _)| *series).collect();
    for (series, file) in WRITTEN_ELSEWHERE {
        assert!(read(file).contains(series), "{file} does not write {series}");
    }
    let mut texts = vec![("rules.yaml".to_owned(), read("dashboards/rules.yaml"))];
    texts.extend(BOARDS.map(|name| (format!("{name}.json"), queries_of(&board(name)))));
    for (file, text) in texts {
        for series in series_in(&text) {
            let known = exported.contains(series.as_str()) || written.contains(series.as_str());
            assert!(known, "{file} names {series}, which nothing exports");
        }
    }
}

fn queries_of(board: &Value) -> String {
    let variables = board["templating"]["list"].as_array().expect("a board has variables");
    let asked = variables.iter().filter_map(|variable| variable["query"]["query"].as_str());
    panels(board).into_iter().flat_map(queries).chain(asked).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_panel_says_what_it_shows_and_in_what_unit() {
    for name in BOARDS {
        let board = board(name);
        assert_eq!(board["uid"], format!("bursar-{name}"), "{name}: its address must not change");
        let mut ids = BTreeSet::new();
        for panel in panels(&board) {
            let title = panel["title"].as_str().expect("a panel has a title");
            let described = panel["description"].as_str().is_some_and(|text| text.len() > 20);
            assert!(described, "{name}, {title}: it is not described");
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{name}, {title}: it has no unit");
            assert!(!queries(panel).is_empty(), "{name}, {title}: it asks nothing");
            assert!(ids.insert(panel["id"].as_u64()), "{name}, {title}: its id is not its own");
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{name}, {title}: it is tied to one source");
        }
        let variables = board["templating"]["list"].as_array().expect("a board has variables");
        let names: Vec<&str> = variables.iter().filter_map(|variable| variable["name"].as_str()).collect();
        assert!(names.contains(&"election") || name == "fleet", "{name} has the variables {names:?}");
        assert!(names.contains(&"job") || name != "settlement", "{name} has the variables {names:?}");
    }
}

/// The lines of a text that stand between backticks and begin with `bursar `. A fence of three opens as one does.
fn lines_of_commands(text: &str) -> Vec<&str> {
    let code = text.split('`').skip(1).step_by(2);
    code.flat_map(str::lines).filter_map(|line| line.trim().strip_prefix("bursar ")).collect()
}

/// The words of a command before its first value or option.
fn words_of(line: &str) -> Vec<&str> {
    let word = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
    line.split(' ').take_while(word).collect()
}

#[test]
fn the_runbook_names_commands_that_exist() {
    let runbook = read("dashboards/RUNBOOK.md");
    let lines = lines_of_commands(&runbook);
    assert!(lines.len() > 40, "the runbook is read: {lines:?}");
    let mut helps: BTreeMap<Vec<&str>, String> = BTreeMap::new();
    for line in lines {
        let words = words_of(line);
        assert!(!words.is_empty(), "the runbook says `bursar {line}`, which is no command");
        let help = helps.entry(words.clone()).or_insert_with(|| {
            let output = Command::new(BINARY).args(&words).arg("--help").output().expect("the binary can be started");
            assert!(output.status.success(), "the runbook says `bursar {line}`, which does not exist");
            String::from_utf8_lossy(&output.stdout).into_owned()
        });
        for option in line.split(' ').filter(|word| word.starts_with("--")) {
            let known = help.split_whitespace().any(|word| word == option);
            assert!(known, "the runbook says `bursar {line}`, and there is no {option}");
        }
    }
}

#[test]
fn the_pictures_of_the_boards_are_there() {
    for name in BOARDS {
        let picture: PathBuf = repository().join(format!("dashboards/pictures/{name}.svg"));
        assert!(picture.exists(), "{} is missing (scripts/dashboards draws it)", picture.display());
    }
}

#[test]
fn the_rules_are_valid_and_pass_their_tests() {
    promtool(&["check", "rules", "rules.yaml"]);
    promtool(&["test", "rules", "rules_test.yaml"]);
}

#[test]
fn each_group_of_rules_has_its_place_in_the_order_that_their_tests_evaluate_them_in() {
    let rules = read("dashboards/rules.yaml");
    let groups: Vec<&str> = rules.lines().filter_map(|line| line.strip_prefix("  - name: ")).collect();
    let order = format!("group_eval_order: [{}]", groups.join(", "));
    assert!(read("dashboards/rules_test.yaml").contains(&order), "expected: {order}");
}
