//! `plan`: coming ticks, and what an edit would change; from the schedule file alone.

use crate::support::process::Launch;
use crate::support::replica::BINARY;
use crate::support::{Finished, scratch};

const RUNNING: &str = r#"
[[job]]
name = "daily"
cron = "30 17 * * MON-FRI"
timezone = "Europe/Berlin"
calendar = "house"
cutoff = "-1bd 17:00"
handler = "ledger"
[job.ledger]
sources = ["a"]

[[job]]
name = "goes"
cron = "0 6 * * *"
handler = "ledger"
[job.ledger]
sources = ["b"]

[[job]]
name = "nightly"
cron = "30 2 * * *"
timezone = "America/New_York"
handler = "ledger"
[job.ledger]
sources = ["c"]

[[calendar]]
name = "house"
extends = "target2"
holidays = ["2027-03-30"]
"#;

/// Runs the command in a folder that holds nothing but the schedules.
fn plan(files: &[(&str, &str)], args: &[&str]) -> Finished {
    let folder = scratch::folder("plan");
    for (name, text) in files {
        std::fs::write(folder.join(name), text).expect("the folder is new");
    }
    Launch::new("bursar-plan", BINARY).folder(&folder).arg("plan").args(args).finish()
}

#[test]
fn coming_ticks_are_shown_with_zone_due_time_cutoff_and_what_happens_to_them() {
    let of = |args: &[&str]| plan(&[("s.toml", RUNNING)], &[&["--schedule", "s.toml"][..], args].concat());
    let shown = of(&["--json", "--after", "2027-03-25T00:00:00Z", "--days", "7", "--job", "daily"]).ok().json();
    assert_eq!(shown["jobs"].as_array().map(Vec::len), Some(1), "{shown}");
    let job = &shown["jobs"][0];
    assert_eq!((&job["calendar"], &job["roll"]), (&"house".into(), &"following".into()), "{job}");
    let ticks = job["ticks"].as_array().expect("a list");
    let times: Vec<(&str, &str, &str)> = ticks
        .iter()
        .map(|tick| {
            let text = |key: &str| tick[key].as_str().expect("a text");
            (text("tick"), text("due_at"), text("cutoff_at"))
        })
        .collect();
    // Good Friday, Easter Monday and the house's own day off are due on Wednesday, after the change of the clocks.
    assert_eq!(
        times,
        [
            ("2027-03-25T16:30:00Z", "2027-03-25T16:30:00Z", "2027-03-24T16:00:00Z"),
            ("2027-03-26T16:30:00Z", "2027-03-31T15:30:00Z", "2027-03-25T16:00:00Z"),
            ("2027-03-29T15:30:00Z", "2027-03-31T15:30:00Z", "2027-03-25T16:00:00Z"),
            ("2027-03-30T15:30:00Z", "2027-03-31T15:30:00Z", "2027-03-25T16:00:00Z"),
            ("2027-03-31T15:30:00Z", "2027-03-31T15:30:00Z", "2027-03-25T16:00:00Z"),
        ]
    );
    assert_eq!((&ticks[0]["offset"], &ticks[4]["offset"]), (&"+01:00".into(), &"+02:00".into()));
    assert!(ticks[1]["notes"][0].as_str().is_some_and(|note| note.contains("house") && note.contains("2027-03-31")));
    let text = of(&["--after", "2027-03-13T00:00:00Z", "--days", "2", "--job", "nightly"]).ok().stdout;
    assert!(
        text.contains("2027-03-14 03:30:00 EDT -04:00") && text.contains("02:30:00 does not exist there"),
        "{text}"
    );
    assert!(text.contains("zone data"), "{text}");
    let short = of(&["--after", "2027-03-25T00:00:00Z", "--days", "7", "--ticks", "1", "--json"]).ok().json();
    assert_eq!((short["jobs"][1]["ticks"].as_array().map(Vec::len), &short["jobs"][1]["more"]), (Some(1), &6.into()));
}

#[test]
fn what_cannot_be_planned_is_named() {
    let of = |args: &[&str]| plan(&[("s.toml", RUNNING), ("broken.toml", "[[job]]\nname = 1\n")], args);
    let unknown = of(&["--schedule", "s.toml", "--job", "dayly"]);
    assert_eq!(unknown.code(), Some(1));
    assert!(unknown.stderr.contains("no job dayly") && unknown.stderr.contains("daily"), "{}", unknown.stderr);
    assert_eq!(of(&["--schedule", "s.toml", "--days", "0"]).code(), Some(64));
    for args in [&["--schedule", "broken.toml"][..], &["--schedule", "s.toml", "--against", "broken.toml"]] {
        let broken = of(args);
        assert_eq!(broken.code(), Some(78), "{}", broken.stderr);
        assert!(broken.stderr.contains("broken.toml:2"), "{}", broken.stderr);
    }
    assert_eq!(of(&["--schedule", "absent.toml"]).code(), Some(78));
}

#[test]
fn an_edit_is_shown_as_what_it_adds_removes_and_moves_and_fires_nothing_at_once() {
    let edited = RUNNING
        .replace("30 17 * * MON-FRI", "0 18 * * MON-FRI")
        .replace("name = \"goes\"", "name = \"comes\"")
        .replace("holidays = [\"2027-03-30\"]", "holidays = []");
    let files = [("running.toml", RUNNING), ("edited.toml", edited.as_str())];
    let common =
        ["--schedule", "edited.toml", "--against", "running.toml", "--after", "2027-03-25T00:00:00Z", "--days", "7"];
    let shown = plan(&files, &[&common[..], &["--json"]].concat()).ok().json();
    assert_eq!((&shown["fires_at_once"], &shown["unchanged_jobs"]), (&false.into(), &1.into()), "{shown}");
    let jobs = shown["jobs"].as_array().expect("a list");
    let changes: Vec<(&str, &str)> = jobs
        .iter()
        .map(|job| (job["job"].as_str().expect("a name"), job["change"].as_str().expect("a word")))
        .collect();
    assert_eq!(changes, [("comes", "added"), ("daily", "changed"), ("goes", "removed")]);
    assert_eq!((&jobs[0]["totals"]["added"], &jobs[2]["totals"]["removed"]), (&7.into(), &7.into()));
    let daily = &jobs[1];
    assert_eq!(daily["totals"], serde_json::json!({ "added": 0, "removed": 0, "moved": 5 }), "{daily}");
    assert!(daily["settings"].to_string().contains("timing.cron"), "{daily}");
    let tuesday = &daily["moved"][3];
    assert_eq!(
        (&tuesday["from"]["due_at"], &tuesday["to"]["due_at"]),
        (&"2027-03-31T15:30:00Z".into(), &"2027-03-30T16:00:00Z".into()),
        "{tuesday}"
    );
    let text = plan(&files, &common).ok().stdout;
    assert!(text.contains("Nothing is fired at once") && text.contains("moved from"), "{text}");
    let same = plan(&files, &["--schedule", "running.toml", "--against", "running.toml"]).ok().stdout;
    assert!(same.contains("0 jobs change, 3 stay as they are"), "{same}");
}
