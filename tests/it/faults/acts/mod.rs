//! What each kind does, and how it is undone.

mod operator;
mod receiver;
mod replicas;
mod servers;

use std::time::Duration;

use bursar::domain::Moment;

use super::kind::Kind;
use super::nemesis::Nemesis;
use crate::support::Process;
use receiver::Late;
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
    /// Its line to the receiver is whole again; what was held on it is lost first, where so.
    ReceiverLine(usize, bool),
    /// What was held of a leader's requests arrives, once its successor has paid.
    Late(Late),
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
    /// The command that hands over has ended; when it began.
    Transfer(Process, Moment),
    /// The replica may lead again; whether it was kept from it for sure.
    Uncordon(usize, bool),
    /// It is over already.
    Nothing,
}

/// What came of undoing one.
#[derive(Debug)]
pub enum Mended {
    /// It is undone: how.
    Done(String),
    /// It is undone, and was not what it was meant to be: how.
    Missed(String),
    /// It is to be tried again: why.
    NotYet(String),
    /// It has its time, and is looked at again.
    GoesOn,
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
            Kind::CutReceiver => Some(self.cut_receiver(replica)),
            Kind::LateRequests => Some(self.late_requests(replica)),
            Kind::Misbehave => Some(self.misbehave()),
            Kind::KillMember => Some(self.kill_member()),
            Kind::FreezeMember => Some(self.freeze_member()),
            Kind::LoseQuorum => Some(self.lose_quorum()),
            Kind::RestoreCoordinator => self.restore_coordinator(),
            Kind::WipeCoordinator => Some(self.wipe_coordinator()),
            Kind::DeleteKey => self.delete_key().await,
            Kind::DeleteKeyUnheard => self.delete_key_unheard(replica).await,
            Kind::RestartStore => self.restart_store(replica).await,
            Kind::KillStore => Some(self.kill_store()),
            Kind::FreezeStore => Some(self.freeze_store()),
            Kind::StoreClock => Some(self.step_store()),
            Kind::FullDisk => self.fill_disk(),
            Kind::Halt => Some(self.halt()),
            Kind::Transfer => Some(self.transfer()),
            Kind::Cordon => Some(self.cordon(replica)),
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
            Mend::ReceiverLine(index, lose) => self.whole_receiver_line(*index, *lose),
            Mend::Late(late) => self.be_late(late),
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
            Mend::Transfer(process, begun) => Self::transferred(process, *begun),
            Mend::Uncordon(index, was) => self.uncordon(*index, *was),
            Mend::Nothing => Mended::Done("by itself".to_owned()),
        }
    }
}
