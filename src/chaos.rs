//! The test build's failpoints: named places in the protocol where a test pauses, stops, fails or kills the process.
//!
//! A point costs nothing in a release build: the [`point!`](crate::point) macro expands to nothing there, and this module is not compiled.
//! Points are set by the environment variable `BURSAR_CHAOS` at the start, as `name=action[@n]`, separated by `;`. The
//! action is taken at the `n`th hit only (default: every hit). A point that many operations pass may be set for one of them:
//! `store.commit.after:take_calls=error@2`. Actions:
//!
//! | action | does |
//! |---|---|
//! | `pause` | writes `DIR/NAME.hit` and waits until `DIR/NAME.go` exists (`DIR` is `BURSAR_CHAOS_DIR`) |
//! | `stop` | writes `DIR/NAME.hit`, then stops the whole process with SIGSTOP |
//! | `crash` | ends the process at once with SIGKILL |
//! | `error` | makes the operation fail |
//! | `sleep:MS` | waits |
//!
//! [`network`] says how connections to a receiver are led through another port.
//!
//! Mutants (deliberate defects) are switched on by name in `BURSAR_MUTANTS`, separated by `,`. A [`mutant!`](crate::mutant)
//! stands where the defect is; those in statements of SQL are listed in [`sql`].
//!
//! Invariant: without these variables the test build behaves as a release build does.

pub mod network;
pub mod sql;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

/// Within this time after it was sent, a signal has stopped every thread, also of a busy machine.
const STOP_TAKES_EFFECT: Duration = Duration::from_millis(300);

/// The switch of mutants.
const SWITCH: &str = "BURSAR_MUTANTS";

/// What a point does.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    Pause,
    Stop,
    Crash,
    Error,
    Sleep(Duration),
}

#[derive(Debug)]
struct Point {
    action: Action,
    at: Option<u64>,
    hits: AtomicU64,
}

/// The error of a point set to `error`.
#[derive(Debug, thiserror::Error)]
#[error("failpoint {0}")]
pub struct Failed(pub &'static str);

fn parse(text: &str) -> HashMap<String, Point> {
    let mut points = HashMap::new();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, rest) = part.split_once('=').unwrap_or_else(|| panic!("BURSAR_CHAOS: no '=' in {part:?}"));
        let (action, at) = match rest.split_once('@') {
            Some((action, at)) => (action, Some(at.parse().unwrap_or_else(|_| panic!("BURSAR_CHAOS: {part:?}")))),
            None => (rest, None),
        };
        let action = match action.split_once(':') {
            None if action == "pause" => Action::Pause,
            None if action == "stop" => Action::Stop,
            None if action == "crash" => Action::Crash,
            None if action == "error" => Action::Error,
            Some(("sleep", ms)) => {
                Action::Sleep(Duration::from_millis(ms.parse().unwrap_or_else(|_| panic!("BURSAR_CHAOS: {part:?}"))))
            }
            None | Some(_) => panic!("BURSAR_CHAOS: unknown action in {part:?}"),
        };
        points.insert(name.to_owned(), Point { action, at, hits: AtomicU64::new(0) });
    }
    points
}

fn points() -> &'static HashMap<String, Point> {
    static POINTS: OnceLock<HashMap<String, Point>> = OnceLock::new();
    POINTS.get_or_init(|| parse(&std::env::var("BURSAR_CHAOS").unwrap_or_default()))
}

fn marker(name: &str, suffix: &str) -> PathBuf {
    let dir = std::env::var_os("BURSAR_CHAOS_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    dir.join(format!("{name}.{suffix}"))
}

fn mutants() -> &'static [String] {
    static MUTANTS: OnceLock<Vec<String>> = OnceLock::new();
    MUTANTS.get_or_init(|| {
        let names = std::env::var(SWITCH).unwrap_or_default();
        names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
    })
}

/// Whether a mutant is switched on.
#[must_use]
pub fn mutant(name: &str) -> bool {
    mutants().iter().any(|on| on == name)
}

/// The variable that switches on, in another process of this build, the mutants of this one.
#[must_use]
pub fn mutants_handed_on() -> Option<(&'static str, String)> {
    (!mutants().is_empty()).then(|| (SWITCH, mutants().join(",")))
}

/// Says in the log what is switched on, so that nobody takes such a process for a sound one.
pub fn announce() {
    for (name, point) in points() {
        tracing::warn!(point = name, action = ?point.action, at = point.at, "a failpoint is set");
    }
    for mutant in mutants() {
        tracing::warn!(mutant, "a mutant is switched on");
    }
}

/// Passes a point.
///
/// # Errors
/// [`Failed`] where it is set to `error`.
pub async fn pass(name: &'static str) -> Result<(), Failed> {
    match points().get(name) {
        Some(point) => act(name, name, point).await,
        None => Ok(()),
    }
}

/// Passes a point that many pass, and the one that is set for this part of them alone.
///
/// # Errors
/// [`Failed`] where either is set to `error`.
pub async fn pass_in(name: &'static str, part: &str) -> Result<(), Failed> {
    pass(name).await?;
    match points().get_key_value(format!("{name}:{part}").as_str()) {
        Some((set, point)) => act(name, set, point).await,
        None => Ok(()),
    }
}

async fn act(name: &'static str, set: &str, point: &Point) -> Result<(), Failed> {
    let hit = point.hits.fetch_add(1, Ordering::Relaxed) + 1;
    if point.at.is_some_and(|at| at != hit) {
        return Ok(());
    }
    tracing::warn!(point = set, hit, action = ?point.action, "failpoint");
    match &point.action {
        Action::Error => return Err(Failed(name)),
        Action::Sleep(time) => tokio::time::sleep(*time).await,
        Action::Crash => {
            let _ = kill_process(getpid(), Signal::KILL);
        }
        Action::Stop => {
            let _ = std::fs::write(marker(set, "hit"), hit.to_string());
            let _ = kill_process(getpid(), Signal::STOP);
            // The signal is for the process, and another thread may be the one that takes it: this one holds still until then.
            std::thread::sleep(STOP_TAKES_EFFECT);
        }
        Action::Pause => {
            let _ = std::fs::write(marker(set, "hit"), hit.to_string());
            while !marker(set, "go").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/it/mutants/unit.rs"]
mod mutants_fall;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_read_from_text() {
        let points = parse("a=pause; b=crash@3;c=sleep:20");
        assert_eq!(points["a"].action, Action::Pause);
        assert_eq!((points["b"].action.clone(), points["b"].at), (Action::Crash, Some(3)));
        assert_eq!(points["c"].action, Action::Sleep(Duration::from_millis(20)));
    }
}
