//! Kills everything that descends from this process, whatever session or group it put itself into.
//!
//! This process is the subreaper of its descendants: what loses its parent becomes its child, so nothing gets away, and the
//! tree is gone when there is no child left. First all are stopped, over and over until no new one is found: what is stopped
//! starts no others. Then all are killed. A process is signalled through a pidfd that was opened while it still was the one
//! that was found, so that a number that is used again is never hit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How often the tree is looked at for processes that were started meanwhile, before it is killed as it is.
const MOST_SWEEPS: u32 = 64;

/// One process: its number, and when it was started, which tells it from another of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    pid: i32,
    started: u64,
}

/// Stops, then kills what descends from `root`. To be repeated until nothing is left.
pub(super) fn kill_descendants(root: Pid) {
    let mut stopped = BTreeSet::new();
    for _ in 0..MOST_SWEEPS {
        let found: Vec<Process> =
            descendants(root.as_raw_nonzero().get()).into_iter().filter(|process| !stopped.contains(process)).collect();
        if found.is_empty() {
            break;
        }
        for process in found {
            signal(process, Signal::STOP);
            stopped.insert(process);
        }
    }
    for process in stopped {
        signal(process, Signal::KILL);
    }
}

fn signal(process: Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    // What is gone needs no signal; what may not be signalled is found again, and said by the supervisor.
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if stat(process.pid).is_some_and(|(_, started)| started == process.started) {
        let _ = pidfd_send_signal(&pidfd, signal);
    }
}

/// All descendants of a process, by the parents that `/proc` shows.
fn descendants(root: i32) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some((parent, started)) = stat(pid) {
            children.entry(parent).or_default().push(Process { pid, started });
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        // Taken out, so that no circle of numbers used again can go on for ever.
        for child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.pid);
            found.push(child);
        }
    }
    found
}

fn stat(pid: i32) -> Option<(i32, u64)> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parent and start time. The name before them may hold anything, also blanks and brackets.
fn parse(stat: &str) -> Option<(i32, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    // From the state on, which is field 3: the parent is field 4, the start time field 22.
    let parent = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some((parent, started))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let rest = "S 41 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 0 0";
        for name in ["sh", "a b", ") S 9 (", "()"] {
            assert_eq!(parse(&format!("42 ({name}) {rest}")), Some((41, 987_654)), "{name}");
        }
        for broken in ["", "42 (sh", "42 (sh) S", "42 (sh) S x"] {
            assert_eq!(parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_child_of_ours_is_found() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("started");
        let own = i32::try_from(std::process::id()).expect("a number");
        let pid = i32::try_from(child.id()).expect("a number");
        assert!(descendants(own).iter().any(|process| process.pid == pid));
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert!(!descendants(own).iter().any(|process| process.pid == pid));
    }
}
