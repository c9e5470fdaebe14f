//! `bursar demo`: it tells its story, ends by itself, and leaves nothing behind, whatever happens to it.
//!
//! Each demo gets a variable of its own into its environment, which its replicas inherit: whoever has it in theirs belongs
//! to that demo, also where its parent is gone.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::support::orphans::alive;
use super::support::wait::eventually_blocking;
use super::support::{Launch, Process, scratch};

const BINARY: &str = env!("CARGO_BIN_EXE_bursar");
const MARK: &str = "DEMO_TEST_MARK";
/// A demo on a machine that has other things to do.
const ENDS_WITHIN: Duration = Duration::from_secs(100);
/// Replicas are sent SIGKILL by the kernel.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// A demo with its mark and a temporary folder of its own.
struct Marked {
    mark: String,
    temporary: std::path::PathBuf,
}

impl Marked {
    fn new(name: &str) -> Self {
        let temporary = scratch::folder(name);
        Self { mark: format!("{MARK}={}", temporary.display()), temporary }
    }

    fn launch(&self, args: &[&str]) -> Launch {
        Launch::new("demo", BINARY)
            .arg("demo")
            .args(args)
            .env(MARK, &self.temporary)
            .env("TMPDIR", &self.temporary)
            // What a user's configuration says is not the demo's.
            .env("BURSAR__DATABASE__URL", "postgres://nobody@127.0.0.1:1/nothing")
    }

    /// Who has the mark: the demo itself and its replicas.
    fn marked(&self) -> Vec<i32> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("there is a /proc").flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|variable| variable == self.mark.as_bytes()) && alive(pid) {
                found.push(pid);
            }
        }
        found
    }

    fn assert_none_is_left(&self) {
        eventually_blocking(GONE_WITHIN, "no process of the demo is left", || self.marked().is_empty().then_some(()));
    }

    fn folders(&self) -> usize {
        fs::read_dir(&self.temporary).expect("it is ours").count()
    }
}

fn wait_for(demo: &Process, words: &str) {
    eventually_blocking(ENDS_WITHIN, words, || {
        assert!(demo.is_running(), "the demo has ended:\n{}", demo.log());
        demo.log().contains(words).then_some(())
    });
}

#[test]
fn a_quick_demo_tells_its_story_ends_by_itself_and_leaves_nothing() {
    let marked = Marked::new("quick");
    let finished = marked.launch(&["--quick"]).finish_within(ENDS_WITHIN).ok();
    let story = &finished.stdout;
    for told in [
        "SIGKILL to demo-",
        "SIGSTOP to demo-",
        "SIGCONT to demo-",
        "SIGTERM to demo-",
        "REFUSED",
        "TERMS",
        "MONEY",
        "checks hold",
    ] {
        assert!(story.contains(told), "{told} is not told:\n{story}");
    }
    assert!(!story.contains('\x1b') && !story.contains('\r'), "drawn on without a terminal:\n{story:?}");
    assert_eq!(finished.stderr, "");
    marked.assert_none_is_left();
    assert_eq!(marked.folders(), 0, "the temporary folder is removed");
}

#[test]
fn a_demo_in_json_is_one_value_and_a_named_folder_is_kept() {
    let marked = Marked::new("json");
    let data = marked.temporary.join("data");
    let folder = data.display().to_string();
    let finished = marked.launch(&["--quick", "--json", "--data", &folder]).finish_within(ENDS_WITHIN).ok();
    let ending = finished.json();
    assert_eq!(ending["good"], true, "{ending}");
    let terms = ending["terms"].as_array().expect("a list");
    assert!(terms.len() >= 4, "{ending}");
    assert!(terms.iter().all(|term| term["takeover_ms"].is_i64()), "{ending}");
    assert!(ending["refusals"].as_array().is_some_and(|refusals| !refusals.is_empty()), "{ending}");
    let differs =
        |line: &&Value| line["difference"].as_str().is_none_or(|text| text.contains(|c| ('1'..='9').contains(&c)));
    assert_eq!(ending["money"].as_array().and_then(|lines| lines.iter().find(differs)), None);
    assert!(finished.stderr.contains("SIGKILL to demo-"), "the story goes to standard error:\n{}", finished.stderr);
    marked.assert_none_is_left();
    // What was kept is a deployment like any other.
    let config = data.join("bursar.toml");
    let command = |args: &[&str]| {
        Launch::new("kept", BINARY).arg("--config").arg(&config).args(args.iter().copied()).folder(&data).finish().ok()
    };
    assert_eq!(command(&["history", "--json"]).json()["terms"].as_array().map(Vec::len), Some(terms.len()));
    command(&["audit"]);
    // And it is not broken a second time.
    let again = marked.launch(&["--quick", "--data", &folder]).finish();
    assert_eq!(again.code(), Some(1), "{}", again.stderr);
    assert!(again.stderr.contains("another folder"), "{}", again.stderr);
}

#[test]
fn a_demo_that_is_killed_leaves_no_process_not_even_a_stopped_one() {
    let marked = Marked::new("killed");
    let demo = marked.launch(&["--quick"]).start();
    wait_for(&demo, "SIGSTOP to demo-");
    assert_eq!(marked.marked().len(), 4, "itself and three replicas:\n{}", demo.log());
    demo.signal(Signal::KILL);
    marked.assert_none_is_left();
}

#[test]
fn a_demo_that_a_signal_ends_takes_its_replicas_and_its_folder_with_it() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let marked = Marked::new("signalled");
        let demo = marked.launch(&["--quick"]).start();
        wait_for(&demo, "SIGKILL to demo-");
        demo.signal(signal);
        let status = demo.wait(GONE_WITHIN);
        assert_eq!(status.code(), Some(130), "{signal:?}:\n{}", demo.log());
        marked.assert_none_is_left();
        assert_eq!(marked.folders(), 0, "{signal:?}");
    }
}

#[tokio::test]
async fn a_full_demo_stays_up_with_its_status_until_it_is_ended() {
    let marked = Marked::new("full");
    let demo = marked.launch(&[]).start();
    wait_for(&demo, "Ctrl-C ends them");
    let log = demo.log();
    let page = log.lines().find_map(|line| line.strip_prefix("status of the leader: ")).expect("an address");
    let get = async |address: String| reqwest::get(address).await.expect("it answers").text().await.expect("a body");
    let shown = get(page.to_owned()).await;
    assert!(shown.contains("<span class=\"good\">leads</span>"), "{shown}");
    let status = get(format!("{page}status.json")).await;
    let status: Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(status["elections"][0]["leading"], true, "{status}");
    demo.signal(Signal::INT);
    assert_eq!(demo.wait(ENDS_WITHIN).code(), Some(0), "{}", demo.log());
    marked.assert_none_is_left();
    assert_eq!(marked.folders(), 0);
}

/// Held to alone: a newcomer waits for it.
mod timed {
    use super::*;

    #[test]
    fn a_quick_demo_takes_less_than_twenty_seconds() {
        let marked = Marked::new("timed");
        let since = bursar::clock::boottime();
        marked.launch(&["--quick"]).finish_within(ENDS_WITHIN).ok();
        let took = bursar::clock::boottime().since(since);
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}
