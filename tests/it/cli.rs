//! The commands, as an operator runs them: exit codes, JSON, and what they change.

use std::time::Duration;

use serde_json::Value;

use super::support::cluster::ELECTION;
use super::support::process::Launch;
use super::support::replica::BINARY;
use super::support::{Cluster, Entries, Finished, Setup, eventually, scratch};

const STARTED: Duration = Duration::from_secs(30);
/// A job that never fires while a test runs.
const NEVER: &str = "[[job]]\nname = \"by-hand\"\ncron = \"0 0 29 2 *\"\nhandler = \"ledger\"\n";

async fn led() -> Cluster {
    let cluster = Setup::new(1, NEVER).start().await;
    cluster.wait_leader(STARTED).await;
    // Leading begins with the store's acceptance, a moment before the schedule is in the store.
    eventually(STARTED, "the job is in the store", async || {
        let status = cluster.command(&["status", "--json"]).ok().json();
        (status["jobs"].as_array()?.len() == 1).then_some(())
    })
    .await;
    cluster
}

fn import(cluster: &Cluster, file: &std::path::Path, more: &[&str]) -> Finished {
    let file = file.to_string_lossy();
    let mut args = vec!["import", &*file, "--source", "adyen"];
    args.extend_from_slice(more);
    cluster.command(&args)
}

#[test]
fn wrong_usage_is_64_and_help_is_0() {
    let code = |args: &[&str]| Launch::new("usage", BINARY).args(args).finish().code();
    assert_eq!(code(&["frobnicate"]), Some(64));
    assert_eq!(code(&["halt"]), Some(64), "a reason is required");
    assert_eq!(code(&["runs", "list", "--limit", "0"]), Some(64));
    assert_eq!(code(&["units", "retry", "1"]), Some(64), "keys or --all");
    assert_eq!(code(&["units", "retry", "1", "EUR:a", "--all"]), Some(64));
    assert_eq!(code(&["--help"]), Some(0));
    assert_eq!(code(&["trigger", "--help"]), Some(0));
}

#[tokio::test]
async fn unknown_keys_are_all_named_with_the_nearest_known_one_and_the_start_fails_with_78() {
    let schedule = format!("{NEVER}[job.ledger]\nsuorces = [\"adyen\"]\n");
    let cluster =
        Setup::new(1, &schedule).key("coordinator", "lease_tll", "\"5s\"").key("", "shedule", "\"x\"").prepare().await;
    for command in ["run", "check"] {
        let finished = cluster.command(&[command]);
        assert_eq!(finished.code(), Some(78), "{command}: {}", finished.stderr);
        for (found, nearest) in [("lease_tll", "lease_ttl"), ("shedule", "schedule"), ("suorces", "sources")] {
            let line = finished.stderr.lines().find(|line| line.contains(found));
            let line = line.unwrap_or_else(|| panic!("{command} does not name {found}:\n{}", finished.stderr));
            assert!(line.contains(&format!("`{nearest}`")), "{line}");
            assert!(line.contains(".toml:"), "{line}");
        }
    }
}

#[tokio::test]
async fn a_broken_schedule_keeps_a_replica_from_starting() {
    let cluster = Setup::new(1, "[[job]]\nname = \"a\"\ncron = \"0 0 30 2 *\"\nhandler = \"ledger\"\n").prepare().await;
    let finished = cluster.command(&["run"]);
    assert_eq!(finished.code(), Some(78));
    assert!(finished.stderr.contains("cron"), "{}", finished.stderr);
}

#[tokio::test]
async fn check_shows_coming_ticks_rules_and_warnings() {
    let schedule =
        "[[job]]\nname = \"odd\"\ncron = \"30 1 31 * FRI\"\ntimezone = \"Europe/London\"\nhandler = \"ledger\"\n";
    let cluster = Setup::new(1, schedule).prepare().await;
    let checked = cluster.command(&["check", "--json", "--after", "2027-01-01T00:00:00Z", "--ticks", "2"]).ok().json();
    let job = &checked["jobs"][0];
    assert_eq!(job["next"].as_array().map(Vec::len), Some(2));
    assert_eq!(job["next"][0]["tick"], "2027-01-01T01:30:00Z");
    assert!(job["day_rule"].as_str().is_some_and(|rule| rule.contains("either")), "{job}");
    assert!(job["dst"].as_str().is_some_and(|rule| rule.contains("shifted")), "{job}");
    assert!(checked["warnings"].to_string().contains("31"), "{checked}");
    assert!(checked["coordinator"]["slowest_round_trip_ms"].is_u64(), "{checked}");
    let text = cluster.command(&["check", "--offline"]).ok().stdout;
    assert!(text.contains("odd (ledger, election settlement)") && text.contains("warning:"), "{text}");
}

#[tokio::test]
async fn a_store_that_is_away_is_75_and_one_without_a_schema_is_78() {
    let cluster = Setup::new(1, NEVER).behind_proxies().prepare().await;
    cluster.replica(0).database_line().refuse();
    for command in [&["status"][..], &["audit"], &["halt", "--reason", "x"]] {
        let finished = cluster.command(command);
        assert_eq!(finished.code(), Some(75), "{command:?}: {}", finished.stderr);
        assert!(!finished.stderr.is_empty());
    }
    let empty = super::support::Postgres::shared().fresh_database().await;
    let cluster = Setup::new(1, NEVER).on_database(empty).prepare().await;
    let finished = cluster.command(&["status"]);
    assert_eq!(finished.code(), Some(78), "{}", finished.stderr);
    assert!(finished.stderr.contains("bursar migrate"), "{}", finished.stderr);
    let migrated = cluster.command(&["migrate", "--json"]).ok().json();
    assert_eq!(migrated["found"], 0);
    let again = cluster.command(&["migrate", "--json"]).ok().json();
    assert_eq!(again["found"], migrated["now"]);
    cluster.command(&["status"]).ok();
    cluster.command(&["audit"]).ok();
}

#[tokio::test]
async fn a_store_of_another_coordinator_is_refused() {
    let cluster = led().await;
    cluster.replica(0).set("coordinator", "prefix", "\"/bursar/another\"");
    cluster.replica(0).set("http", "listen", "\"127.0.0.1:0\"");
    let finished = cluster.command(&["run"]);
    assert_eq!(finished.code(), Some(78), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("/bursar/another") && finished.stderr.contains(cluster.prefix()),
        "{}",
        finished.stderr
    );
}

#[tokio::test]
async fn an_import_is_all_or_nothing_and_nothing_the_second_time() {
    let cluster = Setup::new(1, NEVER).prepare().await;
    let file = Entries::new().capture("a", "EUR", "10.00").capture("b", "JPY", "1000").write("good.csv");
    let dry = import(&cluster, &file, &["--dry-run", "--json"]).ok().json();
    assert_eq!((&dry["entries"], &dry["currencies"]["JPY"]["amount"]), (&Value::from(2), &Value::from("1000")));
    let none = cluster.command(&["imports", "list", "--json"]).ok().json();
    assert_eq!(none.as_array().map(Vec::len), Some(0), "a dry run changes nothing");
    let first = import(&cluster, &file, &["--json"]).ok().json();
    assert_eq!(first["outcome"], "imported");
    assert_eq!(first["import"]["sums"]["EUR"], "10.00", "money is text");
    let second = import(&cluster, &file, &["--json"]).ok().json();
    assert_eq!((&second["outcome"], &second["same_file"]), (&Value::from("nothing_new"), &first["import"]["id"]));
    let changed = Entries::new().capture("a", "EUR", "11.00").write("changed.csv");
    let conflict = import(&cluster, &changed, &[]);
    assert_eq!(conflict.code(), Some(1));
    assert!(conflict.stdout.contains("10.00") && conflict.stdout.contains("11.00"), "{}", conflict.stdout);
    let wrong = Entries::new().capture("a", "JPY", "10.5").refund("b", "EUR", "1.00").write("wrong.csv");
    let refused = import(&cluster, &wrong, &[]);
    assert_eq!(refused.code(), Some(1));
    assert!(refused.stderr.contains("wrong.csv:2") && refused.stderr.contains("wrong.csv:3"), "{}", refused.stderr);
    assert_eq!(import(&cluster, std::path::Path::new("absent.csv"), &[]).code(), Some(1));
    let id = first["import"]["id"].to_string();
    let reverted = cluster.command(&["imports", "revert", &id, "--reason", "wrong day", "--json"]).ok().json();
    assert_eq!((&reverted["outcome"], &reverted["withdrawn"]), (&Value::from("reverted"), &Value::from(2)));
    let shown = cluster.command(&["imports", "show", &id, "--json"]).ok().json();
    assert_eq!((&shown["withdrawn"], &shown["record"]["revert_reason"]), (&Value::from(2), &Value::from("wrong day")));
    assert_eq!(cluster.command(&["imports", "show", "4711"]).code(), Some(1));
    assert_eq!(cluster.command(&["imports", "revert", "4711", "--reason", "x"]).code(), Some(1));
}

#[tokio::test]
async fn a_triggered_run_is_executed_by_the_leader_and_shown() {
    let cluster = led().await;
    let file = Entries::new().capture("a", "EUR", "10.00").fee("0.50").capture("b", "JPY", "1050").write("entries.csv");
    import(&cluster, &file, &[]).ok();
    let triggered = cluster.command(&["trigger", "by-hand", "--reason", "late file", "--json"]).ok().json();
    let run = triggered["summary"]["id"].to_string();
    assert_eq!(triggered["summary"]["kind"], "manual");
    let ended = eventually(STARTED, "the run has ended", async || {
        let run = cluster.command(&["runs", "show", &run, "--json"]).ok().json();
        (run["summary"]["state"] == "complete").then_some(run)
    })
    .await;
    assert_eq!((&ended["paid_out"]["EUR"], &ended["paid_out"]["JPY"]), (&Value::from("9.50"), &Value::from("1050")));
    let unit = cluster.command(&["units", "show", &run, "EUR:a", "--json"]).ok().json();
    assert_eq!((&unit["net"], &unit["state"]), (&Value::from("9.50"), &Value::from("settled")));
    assert_eq!(unit["instructions"][0]["amount"], "9.50");
    let listed = cluster.command(&["units", "list", "--run", &run, "--state", "settled", "--json"]).ok().json();
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    assert!(cluster.command(&["runs", "list"]).ok().stdout.contains("by-hand"));
    let unknown = cluster.command(&["trigger", "no-such-job"]);
    assert_eq!(unknown.code(), Some(1), "{}", unknown.stderr);
    assert_eq!(cluster.command(&["runs", "show", "4711"]).code(), Some(1));
    assert_eq!(cluster.command(&["units", "show", &run, "EUR:nobody"]).code(), Some(1));
    let none = cluster.command(&["units", "retry", &run, "--all", "--reason", "again"]);
    assert!(matches!(none.code(), Some(0 | 1)), "{}", none.stderr);
    cluster.assert_audited();
}

#[tokio::test]
async fn a_request_that_no_leader_takes_is_withdrawn_and_one_that_is_left_is_seen_and_executed_once() {
    let cluster = led().await;
    cluster.replica(0).term();
    cluster.replica(0).wait_end(STARTED);
    let waiting = || cluster.command(&["requests", "list", "--json"]).ok().json();
    let finished = cluster.command(&["trigger", "by-hand", "--wait", "1s"]);
    assert_eq!(finished.code(), Some(75), "{}", finished.stderr);
    assert!(finished.stderr.contains("withdrawn, nothing will happen"), "{}", finished.stderr);
    assert_eq!(waiting(), Value::from(Vec::<Value>::new()), "nothing waits");
    let leave = |why| {
        let args = ["trigger", "by-hand", "--wait", "0s", "--leave", "--reason", why, "--json"];
        cluster.command(&args).ok().json()["request"].as_str().expect("an id").to_owned()
    };
    let (wrong, right) = (leave("wrong"), leave("right"));
    let status = cluster.command(&["status", "--json"]).ok().json();
    let ids = [0, 1].map(|n| status["requests"][n]["id"].as_str().map(str::to_owned));
    assert_eq!(ids, [Some(wrong.clone()), Some(right.clone())]);
    let text = cluster.command(&["status"]).ok().stdout;
    assert!(
        text.contains("REQUESTS THAT WAIT") && text.contains(&wrong) && text.contains("trigger job by-hand"),
        "{text}"
    );
    cluster.command(&["requests", "withdraw", &wrong, "--reason", "asked for twice"]).ok();
    let again = cluster.command(&["requests", "withdraw", &wrong, "--reason", "again"]);
    assert_eq!(again.code(), Some(1), "{}", again.stderr);
    assert!(again.stderr.contains("withdrawn by") && again.stderr.contains("nothing was changed"), "{}", again.stderr);
    cluster.replica(0).start();
    let runs = eventually(STARTED, "the next leader executes it", async || {
        let runs = cluster.command(&["runs", "list", "--json"]).ok().json();
        (waiting().as_array()?.is_empty() && !runs.as_array()?.is_empty()).then_some(runs)
    })
    .await;
    assert_eq!(runs.as_array().map(Vec::len), Some(1), "only the one that was left: {runs}");
    let late = cluster.command(&["requests", "withdraw", &right, "--reason", "late"]);
    assert_eq!(late.code(), Some(1), "{}", late.stderr);
    assert!(late.stderr.contains("was executed: run "), "{}", late.stderr);
    let acts = cluster.command(&["history", "--json"]).ok().json()["acts"].to_string();
    assert!(acts.contains("requests withdraw") && acts.contains("no leader took it in time"), "{acts}");
}

#[tokio::test]
async fn a_halt_is_shown_everywhere_and_taken_back() {
    let cluster = led().await;
    let halted = cluster.command(&["halt", "--reason", "wrong fees", "--election", ELECTION, "--json"]).ok().json();
    assert_eq!((&halted[0]["election"], &halted[0]["already"]), (&Value::from(ELECTION), &Value::from(false)));
    let again = cluster.command(&["halt", "--reason", "twice", "--json"]).ok().json();
    assert_eq!(again[0]["already"], true);
    let status = cluster.command(&["status", "--json"]).ok().json();
    assert_eq!(status["elections"][0]["fence"]["halt"]["reason"], "wrong fees");
    let text = cluster.command(&["status"]).ok().stdout;
    assert!(text.contains("HALTED") && text.contains("wrong fees"), "{text}");
    let replica = cluster.replica(0);
    let gauge = async || replica.metric("bursar_halted", &[("election", ELECTION)]).await;
    eventually(STARTED, "the gauge says so", async || (gauge().await? > 0.0).then_some(())).await;
    assert!(replica.leads(ELECTION).await, "the leader stays");
    assert_eq!(cluster.command(&["trigger", "by-hand", "--wait", "1s"]).code(), Some(75), "nothing is opened");
    cluster.command(&["trigger", "by-hand", "--wait", "0s", "--leave"]).ok();
    let resumed = cluster.command(&["resume", "--reason", "corrected", "--json"]).ok().json();
    assert_eq!((&resumed[0]["already"], &resumed[0]["requests_waiting"]), (&Value::from(false), &Value::from(1)));
    eventually(STARTED, "the gauge says so", async || (gauge().await? < 1.0).then_some(())).await;
    let history = cluster.command(&["history", "--json"]).ok().json();
    let acts = history["acts"].to_string();
    assert!(acts.contains("wrong fees") && acts.contains("corrected"), "{acts}");
    assert_eq!(history["terms"][0]["replica"], replica.id());
    assert!(cluster.command(&["history"]).ok().stdout.contains("OPERATORS' ACTS"));
}

#[test]
fn a_halt_of_an_election_that_nothing_knows_is_refused_and_names_those_there_are() {
    let folder = scratch::folder("mistyped");
    let command = |args: &[&str]| Launch::new("mistyped", BINARY).args(args).folder(&folder).finish();
    std::fs::write(folder.join("schedule.toml"), NEVER).expect("the folder is ours");
    command(&["migrate"]).ok();
    let refused = command(&["halt", "--reason", "wrong fees", "--election", "setlement"]);
    assert_eq!(refused.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("know settlement. Nothing was halted"), "{}", refused.stderr);
    // Known to the schedule only, then to the store only; and with no schedule to ask, the switch works for any name.
    command(&["halt", "--reason", "wrong fees", "--election", ELECTION]).ok();
    std::fs::write(folder.join("schedule.toml"), NEVER.replace("handler", "election = \"other\"\nhandler"))
        .expect("ours");
    command(&["halt", "--reason", "wrong fees", "--election", ELECTION]).ok();
    std::fs::remove_file(folder.join("schedule.toml")).expect("it was written");
    command(&["halt", "--reason", "wrong fees", "--election", "setlement"]).ok();
}

#[test]
fn check_makes_no_file_and_says_that_there_are_no_jobs() {
    let folder = scratch::folder("checked");
    let checked = Launch::new("checked", BINARY).arg("check").folder(&folder).finish().ok();
    assert!(checked.stdout.contains("bursar.db.lease is not there yet"), "{}", checked.stdout);
    assert!(checked.stdout.contains("there are no jobs: schedule.toml"), "{}", checked.stdout);
    assert_eq!(std::fs::read_dir(&folder).expect("it is there").count(), 0, "nothing is changed anywhere");
}

#[test]
fn a_time_that_is_none_is_answered_with_what_is_expected() {
    for args in [["check", "--after", "tomorrow"], ["trigger", "job", "--tick=tomorrow"]] {
        let refused = Launch::new("times", BINARY).args(args).finish();
        assert_eq!(refused.code(), Some(64));
        assert!(refused.stderr.contains("such as 2027-01-31T17:05:00Z"), "{}", refused.stderr);
    }
}

#[tokio::test]
async fn status_says_who_leads_who_is_there_and_what_is_next() {
    let cluster = Setup::new(2, NEVER).behind_proxies().start().await;
    let leader = cluster.wait_leader(STARTED).await;
    cluster.replica(1 - leader).wait_ready(STARTED).await;
    let status = eventually(STARTED, "both are registered and the job is there", async || {
        let status = cluster.command(&["status", "--json"]).ok().json();
        let both = status["coordinator"]["replicas"].as_array()?.len() == 2;
        (both && !status["jobs"].as_array()?.is_empty()).then_some(status)
    })
    .await;
    let id = cluster.replica(leader).id();
    assert_eq!(status["coordinator"]["leaders"][0]["leader_id"], id);
    assert_eq!(status["elections"][0]["leader"], id);
    assert_eq!(status["jobs"][0]["next_tick"], "2028-02-29T00:00:00Z");
    let text = cluster.command(&["status"]).ok().stdout;
    assert!(text.contains(id) && text.contains("by-hand"), "{text}");
    // Without the coordinator the rest is shown all the same, and it is said.
    cluster.replica(0).cut_from_etcd();
    let text = cluster.command(&["status"]).ok().stdout;
    assert!(text.contains("the coordinator is away") && text.contains("accepted last"), "{text}");
}

#[test]
fn without_any_configuration_everything_missing_is_named() {
    let folder = scratch::folder("nothing");
    let finished = Launch::new("nothing", BINARY).arg("status").folder(&folder).finish();
    assert_eq!(finished.code(), Some(78));
    assert!(finished.stderr.contains("database"), "{}", finished.stderr);
}
