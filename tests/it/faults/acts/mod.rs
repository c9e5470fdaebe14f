//! What each kind does, and how it is undone.

mod replicas;
mod servers;

use std::time::Duration;

use super::kind::Kind;
use super::nemesis::Nemesis;
use replicas::Throttle;

/// How a fault is undone.
#[derive(Debug)]
pub enum Mend {
    /// The replica is started.
    Start(usize),
    /// The replica goes on.
    Continue(usize),
    /// Its processor is its own again.
    Unthrottle(Throttle),
    /// Its wall clock is right again.
    Clock(usize),
    /// Its lines are whole again; what was held on them is lost first, where so.
    Lines(usize, bool),
    /// The line to the receiver is whole again.
    ReceiverLine(bool),
    /// The receiver does what it should.
    Receiver,
    /// These members are started.
    StartMembers(Vec<usize>),
    /// These members go on.
    ContinueMembers(Vec<usize>),
    /// The database is started.
    StartStore,
    /// The database takes sessions again.
    ContinueStore,
    /// The database's clock is right again, having been off by so many seconds.
    StoreClock(i64),
    /// There is room again.
    FreeDisk,
    /// The election is resumed.
    Resume,
    /// It is over already.
    Nothing,
}

/// What came of undoing one.
#[derive(Debug)]
pub enum Mended {
    /// It is undone: how.
    Done(String),
    /// It is to be tried again: why.
    NotYet(String),
}

/// A fault that was done: how, how long it lasts, how it is undone.
pub type Act = (String, Duration, Mend);

impl Nemesis<'_> {
    /// Does one; `None` where it cannot be done now.
    pub(super) async fn act(&mut self, kind: Kind, replica: usize) -> Option<Act> {
        match kind {
            Kind::Kill => Some(self.kill(replica)),
            Kind::Freeze => Some(self.freeze(replica)),
            Kind::Leave => Some(self.leave(replica)),
            Kind::Starve => Some(self.starve(replica)),
            Kind::ReplicaClock => Some(self.step_replica(replica)),
            Kind::CutCoordinator => Some(self.cut_coordinator(replica)),
            Kind::CutStore => Some(self.cut_store(replica)),
            Kind::Delay => Some(self.delay(replica)),
            Kind::HalfOpen => Some(self.half_open(replica)),
            Kind::ResetAfterCommit => Some(self.reset_after_commit(replica)),
            Kind::CutReceiver => Some(self.cut_receiver()),
            Kind::Misbehave => Some(self.misbehave()),
            Kind::KillMember => Some(self.kill_member()),
            Kind::FreezeMember => Some(self.freeze_member()),
            Kind::LoseQuorum => Some(self.lose_quorum()),
            Kind::RestoreCoordinator => self.restore_coordinator(),
            Kind::WipeCoordinator => Some(self.wipe_coordinator()),
            Kind::DeleteKey => self.delete_key().await,
            Kind::DeleteKeyUnheard => self.delete_key_unheard(replica).await,
            Kind::RestartStore => Some(self.restart_store()),
            Kind::KillStore => Some(self.kill_store()),
            Kind::FreezeStore => Some(self.freeze_store()),
            Kind::StoreClock => Some(self.step_store()),
            Kind::FullDisk => self.fill_disk(),
            Kind::Halt => Some(self.halt()),
        }
    }

    /// Undoes one.
    pub(super) fn mend(&mut self, mend: &mut Mend) -> Mended {
        let cluster = &self.ground.cluster;
        match mend {
            Mend::Start(index) => self.start_again(*index),
            Mend::Continue(index) => {
                cluster.replica(*index).cont();
                Mended::Done("goes on".to_owned())
            }
            Mend::Unthrottle(throttle) => {
                throttle.end();
                Mended::Done("as before".to_owned())
            }
            Mend::Clock(index) => {
                self.ground.clocks[*index].set("+0s");
                Mended::Done("right again".to_owned())
            }
            Mend::Lines(index, lose) => self.whole_lines(*index, *lose),
            Mend::ReceiverLine(lose) => {
                if *lose {
                    self.ground.receiver_line.reset();
                }
                self.ground.receiver_line.heal();
                Mended::Done(if *lose { "reset, and whole" } else { "whole" }.to_owned())
            }
            Mend::Receiver => {
                self.receiver.always(None);
                Mended::Done("as it should".to_owned())
            }
            Mend::StartMembers(members) => {
                self.ground.etcd.restart_these(members);
                Mended::Done(format!("{members:?} run"))
            }
            Mend::ContinueMembers(members) => {
                for member in &*members {
                    self.ground.etcd.resume(*member);
                }
                Mended::Done(format!("{members:?} go on"))
            }
            Mend::StartStore => self.start_store(),
            Mend::ContinueStore => {
                self.ground.postgres.resume_postmaster();
                Mended::Done("goes on".to_owned())
            }
            Mend::StoreClock(seconds) => self.right_store_clock(*seconds),
            Mend::FreeDisk => self.free_disk(),
            Mend::Resume => self.resume(),
            Mend::Nothing => Mended::Done("by itself".to_owned()),
        }
    }
}
