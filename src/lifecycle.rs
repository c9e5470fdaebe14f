//! Signals: the first SIGTERM or SIGINT asks the replica to hand over and leave, the second ends it at once. And, for a
//! replica of the demo, the end of its parent: then the kernel ends it, whatever it does and whether it is stopped.
//!
//! Deliberately absent: what stopping means. Whoever holds a token decides that; `main` ends the process when the hard one
//! is cancelled.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit code of a process that was told to end at once, as shells show SIGTERM.
pub const HARD_STOP_EXIT_CODE: i32 = 143;

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

/// The signals that stop a replica.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Takes both signals over from the system's default. Needs a runtime.
    ///
    /// # Errors
    /// The operating system's, where it refuses a handler.
    pub fn install() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The name of the next signal that came. Cancel-safe.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// Turns signals into stops, until the hard one. The caller owns the task that this runs in.
    pub async fn watch(mut self, stop: Stop) {
        while !stop.hard.is_cancelled() {
            let name = self.next().await;
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
            rustix::process::kill_process(me, rustix::process::Signal::TERM).expect("sent");
            stop.soft.cancelled().await;
            assert!(!stop.hard.is_cancelled());
            rustix::process::kill_process(me, rustix::process::Signal::INT).expect("sent");
            stop.hard.cancelled().await;
        };
        tokio::join!(watching, sending);
    }
}
