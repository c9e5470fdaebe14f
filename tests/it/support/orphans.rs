//! Shows that nothing outlives the test process: one is started, starts children of the worst kinds, and is killed.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;

use super::process::Launch;
use super::scratch;
use super::wait::eventually_blocking;

/// Whether a process is there and more than a zombie.
pub fn alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Not a test of its own: the process that the next test kills.
#[test]
#[ignore = "the victim of what_a_killed_test_process_started_is_gone, which starts it"]
fn victim() {
    let Some(report) = std::env::var_os("BURSAR_TEST_VICTIM") else { return };
    let plain = Launch::new("orphan", "sleep").arg("601").start();
    let stopped = Launch::new("orphan-stopped", "sleep").arg("602").start();
    stopped.stop();
    // Leaves its parent's group and loses its death signal: only the janitor can find this one.
    let escaped = Launch::new("escaped", "sh").args(["-c", "setsid sleep 603 & echo $!; wait"]).start();
    let child =
        eventually_blocking(Duration::from_secs(5), "the child is there", || escaped.log().trim().parse::<i32>().ok());
    let text = format!("{} {} {} {}", scratch::root().display(), plain.pid(), stopped.pid(), child);
    fs::write(&report, text).expect("the report can be written");
    loop {
        std::thread::park();
    }
}

#[test]
fn what_a_killed_test_process_started_is_gone() {
    let report = scratch::folder("report").join("pids");
    let ours = std::env::current_exe().expect("a test binary has a path");
    let victim = Launch::new("victim", ours)
        .args(["--exact", "support::orphans::victim", "--ignored", "--nocapture"])
        .env("BURSAR_TEST_VICTIM", &report)
        .env("BURSAR_TEST_KEEP", "")
        .start();
    let text = eventually_blocking(Duration::from_secs(20), "the victim has started its own", || {
        let text = fs::read_to_string(&report).ok()?;
        (text.split(' ').count() == 4).then_some(text)
    });
    let mut words = text.split(' ');
    let root = PathBuf::from(words.next().expect("four words"));
    let pids: Vec<i32> = words.map(|word| word.parse().expect("a number")).collect();
    assert!(pids.iter().all(|pid| alive(*pid)) && root.is_dir());
    victim.signal(Signal::KILL);
    eventually_blocking(Duration::from_secs(10), "no process and no folder is left", || {
        (!pids.iter().any(|pid| alive(*pid)) && !root.exists()).then_some(())
    });
}
