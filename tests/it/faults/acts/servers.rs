//! What is done to etcd and to the database.

use std::time::Duration;

use bursar::clock::boottime;

use super::super::ground::TTL;
use super::super::nemesis::Nemesis;
use super::{Act, Mend, Mended};
use crate::support::Proxy;

/// How long an operator who deletes a leader's key waits for the next one.
const NEXT_LEADS: Duration = Duration::from_secs(2);
/// A leader commits something within this.
const COMMITS_WITHIN: Duration = Duration::from_secs(8);

impl Nemesis<'_> {
    fn some_members(&mut self, count: usize) -> Vec<usize> {
        let mut members: Vec<usize> = (0..self.ground.etcd.size()).collect();
        self.rng.shuffle(&mut members);
        members.truncate(count);
        members
    }

    fn strike_members(&mut self, members: Vec<usize>, kill: bool, lasts: Duration) -> Act {
        for member in &members {
            if kill {
                self.ground.etcd.kill(*member);
            } else {
                self.ground.etcd.pause(*member);
            }
        }
        let told = format!("{} to {members:?}", if kill { "SIGKILL" } else { "SIGSTOP" });
        (told, lasts, if kill { Mend::StartMembers(members) } else { Mend::ContinueMembers(members) })
    }

    pub(super) fn kill_member(&mut self) -> Act {
        let (members, lasts) = (self.some_members(1), self.ttls(2, 20));
        self.strike_members(members, true, lasts)
    }

    pub(super) fn freeze_member(&mut self) -> Act {
        let (members, lasts) = (self.some_members(1), self.ttls(5, 20));
        self.strike_members(members, false, lasts)
    }

    pub(super) fn lose_quorum(&mut self) -> Act {
        let (members, kill, lasts) = (self.some_members(2), self.rng.bool(), self.ttls(5, 30));
        self.strike_members(members, kill, lasts)
    }

    pub(super) fn restore_coordinator(&mut self) -> Option<Act> {
        let (taken, snapshot) = self.snapshot.take()?;
        self.ground.etcd.restore(&snapshot);
        snapshot.discard();
        let told = format!("as it was {} s ago", boottime().since(taken).as_secs());
        self.take_snapshot();
        Some((told, TTL, Mend::Nothing))
    }

    pub(super) fn wipe_coordinator(&mut self) -> Act {
        self.ground.etcd.wipe();
        ("empty".to_owned(), TTL, Mend::Nothing)
    }

    pub(super) async fn delete_key(&mut self) -> Option<Act> {
        // Where there is none, there is nothing to see.
        let there = self.ground.etcd.try_delete(&self.ground.cluster.leader_key()).await?;
        there.then(|| ("deleted".to_owned(), TTL / 5, Mend::Nothing))
    }

    /// The leader's answers from etcd are held: it takes itself for the leader until its deadline, and the next one leads at
    /// once. Only the fence is between them.
    pub(super) async fn delete_key_unheard(&mut self, leader: usize) -> Option<Act> {
        self.ground.cluster.replica(leader).etcd_lines().iter().for_each(Proxy::cut_answers);
        let deleted = self.ground.etcd.try_delete(&self.ground.cluster.leader_key()).await;
        if deleted != Some(true) {
            self.ground.cluster.replica(leader).heal();
            return None;
        }
        let begun = boottime();
        while boottime().since(begun) < NEXT_LEADS && self.leader().is_none_or(|now| now == leader) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Some((format!("of r{leader}"), self.ttls(5, 20), Mend::Lines(leader, self.rng.bool())))
    }

    /// The server has a COMMIT of the leader's, which hears nothing of it before the restart.
    pub(super) async fn restart_store(&mut self, leader: usize) -> Option<Act> {
        let line = self.ground.cluster.replica(leader).database_line();
        line.hold_behind_commit();
        let begun = boottime();
        while !line.holds_a_commit() && boottime().since(begun) < COMMITS_WITHIN {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let held = line.holds_a_commit();
        if held {
            self.ground.postgres.restart();
        }
        let lose = self.rng.bool();
        if lose {
            line.reset();
        }
        line.heal();
        let told = format!("behind a COMMIT of r{leader}, whose answer {}", if lose { "is lost" } else { "is late" });
        held.then_some((told, TTL / 5, Mend::Nothing))
    }

    pub(super) fn kill_store(&mut self) -> Act {
        self.ground.postgres.kill();
        ("SIGKILL".to_owned(), self.ttls(0, 15), Mend::StartStore)
    }

    pub(super) fn start_store(&mut self) -> Mended {
        self.ground.postgres.start_again();
        Mended::Done("runs".to_owned())
    }

    pub(super) fn freeze_store(&mut self) -> Act {
        self.ground.postgres.pause_postmaster();
        ("SIGSTOP to its first process".to_owned(), self.ttls(5, 20), Mend::ContinueStore)
    }

    /// Back only where no halt of before comes to lie in what the clock goes through again.
    pub(super) fn step_store(&mut self) -> Act {
        let back = self.rng.i64(5..20);
        let span = Duration::from_secs(u64::try_from(back).unwrap_or(0) + 5);
        let seconds =
            if self.rng.bool() && boottime().since(self.last_halt) > span { -back } else { self.rng.i64(5..40) };
        self.ground.store_clock.set(&format!("{seconds:+}s"));
        (format!("{seconds:+} s"), self.ttls(5, 20), Mend::StoreClock(seconds))
    }

    pub(super) fn right_store_clock(&mut self, seconds: i64) -> Mended {
        self.ground.store_clock.set("+0s");
        let ahead = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        self.no_halt_before = boottime() + ahead + TTL;
        Mended::Done("right again".to_owned())
    }

    pub(super) fn fill_disk(&mut self) -> Option<Act> {
        self.ground.disk.as_ref()?.fill();
        Some(("full".to_owned(), self.ttls(5, 20), Mend::FreeDisk))
    }

    pub(super) fn free_disk(&mut self) -> Mended {
        if let Some(disk) = &self.ground.disk {
            disk.free();
        }
        if self.ground.postgres.is_running() {
            return Mended::Done("room again".to_owned());
        }
        // It could not write its log, and has ended.
        self.ground.postgres.kill();
        self.ground.postgres.start_again();
        Mended::Done("room again, and started".to_owned())
    }
}
