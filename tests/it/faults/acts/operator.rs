//! What an operator does, by the product's own commands: halts and resumes, hands over, keeps a replica from leading.

use std::time::Duration;

use bursar::clock::boottime;
use bursar::domain::Moment;

use super::super::ground::command;
use super::super::kind::Hold;
use super::super::nemesis::Nemesis;
use super::{Act, Mend, Mended};
use crate::support::Process;

/// How long the command waits for a successor.
const WAIT: &str = "15s";
/// And how long it is waited for itself, on a busy machine.
const ENDS_WITHIN: Duration = Duration::from_secs(40);

impl Nemesis<'_> {
    pub(super) fn halt(&mut self) -> Act {
        let (code, said) = command(&self.ground.operator, &["halt", "--reason", "to see that nothing goes on"]);
        self.last_halt = boottime();
        if code == Some(0) {
            return ("halted".to_owned(), self.ttls(3, 20), Mend::Resume);
        }
        // Its outcome may be unknown: what was halted is resumed.
        (format!("{code:?}: {said}"), Duration::ZERO, Mend::Resume)
    }

    pub(super) fn resume(&mut self) -> Mended {
        if self.held(Hold::Store) {
            // It would wait for the store, and the store for what is to be undone next.
            return Mended::NotYet("the store is away".to_owned());
        }
        let (code, said) = command(&self.ground.operator, &["resume", "--reason", "seen"]);
        self.last_halt = boottime();
        match code {
            Some(0) => Mended::Done("resumed".to_owned()),
            Some(_) | None => Mended::NotYet(format!("{code:?}: {said}")),
        }
    }

    /// Half of the time to one that is left alone, else to whoever is first. The command goes on beside other faults.
    pub(super) fn transfer(&mut self) -> Act {
        let leader = self.leader();
        let all = 0..self.ground.cluster.replicas().len();
        let sound: Vec<usize> =
            all.filter(|index| Some(*index) != leader && !self.held(Hold::Replica(*index))).collect();
        let to = if self.rng.bool() { self.rng.choice(sound) } else { None };
        let mut args = vec!["transfer", "--force", "--wait", WAIT, "--reason", "the host of the leader is drained"];
        let id = to.map(|to| self.ground.cluster.replica(to).id().to_owned());
        if let Some(id) = &id {
            args.extend(["--to", id]);
        }
        let process = self.ground.operator.begin(&args);
        (format!("to {}", id.as_deref().unwrap_or("any")), Duration::ZERO, Mend::Transfer(process, boottime()))
    }

    pub(super) fn transferred(process: &Process, begun: Moment) -> Mended {
        match process.ended() {
            Some(status) if status.success() => Mended::Done(process.log()),
            Some(status) => Mended::Missed(format!("{status}: {}", process.log())),
            None if boottime().since(begun) > ENDS_WITHIN => {
                process.kill();
                Mended::Missed("it does not end".to_owned())
            }
            None => Mended::GoesOn,
        }
    }

    pub(super) fn cordon(&mut self, index: usize) -> Act {
        let id = self.ground.cluster.replica(index).id();
        let (code, said) = command(&self.ground.operator, &["cordon", id, "--reason", "its host is drained"]);
        if code == Some(0) {
            return ("cordoned".to_owned(), self.ttls(6, 20), Mend::Uncordon(index, true));
        }
        // Its outcome may be unknown, too.
        (format!("{code:?}: {said}"), Duration::ZERO, Mend::Uncordon(index, false))
    }

    pub(super) fn uncordon(&mut self, index: usize, was: bool) -> Mended {
        if self.held(Hold::Store) {
            return Mended::NotYet("the store is away".to_owned());
        }
        let id = self.ground.cluster.replica(index).id();
        let (code, said) = command(&self.ground.operator, &["uncordon", id, "--reason", "its host is back"]);
        match code {
            Some(0) if was => Mended::Done("may lead again".to_owned()),
            Some(0) => Mended::Missed("may lead".to_owned()),
            Some(_) | None => Mended::NotYet(format!("{code:?}: {said}")),
        }
    }
}
