//! Signals: the first SIGTERM, SIGINT or SIGHUP asks the replica to hand over and leave, a second SIGTERM or SIGINT ends it at
//! once. A SIGHUP never does: a terminal that closes sends it to whoever is leaving already. And, for a replica of the demo, the end of its parent: then the kernel ends it, whatever it does and whether it is stopped.
//! And process 1 of a container, which a replica cannot be itself: see [`stand_before`].
//!
//! Deliberately absent: what stopping means. Whoever holds a token decides that; `main` ends the process when the hard one
//! is cancelled.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Pid, Signal as SystemSignal, WaitOptions, WaitStatus, getpid, kill_process, wait};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit code of a process that was told to end at once, as shells show SIGTERM.
pub const HARD_STOP_EXIT_CODE: i32 = 143;

/// The signal of a terminal that closes.
const HANG_UP: &str = "SIGHUP";

/// From now on the kernel sends this process SIGKILL when the thread that started it has ended. `parent` is who that must
/// be: another parent means that the starter was gone before this was in force.
///
/// # Errors
/// The system refuses, or the parent is another.
pub fn die_with(parent: i32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let found = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if found == parent {
        Ok(())
    } else {
        Err(io::Error::other(format!("process {parent} has ended; the parent is {found} by now")))
    }
}

/// Whether this is process 1: the first of a container.
#[must_use]
pub fn is_first() -> bool {
    getpid() == Pid::INIT
}

/// Process 1: starts the same program with the same arguments as a child, hands the signals that stop on, and answers with the
/// exit code of the child (128 and the signal's number where one ended it).
///
/// Whatever loses its parent in a container becomes a child of process 1, and stays as a zombie until that asks for its
/// end. A replica cannot: it would take the ends of processes away from those who wait for them. So one stands before it
/// that waits for all and for nothing else.
///
/// # Errors
/// The operating system's, where it refuses a handler or the child.
pub async fn stand_before(arguments: impl Iterator<Item = OsString>) -> io::Result<i32> {
    let mut signals = StopSignals::install()?;
    let mut ends = signal(SignalKind::child())?;
    let mut child = replica(arguments).spawn()?;
    let pid = Pid::from_child(&child);
    loop {
        let handed_on = tokio::select! {
            _ = signals.terminate.recv() => Some(SystemSignal::TERM),
            _ = signals.interrupt.recv() => Some(SystemSignal::INT),
            () = hung_up(&mut signals.hang_up) => Some(SystemSignal::HUP),
            _ = ends.recv() => None,
        };
        if let Some(signal) = handed_on {
            // Nobody but this loop asks for the child's end, so the number is still its own.
            let _gone = kill_process(pid, signal);
        }
        while let Ok(Some((ended, status))) = wait(WaitOptions::NOHANG) {
            if ended == pid {
                // Nothing is left to be waited for; it only tells the library so.
                let _gone = child.wait();
                return Ok(exit_code(status));
            }
        }
    }
}

/// The child. In a process group of its own: a terminal sends its signals to all of the group before it, and the replica would
/// take one Ctrl-C, from the terminal and handed on, for two. It reads nothing from a terminal, so it can do without it.
fn replica(arguments: impl Iterator<Item = OsString>) -> Command {
    let mut child = Command::new("/proc/self/exe");
    child.arg0("bursar").args(arguments).process_group(0);
    child
}

fn exit_code(status: WaitStatus) -> i32 {
    let by_signal = || status.terminating_signal().map(|signal| 128 + signal);
    status.exit_status().or_else(by_signal).unwrap_or(HARD_STOP_EXIT_CODE)
}

/// The two degrees of stopping. Clones are the same two tokens.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// Hand over, drain, leave.
    pub soft: CancellationToken,
    /// End at once. Cancelled only after `soft`.
    pub hard: CancellationToken,
}

impl Stop {
    /// Nothing is asked yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for the next degree: soft first, then hard.
    pub fn escalate(&self) {
        if self.soft.is_cancelled() {
            self.hard.cancel();
        } else {
            self.soft.cancel();
        }
    }
}

/// Whether whoever started this process has it ignore SIGHUP. Where the system does not say, it does not.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored(&status).is_some_and(|mask| mask & 1 != 0)
}

/// The mask of ignored signals of a process's status: bit n-1 is signal n.
fn ignored(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// Waits for the signal, for ever where it is not taken. Cancel-safe.
async fn hung_up(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// The signals that stop a replica.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    /// Not where the process was started without it, as `nohup` does.
    hang_up: Option<Signal>,
}

impl StopSignals {
    /// Takes the signals over from the system's default. Needs a runtime.
    ///
    /// # Errors
    /// The operating system's, where it refuses a handler.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: if ignores_hang_up() { None } else { Some(signal(SignalKind::hangup())?) },
        })
    }

    /// The name of the next signal that came. Cancel-safe.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            () = hung_up(&mut self.hang_up) => HANG_UP,
        }
    }

    /// Turns signals into stops, until the hard one. The caller owns the task that this runs in.
    pub async fn watch(mut self, stop: Stop) {
        while !stop.hard.is_cancelled() {
            let name = self.next().await;
            if stop.soft.is_cancelled() && name == HANG_UP {
                continue;
            }
            if stop.soft.is_cancelled() {
                tracing::warn!(signal = name, "ends at once");
            } else {
                tracing::info!(signal = name, "hands over and leaves; a second signal ends it at once");
            }
            stop.escalate();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_by_a_signal_has_the_code_that_shells_show() {
        for (script, code) in [("exit 0", 0), ("exit 78", 78), ("kill -9 $$", 137), ("kill -15 $$", 143)] {
            let mut child = Command::new("sh").args(["-c", script]).spawn().expect("there is a shell");
            // Only this child: others of the test process are not to be taken from whoever waits for them.
            let pid = Pid::from_child(&child);
            let ended = rustix::process::waitpid(Some(pid), WaitOptions::empty()).expect("it is ours");
            let (_, status) = ended.expect("it was waited for");
            assert!(child.wait().is_err(), "nothing is left to be waited for");
            assert_eq!(exit_code(status), code, "{script}");
        }
    }

    #[test]
    fn the_replica_below_process_1_takes_no_signals_from_its_terminal() {
        // This test binary, below itself: it lists its tests, which takes no time.
        let mut child =
            replica(["--list".into()].into_iter()).stdout(std::process::Stdio::null()).spawn().expect("started");
        let pid = Pid::from_child(&child);
        assert_eq!(rustix::process::getpgid(Some(pid)).expect("it is not waited for yet"), pid);
        assert_ne!(rustix::process::getpgid(None).expect("one's own"), pid);
        child.wait().expect("it ends");
    }

    #[test]
    fn a_process_that_is_to_outlive_its_terminal_is_told_from_others() {
        assert_eq!(ignored("Name:\tbursar\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"), Some(0x1001));
        assert_eq!(ignored("Name:\tbursar\n"), None);
        let of = |trap: &str| {
            let script = format!("{trap} grep SigIgn /proc/self/status");
            let out = Command::new("sh").args(["-c", &script]).output().expect("there is a shell");
            ignored(&String::from_utf8_lossy(&out.stdout)).expect("Linux says it") & 1
        };
        assert_eq!((of(""), of("trap '' HUP;")), (0, 1));
    }

    #[test]
    fn the_first_stop_is_soft_and_the_second_hard() {
        let stop = Stop::new();
        stop.escalate();
        assert!(stop.soft.is_cancelled() && !stop.hard.is_cancelled());
        stop.escalate();
        assert!(stop.hard.is_cancelled());
    }

    #[tokio::test]
    async fn signals_of_the_system_stop_in_two_degrees() {
        let signals = StopSignals::install().expect("handlers");
        let stop = Stop::new();
        let watching = signals.watch(stop.clone());
        let me = rustix::process::getpid();
        let sending = async {
            rustix::process::kill_process(me, rustix::process::Signal::HUP).expect("sent");
            stop.soft.cancelled().await;
            rustix::process::kill_process(me, rustix::process::Signal::HUP).expect("sent");
            assert!(!stop.hard.is_cancelled());
            rustix::process::kill_process(me, rustix::process::Signal::INT).expect("sent");
            stop.hard.cancelled().await;
        };
        tokio::join!(watching, sending);
    }
}
