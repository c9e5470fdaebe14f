//! What is done to the receiver and to the lines to it.

use std::time::Duration;

use bursar::clock::boottime;
use bursar::domain::Moment;

use super::super::books::refused;
use super::super::ground::TTL;
use super::super::nemesis::Nemesis;
use super::replicas::cut;
use super::{Act, Mend, Mended};
use crate::support::proxy::Flow;
use crate::support::receiver::{Act as Answer, say};

/// A leader that wants nothing of the receiver for so long is let go.
const SENDS_WITHIN: Duration = Duration::from_secs(20);
/// From a connection to the request on it.
const WRITTEN: Duration = Duration::from_millis(300);
/// A successor that has paid nothing after so long is not waited for.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(40);
/// What was held has arrived after this.
const ARRIVES: Duration = Duration::from_secs(1);

/// How far a leader is whose requests are to arrive behind its successor's.
#[derive(Debug)]
pub struct Late {
    replica: usize,
    /// When this step began.
    since: Moment,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// Its requests are cut; the connections that were there before.
    Cut { connections: u64 },
    /// It has connected anew, so something that it sent is held.
    Sends,
    /// It is killed; what the receiver had logged by then, and the highest token in it.
    Killed { logged: usize, token: i64 },
    /// The line is whole, and the replica started; what the receiver had logged by then.
    Whole { logged: usize, how: String },
}

impl Nemesis<'_> {
    pub(super) fn cut_receiver(&mut self, index: usize) -> Act {
        let way = cut(&mut self.rng, &self.ground.receiver_lines[index..=index]);
        (way.to_owned(), self.ttls(5, 20), Mend::ReceiverLine(index, self.rng.bool()))
    }

    pub(super) fn whole_receiver_line(&mut self, index: usize, lose: bool) -> Mended {
        let line = &self.ground.receiver_lines[index];
        if lose {
            line.reset();
        }
        line.heal();
        Mended::Done(if lose { "reset, and whole" } else { "whole" }.to_owned())
    }

    pub(super) fn misbehave(&mut self) -> Act {
        let acts: [(&str, Answer); 7] = [
            ("books, and breaks off", Answer::BookAndReset),
            ("books, and is late", Answer::BookSlowly(TTL / 2)),
            ("breaks off", Answer::Reset),
            ("is silent", Answer::Silence),
            ("429", Answer::Say(say(429, &[("retry-after", "1")], ""))),
            ("503", Answer::Say(say(503, &[], ""))),
            ("books, and says 500", Answer::BookAndSay(say(500, &[], ""))),
        ];
        let (told, act) = acts[self.rng.usize(0..acts.len())].clone();
        self.receiver.always(Some(act));
        (told.to_owned(), self.ttls(4, 20), Mend::Receiver)
    }

    /// A request whose end was not read when its sender was killed, and which a successor's overtakes.
    pub(super) fn late_requests(&mut self, replica: usize) -> Act {
        let line = &self.ground.receiver_lines[replica];
        let connections = line.accepted();
        line.set(Flow::Cut, Flow::Pass);
        let late = Late { replica, since: boottime(), step: Step::Cut { connections } };
        ("requests cut".to_owned(), Duration::ZERO, Mend::Late(late))
    }

    /// Goes on with it.
    pub(super) fn be_late(&mut self, late: &mut Late) -> Mended {
        let (now, line) = (boottime(), &self.ground.receiver_lines[late.replica]);
        let waited = now.since(late.since);
        let next = match &late.step {
            Step::Cut { connections } => {
                if line.accepted() > *connections {
                    Step::Sends
                } else if waited > SENDS_WITHIN || self.leader().is_some_and(|leader| leader != late.replica) {
                    line.heal();
                    return Mended::Missed("whole; it wanted nothing of the receiver".to_owned());
                } else {
                    return Mended::GoesOn;
                }
            }
            Step::Sends if waited < WRITTEN => return Mended::GoesOn,
            Step::Sends => {
                self.ground.cluster.replica(late.replica).kill();
                let log = self.receiver.log();
                let token = log.iter().map(|logged| logged.token).max().unwrap_or_default();
                Step::Killed { logged: log.len(), token }
            }
            Step::Killed { logged, token } => {
                let paid = self.receiver.log_from(*logged).iter().any(|logged| logged.taken && logged.token > *token);
                if !paid && waited < FOLLOWS_WITHIN {
                    return Mended::GoesOn;
                }
                let logged = self.receiver.log_from(0).len();
                line.heal();
                let how = if paid { "its successor has paid" } else { "no successor has paid" };
                self.start_again(late.replica);
                Step::Whole { logged, how: how.to_owned() }
            }
            Step::Whole { .. } if waited < ARRIVES => return Mended::GoesOn,
            Step::Whole { logged, how } => {
                let count = refused(&self.receiver.log_from(*logged));
                let told = format!("{how}, whole, started, {count} refused");
                return if count > 0 { Mended::Done(told) } else { Mended::Missed(told) };
            }
        };
        (late.step, late.since) = (next, now);
        Mended::GoesOn
    }
}
