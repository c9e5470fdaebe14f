//! What is done to one replica.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bursar::clock::boottime;
use rustix::process::{Pid, Signal, kill_process};

use super::super::nemesis::Nemesis;
use super::{Act, Mend, Mended};
use crate::support::Proxy;
use crate::support::proxy::Flow;

/// A period of a throttled replica.
const PERIOD: Duration = Duration::from_millis(100);
/// How long a replica that was asked to end may take, on a busy machine: its drain, its teardown, and what is slow.
const LEFT_WITHIN: Duration = Duration::from_secs(25);

/// A replica that gets the processor for a part of each period only: what a small quota does.
#[derive(Debug)]
pub struct Throttle {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Throttle {
    fn begin(pid: i32, runs: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let throttle = move || {
            let Some(pid) = Pid::from_raw(pid) else { return };
            // It is gone where a signal cannot be sent; its end is not waited for meanwhile, so the id is still its own.
            while !stopped.load(Ordering::SeqCst) && kill_process(pid, Signal::STOP).is_ok() {
                std::thread::sleep(PERIOD.saturating_sub(runs));
                kill_process(pid, Signal::CONT).ok();
                std::thread::sleep(runs);
            }
        };
        let thread =
            std::thread::Builder::new().name("throttle".into()).spawn(throttle).expect("a thread can be started");
        Self { stop, thread: Some(thread) }
    }

    /// Lets it run as it likes.
    pub fn end(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        self.end();
    }
}

/// Which ways a line is cut.
pub(super) fn cut(rng: &mut fastrand::Rng, lines: &[Proxy]) -> &'static str {
    let (way, requests, answers) = match rng.u32(0..3) {
        0 => ("both ways", Flow::Cut, Flow::Cut),
        1 => ("requests", Flow::Cut, Flow::Pass),
        _ => ("answers", Flow::Pass, Flow::Cut),
    };
    for line in lines {
        line.set(requests, answers);
    }
    way
}

impl Nemesis<'_> {
    pub(super) fn kill(&mut self, index: usize) -> Act {
        self.ground.cluster.replica(index).kill();
        ("SIGKILL".to_owned(), self.ttls(0, 20), Mend::Start(index))
    }

    pub(super) fn freeze(&mut self, index: usize) -> Act {
        self.ground.cluster.replica(index).stop();
        ("SIGSTOP".to_owned(), self.ttls(5, 40), Mend::Continue(index))
    }

    pub(super) fn leave(&mut self, index: usize) -> Act {
        self.ground.cluster.replica(index).term();
        ("SIGTERM".to_owned(), self.ttls(2, 10), Mend::Start(index))
    }

    /// A new one in an old one's place.
    pub(super) fn start_again(&mut self, index: usize) -> Mended {
        let replica = self.ground.cluster.replica(index);
        let (begun, asked) = (boottime(), replica.is_running());
        let status = replica.end_within(LEFT_WITHIN);
        let how = status.map_or_else(String::new, |status| status.to_string());
        if asked && !status.is_some_and(|status| status.success()) {
            self.ended.push(format!("r{index}, asked to end: {how}"));
        }
        replica.start();
        Mended::Done(format!("{how} after {} ms more, and started", boottime().since(begun).as_millis()))
    }

    pub(super) fn starve(&mut self, index: usize) -> Act {
        let runs = self.between(Duration::from_millis(4), Duration::from_millis(15));
        let throttle = Throttle::begin(self.ground.cluster.replica(index).pid(), runs);
        let told = format!("runs for {} of {} ms", runs.as_millis(), PERIOD.as_millis());
        (told, self.ttls(10, 30), Mend::Unthrottle(throttle))
    }

    pub(super) fn step_replica(&mut self, index: usize) -> Act {
        let seconds = self.rng.i64(5..7200) * if self.rng.bool() { 1 } else { -1 };
        self.ground.clocks[index].set(&format!("{seconds:+}s"));
        (format!("{seconds:+} s"), self.ttls(5, 30), Mend::Clock(index))
    }

    pub(super) fn cut_coordinator(&mut self, index: usize) -> Act {
        let way = cut(&mut self.rng, self.ground.cluster.replica(index).etcd_lines());
        (way.to_owned(), self.ttls(5, 30), Mend::Lines(index, self.rng.bool()))
    }

    pub(super) fn cut_store(&mut self, index: usize) -> Act {
        let line = self.ground.cluster.replica(index).database_line();
        let way = cut(&mut self.rng, std::slice::from_ref(line));
        (way.to_owned(), self.ttls(5, 30), Mend::Lines(index, self.rng.bool()))
    }

    pub(super) fn delay(&mut self, index: usize) -> Act {
        let time = self.between(Duration::from_millis(20), Duration::from_millis(350));
        let replica = self.ground.cluster.replica(index);
        replica.etcd_lines().iter().for_each(|line| line.delay(time));
        replica.database_line().delay(time);
        (format!("{} ms each way", time.as_millis()), self.ttls(5, 30), Mend::Lines(index, false))
    }

    pub(super) fn half_open(&mut self, index: usize) -> Act {
        let replica = self.ground.cluster.replica(index);
        let which = self.rng.u32(0..3);
        if which != 1 {
            replica.database_line().half_open();
        }
        if which != 0 {
            replica.etcd_lines().iter().for_each(Proxy::half_open);
        }
        let told = ["the database", "etcd", "both"][usize::try_from(which).unwrap_or(0)];
        (told.to_owned(), self.ttls(10, 30), Mend::Lines(index, false))
    }

    pub(super) fn reset_after_commit(&mut self, index: usize) -> Act {
        let commits = self.rng.u64(1..6);
        self.ground.cluster.replica(index).database_line().reset_after_commits(commits);
        (format!("{commits} commits"), self.ttls(6, 20), Mend::Lines(index, false))
    }

    pub(super) fn whole_lines(&mut self, index: usize, lose: bool) -> Mended {
        let replica = self.ground.cluster.replica(index);
        let left = replica.database_line().commits_to_reset();
        if lose {
            replica.etcd_lines().iter().for_each(Proxy::reset);
            replica.database_line().reset();
        }
        replica.heal();
        let told = if lose { "reset, and whole" } else { "whole" };
        Mended::Done(if left > 0 { format!("{told}, {left} commits had not come") } else { told.to_owned() })
    }
}
