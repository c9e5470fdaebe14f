//! What a person meets at the commands, on a SQLite file that no other test has: misspelt targets, variables that nothing
//! reads, pipes in place of files, a standard output that is full.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::support::cluster::IDLE;
use super::support::replica::BINARY;
use super::support::{Finished, Launch, eventually_blocking, scratch};

/// How long a command may take that has nothing to wait for.
const SOON: Duration = Duration::from_secs(20);

fn launch(folder: &Path, args: &[&str]) -> Launch {
    Launch::new("commands", BINARY).args(args).folder(folder)
}

fn bursar(folder: &Path, args: &[&str]) -> Finished {
    launch(folder, args).finish()
}

/// A folder with a store that has its schema, and a schedule.
fn migrated() -> PathBuf {
    let folder = scratch::folder("commands");
    fs::write(folder.join("schedule.toml"), IDLE).expect("the folder is ours");
    bursar(&folder, &["migrate"]).ok();
    folder
}

fn assert_says(finished: &Finished, code: i32, words: &[&str]) {
    assert_eq!(finished.code(), Some(code), "{}{}", finished.stdout, finished.stderr);
    for words in words {
        assert!(finished.stderr.contains(words), "{words} is said:\n{}", finished.stderr);
    }
}

#[test]
fn a_misspelt_target_is_refused_or_warned_of() {
    let folder = migrated();
    let command = |args: &[&str]| bursar(&folder, args);
    let resumed = command(&["resume", "--reason", "x", "--election", "setlement"]);
    assert_says(&resumed, 1, &["there is no election setlement", "Nothing was resumed"]);
    command(&["resume", "--reason", "x", "--election", "settlement"]).ok();
    let history = command(&["history", "--json"]).ok().json();
    assert!(!history["acts"].to_string().contains("setlement"), "{history}");
    assert_says(&command(&["receivers", "resume", "x", "--reason", "x"]), 64, &["https://bank.internal:8443"]);
    command(&["receivers", "resume", "https://bank.internal", "--reason", "x"]).ok();
    assert_says(&command(&["merchant", "hold", "Nobody", "--reason", "x"]), 0, &["no entry of this merchant is known"]);
    let entries = "id,merchant,currency,kind,amount,fee,occurred_at,available_at,reference\n\
                   1,Somebody,EUR,capture,10.00,,2026-11-30T10:00:00Z,,\n";
    fs::write(folder.join("entries.csv"), entries).expect("the folder is ours");
    command(&["import", "entries.csv", "--source", "adyen"]).ok();
    assert_eq!(command(&["merchant", "hold", "Somebody", "--reason", "x"]).ok().stderr, "");
    let cordoned = command(&["cordon", "nobody", "--reason", "x"]);
    assert_says(&cordoned, 0, &["warning: "]);
    assert!(cordoned.stdout.contains("nobody is cordoned"), "{}", cordoned.stdout);
    let status = command(&["status"]).ok().stdout;
    let of_nobody = status.split("CORDONED").nth(1).unwrap_or_default();
    assert!(of_nobody.contains("nobody") && of_nobody.contains("bursar uncordon"), "{status}");
    command(&["uncordon", "nobody", "--reason", "x"]).ok();
    assert!(!command(&["status"]).ok().stdout.contains("CORDONED"), "shown while there are any");
}

#[test]
fn files_of_receivers_that_cannot_be_used_here_are_named_by_a_check() {
    let folder = migrated();
    fs::write(folder.join("short"), "short").expect("the folder is ours");
    fs::write(folder.join("ca.pem"), "no certificate").expect("the folder is ours");
    let file = |name: &str| folder.join(name).display().to_string();
    let paying = format!(
        "{IDLE}[job.payout]\nkind = \"http\"\nurl = \"https://bank.internal/payouts\"\ntls_ca = \"{}\"\n\
         secret_files = [\"{}\"]\n",
        file("ca.pem"),
        file("short")
    );
    fs::write(folder.join("schedule.toml"), paying).expect("the folder is ours");
    let checked = bursar(&folder, &["check"]).ok();
    let said = format!("{}{}", checked.stdout, checked.stderr);
    for words in [
        format!("nothing could be sent from here: the receiver's tls_ca: {}: found no certificate", file("ca.pem")),
        format!("nothing could be sent from here: the secret in {}: found 5 bytes", file("short")),
    ] {
        assert!(said.contains(&words), "{words}: {said}");
    }
    let offline = bursar(&folder, &["check", "--offline"]).ok();
    assert!(!format!("{}{}", offline.stdout, offline.stderr).contains("from here"), "it looks at no files of others");
}

#[test]
fn a_variable_that_nothing_reads_is_refused_with_the_one_that_was_meant() {
    let folder = scratch::folder("variables");
    let with = |name: &str, value: &str| launch(&folder, &["check", "--offline"]).env(name, value).finish();
    let meant = &["nothing reads it; did you mean `BURSAR__DATABASE__URL`?"];
    for name in ["BURSAR_DATABASE__URL", "bursar__database__url"] {
        assert_says(&with(name, "sqlite://other.db"), 78, &[&[name][..], &meant[..]].concat());
    }
    assert_says(&with("BURSAR_CONFIG", ""), 78, &["BURSAR_CONFIG", "found an empty text"]);
    with("BURSAR_PORT_9464_TCP_ADDR", "10.0.0.7").ok();
    with("BURSAR__DATABASE__URL", "sqlite://other.db").ok();
    let wrong = with("BURSAR__DATABASE__MAX_CONNECTIONS", "1e2");
    assert_says(&wrong, 78, &["max_connections"]);
    assert!(!wrong.stderr.contains("schedule: missing"), "{}", wrong.stderr);
}

#[test]
fn a_pipe_in_place_of_a_file_is_refused_and_not_waited_for() {
    let folder = scratch::folder("pipe");
    for name in ["schedule.toml", "bursar.toml"] {
        let made = Command::new("mkfifo").arg(folder.join(name)).status().expect("mkfifo can be started");
        assert!(made.success(), "{made}");
        let checked = launch(&folder, &["check", "--offline"]).finish_within(SOON);
        assert_says(&checked, 78, &[name, "expected a regular file"]);
    }
}

#[test]
fn a_replica_says_what_it_runs_on_and_takes_a_schedule_up_after_a_pipe_stood_in_its_place() {
    let folder = scratch::folder("reloaded");
    let file = folder.join("schedule.toml");
    fs::write(&file, IDLE).expect("the folder is ours");
    let replica = launch(&folder, &["run"]).env("BURSAR__HTTP__LISTEN", "127.0.0.1:0").start();
    let said = |words: &str| {
        eventually_blocking(SOON, words, || replica.log().contains(words).then_some(()));
    };
    said("no configuration file: the embedded defaults");
    said("bursar.db");
    fs::remove_file(&file).expect("it was written");
    let made = Command::new("mkfifo").arg(&file).status().expect("mkfifo can be started");
    assert!(made.success(), "{made}");
    said("expected a regular file");
    fs::remove_file(&file).expect("it was made");
    fs::write(&file, IDLE.replace("cron = \"", "run_deadline = \"45m\"\ncron = \"")).expect("the folder is ours");
    said("the schedule is taken over");
}

#[test]
fn looking_makes_no_lease_file() {
    let folder = migrated();
    let status = bursar(&folder, &["status", "--json"]).ok().json();
    assert!(status["coordinator"]["away"].as_str().is_some_and(|why| why.contains("no replica has made ")), "{status}");
    let transferred = bursar(&folder, &["transfer", "--reason", "a drill"]);
    assert_ne!(transferred.code(), Some(0));
    assert!(!folder.join("bursar.db.lease").exists(), "whoever asks may be another user than the replicas");
}

#[test]
fn what_cannot_be_written_is_said_and_an_act_that_is_in_the_store_is_said_to_be_done() {
    let folder = migrated();
    let into = |script: &str, args: &[&str]| {
        let shell = Launch::new("full", "sh").args(["-c", &format!("exec \"$0\" \"$@\" {script}"), BINARY]);
        shell.args(args).folder(&folder).finish()
    };
    let entries = "id,merchant,currency,kind,amount,fee,occurred_at,available_at,reference\r\n\
                   1,m,EUR,capture,10.00,,2026-11-30T10:00:00Z,,\r\n";
    fs::write(folder.join("crlf.csv"), entries).expect("the folder is ours");
    let imported = into(">/dev/full", &["import", "crlf.csv", "--source", "adyen"]);
    assert_says(&imported, 74, &["done, but standard output could not be written: "]);
    assert_eq!(bursar(&folder, &["imports", "list", "--json"]).ok().json().as_array().map(Vec::len), Some(1));
    // What was found stands, whether its words were read or not.
    fs::write(folder.join("other.csv"), entries.replace("10.00", "11.00")).expect("the folder is ours");
    let differs = || bursar(&folder, &["import", "other.csv", "--source", "adyen"]);
    assert_eq!(differs().code(), Some(1));
    let unread = Launch::new("unread", "bash")
        .args(["-c", "set -o pipefail; exec 3> >(exec true); sleep 0.2; \"$0\" \"$@\" >&3", BINARY])
        .args(["import", "other.csv", "--source", "adyen"]);
    assert_eq!(unread.folder(&folder).finish().code(), Some(1));
    let listed = into(">/dev/full", &["imports", "list"]);
    assert_says(&listed, 74, &["standard output could not be written: "]);
    assert!(!listed.stderr.contains("done"), "{}", listed.stderr);
    assert_eq!(into("2>/dev/full", &["imports", "show", "4711"]).code(), Some(1), "no panic");
    assert_eq!(into("2>&-", &["merchant", "hold", "Nobody", "--reason", "x"]).code(), Some(0), "no panic");
}

#[test]
fn the_walk_through_of_the_readme_checks_clean_on_a_store_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).expect("UTF-8");
    assert!(readme.contains("cp \"$config/embedded-schedule.toml\" schedule.toml\n"), "it copies that file");
    let folder = scratch::folder("walk");
    fs::copy(root.join("config/embedded-schedule.toml"), folder.join("schedule.toml")).expect("the example");
    bursar(&folder, &["migrate"]).ok();
    let checked = bursar(&folder, &["check"]).ok();
    assert!(checked.stdout.contains("configuration and schedule are valid"), "{}", checked.stdout);
    let planned = bursar(&folder, &["plan", "--days", "31", "--job", "daily-payouts"]).ok();
    assert!(planned.stdout.contains("england-and-wales"), "{}", planned.stdout);
}

#[test]
fn ticks_that_a_calendar_makes_due_at_one_time_are_shown_as_one_run() {
    let folder = scratch::folder("rolled");
    let job = "[[job]]\nname = \"daily\"\ncron = \"0 17 * * *\"\nhandler = \"ledger\"\ncalendar = \"target2\"\nroll = \"following\"\n";
    fs::write(folder.join("schedule.toml"), job).expect("the folder is ours");
    // From Friday evening: Saturday and Sunday are due with Monday.
    let args = ["plan", "--after", "2027-01-08T18:00:00Z", "--days", "3", "--json"];
    let planned = bursar(&folder, &args).ok().json();
    let ticks = planned["jobs"][0]["ticks"].as_array().expect("a list");
    let runs: Vec<bool> = ticks.iter().filter_map(|tick| tick["runs"].as_bool()).collect();
    assert_eq!(runs, [true, false, false], "{planned}");
    assert!(ticks[2]["notes"].to_string().contains("due together with 2027-01-09T17:00:00Z: coalesced"), "{planned}");
}

#[test]
fn a_reference_that_is_empty_is_called_one() {
    let refused = bursar(&scratch::folder("words"), &["payouts", "resolve", "k", "--paid", "", "--reason", "x"]);
    assert_says(&refused, 64, &["a reference is what"]);
}

#[test]
fn a_file_that_may_not_be_written_is_a_set_up_to_be_mended() {
    let folder = migrated();
    // A database is its file and what it keeps beside it.
    for (path, mode) in [(folder.join("bursar.db"), 0o444), (folder.clone(), 0o555)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }
    let read_only = Launch::new("commands", BINARY).arg("status").folder(&folder).keeps_to_modes().finish();
    assert_says(&read_only, 78, &["bursar.db", "write"]);
    assert!(!read_only.stderr.starts_with("now:"), "{}", read_only.stderr);
}

#[test]
fn who_acted_is_whom_the_system_knows_and_a_name_that_is_said_is_recorded_as_said() {
    let folder = migrated();
    let halts = |variables: &[(&str, &str)], options: &[&str]| {
        let args = [&["halt", "--reason", "a drill"], options].concat();
        let halt = variables.iter().fold(launch(&folder, &args), |launch, (name, value)| launch.env(name, value));
        halt.finish()
    };
    let by = |variables: &[(&str, &str)], options: &[&str]| {
        halts(variables, options).ok();
        let history = bursar(&folder, &["history", "--json"]).ok().json();
        let by = history["acts"][0]["by"].as_str().expect("somebody").to_owned();
        by.rsplit_once('@').expect("a host").0.to_owned()
    };
    let system = by(&[], &[]);
    assert_eq!(by(&[("USER", "mallory"), ("LOGNAME", "mallory")], &[]), system, "that can be set at will");
    assert_eq!(by(&[("BURSAR_OPERATOR", "ada")], &[]), format!("ada (said by {system})"));
    let said = by(&[("BURSAR_OPERATOR", "ada")], &["--as", "grace@example.com"]);
    assert_eq!(said, format!("grace@example.com (said by {system})"), "the option goes before");
    assert_says(&halts(&[("BURSAR_OPERATOR", "ada (said by root)")], &[]), 78, &["BURSAR_OPERATOR", "no brackets"]);
    assert_says(&halts(&[], &["--as", ""]), 64, &["--as"]);
}
