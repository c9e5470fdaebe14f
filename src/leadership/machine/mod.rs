//! The leadership machine: one session, a set of elections, and the life of each tenure, as a pure value.
//!
//! Events and a time go in, commands come out; it is asked for the next moment at which it wants to be woken. No I/O, no
//! clock, no randomness of its own: the shell (the driver's thread) brings them, tests own them. The shape is that of
//! quinn-proto; the page of states is in the manner of River's leader elector.
//!
//! ```text
//! session    none -> granting -> live <-> suspect -> lost -> granting (a new lease; the lost one is never revived)
//!
//! election   observing -> waiting -> reading fence -> campaigning -> promoting -> active
//!               ^  a leader, or a wake-up  |              | unknown       |         |
//!               |<-------------------------+           settling           +----+----+
//!               |                                         |                    v
//!               +<---- (stands back) <---- clearing <-----+----------------- ending
//! ```
//!
//! Invariants:
//! - At most one operation per election is waited for; answers to any other are ignored, so late and doubled ones are
//!   harmless.
//! - A tenure is told to begin once, and the election does not stand again before its end was reported.
//! - A record is one's own if it has one's id *and* one's live lease; a tenure goes on only while the key is of its win, by
//!   revision, lease and tenure id: a coordinator that was restored issues a revision twice.
//! - A lost session ends every tenure; a tenure's own end ends only that one.
//! - An unknown outcome is settled by reading, never assumed.
//! - An abrupt end that is not reported within the teardown budget ends the process, and so does a worker runtime that does
//!   not beat for three TTLs. Time in which this process did not run at all is not counted for the latter.
//!
//! - A hand-over is tried once, after the tenure has ended. Whatever keeps it from succeeding, the key is then deleted as ever.
//!
//! Deliberately absent: safety. Whoever the machine takes for a leader, the store's fence decides who writes. And the choice
//! of a successor where none is named: the shell knows who is registered. Being one is here: an own record that was not
//! campaigned for is adopted.

mod command;
mod election;
mod leaving;
mod session;
mod standing;
mod tenure;
mod types;
mod view;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

pub use command::{Command, Note, Timer};
pub use types::{Campaigned, EndMode, Event, Failed, HandedOver, Luck, Now, OpId, Report, Settings, Survey};
pub use view::{ElectionView, LeadershipView};

use crate::domain::{ElectionName, Moment};
use crate::leadership::reason::{EndReason, ExitReason, SessionState, Suspicion};
use crate::leadership::record::LeaseId;
use election::Election;
use leaving::Leaving;
use session::Session;

/// TTLs without a beat of the workers after which the process ends.
pub const TTLS_WITHOUT_BEAT: u32 = 3;

/// Waking this much later than asked for means that the process did not run.
pub const PAUSE: Duration = Duration::from_millis(500);

/// Boot time and monotonic time drifting apart by this much means that the machine was suspended.
pub const CLOCK_TOLERANCE: Duration = Duration::from_millis(100);

/// The longest jitter before standing.
pub const LONGEST_JITTER: Duration = Duration::from_millis(50);

/// Jitter per registered replica.
pub const JITTER_PER_REPLICA: Duration = Duration::from_millis(1);

/// How long the store may take to say the fence's term.
pub const FENCE_READ_LIMIT: Duration = Duration::from_secs(2);

/// How long leaving may take after the last tenure has ended.
pub const LEAVE_LIMIT: Duration = Duration::from_secs(1);

/// The first wait after an error at the coordinator; doubles with each further one up to [`LONGEST_RETRY`].
pub const FIRST_RETRY: Duration = Duration::from_millis(50);

/// The longest wait after errors at the coordinator.
pub const LONGEST_RETRY: Duration = Duration::from_secs(1);

/// The first time of standing back after a tenure that ended by own fault; doubles up to [`LONGEST_STAND_BACK`].
pub const FIRST_STAND_BACK: Duration = Duration::from_secs(1);

/// The longest time of standing back. A tenure that lasted this long clears the count.
pub const LONGEST_STAND_BACK: Duration = Duration::from_mins(1);

/// The machine. See the module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Machine {
    settings: Settings,
    session: Session,
    /// A lease that was lost by its deadline and may still stand at the coordinator: given back once nothing leads on it.
    stale_lease: Option<LeaseId>,
    elections: BTreeMap<ElectionName, Election>,
    timers: BTreeMap<Timer, Moment>,
    leaving: Leaving,
    cordoned: bool,
    replicas: u32,
    registering: Option<OpId>,
    /// The record that is on its way shows something that has changed since.
    register_again: bool,
    registered: bool,
    surveying: Option<OpId>,
    last_beat: Moment,
    clock_gap: Duration,
    coordinator_up: Option<bool>,
    shown_session: Option<(SessionState, Option<Suspicion>)>,
    next_op: u64,
}

/// What one step works with: the time, the luck, and the commands so far.
struct Step {
    now: Moment,
    luck: Luck,
    out: Vec<Command>,
}

impl Step {
    fn push(&mut self, command: Command) {
        self.out.push(command);
    }

    fn note(&mut self, note: Note) {
        self.out.push(Command::Note(note));
    }

    /// Full jitter: anything up to `most`.
    fn up_to(&self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        // The high half of a 128-bit product maps a uniform number evenly onto the range.
        let scaled = (u128::from(self.luck.jitter) * (u128::from(most) + 1)) >> 64;
        Duration::from_nanos(u64::try_from(scaled).unwrap_or(most))
    }

    /// The wait after the `failures`-th error in a row (the first is 1), with full jitter above half.
    fn retry(&self, failures: u32) -> Duration {
        let doubled = FIRST_RETRY * 2u32.saturating_pow(failures.saturating_sub(1).min(10));
        let wait = doubled.min(LONGEST_RETRY);
        wait / 2 + self.up_to(wait / 2)
    }
}

impl Machine {
    /// A machine that has no lease yet, leads nothing, and asks for its first lease when first woken.
    #[must_use]
    pub fn new(settings: Settings, now: Now) -> Self {
        let elections =
            settings.elections.iter().map(|name| (name.clone(), Election::new(name.clone(), now.boot))).collect();
        let mut machine = Self {
            session: Session::None { lost: false, failures: 0 },
            stale_lease: None,
            elections,
            timers: BTreeMap::new(),
            leaving: Leaving::No,
            cordoned: false,
            replicas: 1,
            registering: None,
            register_again: false,
            registered: false,
            surveying: None,
            last_beat: now.boot,
            clock_gap: now.boot.since(now.monotonic),
            coordinator_up: None,
            shown_session: None,
            next_op: 0,
            settings,
        };
        machine.timers.insert(Timer::Grant, now.boot);
        machine.timers.insert(Timer::Beat, now.boot + machine.beat_limit());
        let names: Vec<_> = machine.elections.keys().cloned().collect();
        for name in names {
            machine.timers.insert(Timer::Reread(name), now.boot);
        }
        machine
    }

    /// When to be woken next, and for which timer. `None` only once everything is over.
    #[must_use]
    pub fn deadline(&self) -> Option<(Moment, Timer)> {
        self.timers.iter().min_by_key(|(_, at)| **at).map(|(timer, at)| (*at, timer.clone()))
    }

    /// Takes in an event. The session's deadline counts before the event does: a lease cannot be saved by an answer that
    /// comes after it.
    pub fn handle(&mut self, now: Now, luck: Luck, event: Event) -> Vec<Command> {
        let mut step = Step { now: now.boot, luck, out: Vec::new() };
        if self.leaving == Leaving::Left {
            return step.out;
        }
        self.notice_pauses(now, &mut step);
        let over = self.timers.get(&Timer::Deadline).is_some_and(|at| *at <= step.now);
        if over && !crate::mutant!("session.saved-by-a-late-answer") {
            self.lose_session(&mut step, EndReason::SessionLost);
        }
        match event {
            Event::Wake => self.fire_timers(&mut step),
            Event::Reported(report) => self.reported(&mut step, report),
            Event::Granted(op, outcome) => self.granted(&mut step, op, outcome),
            Event::Renewed(op, outcome) => self.renewed(&mut step, op, outcome),
            Event::Revoked(op) => self.revoked(&mut step, op),
            Event::Read(op, election, outcome) => self.read(&mut step, op, &election, outcome),
            Event::Campaigned(op, election, outcome) => self.campaigned(&mut step, op, &election, outcome),
            Event::Resigned(op, election, outcome) => self.resigned(&mut step, op, &election, &outcome),
            Event::Transferred(op, election, outcome) => self.transferred(&mut step, op, &election, outcome),
            Event::Registered(op, outcome) => self.register_answered(&mut step, op, outcome),
            Event::Surveyed(op, outcome) => self.surveyed(&mut step, op, outcome),
            Event::Woken(election) => self.woken(&mut step, &election),
            Event::WatchEnded(election) => self.watch_ended(&mut step, &election),
        }
        self.go_on_leaving(&mut step);
        step.out
    }

    fn fire_timers(&mut self, step: &mut Step) {
        // A timer that a firing sets anew for this very moment waits for the next wake-up: no firing can loop.
        let mut due: Vec<_> =
            self.timers.iter().filter(|(_, at)| **at <= step.now).map(|(timer, at)| (*at, timer.clone())).collect();
        due.sort();
        for (at, timer) in due {
            if self.timers.get(&timer) != Some(&at) {
                continue;
            }
            self.timers.remove(&timer);
            self.fire(step, timer);
        }
    }

    fn fire(&mut self, step: &mut Step, timer: Timer) {
        match timer {
            Timer::Deadline => self.lose_session(step, EndReason::SessionLost),
            Timer::Overdue => self.suspect(step, Suspicion::Overdue),
            Timer::Renew => self.send_renewal(step),
            Timer::Grant => self.ask_for_lease(step),
            Timer::Register => self.register(step),
            Timer::Survey => self.survey(step),
            Timer::Beat if crate::mutant!("workers.stuck-for-ever") => {}
            Timer::Beat => step.push(Command::Exit(ExitReason::WorkersStuck)),
            Timer::Leave => self.leave(step),
            Timer::Reread(name) => self.start_read(step, &name),
            Timer::Stand(name) => self.jitter_over(step, &name),
            Timer::Fence(name) => self.fence_unknown(step, &name),
            Timer::StandBack(name) => self.stand_back_over(step, &name),
            Timer::Teardown(name) => self.teardown_overdue(step, &name),
            Timer::Clear(name) => self.send_resignation(step, &name),
        }
    }

    fn reported(&mut self, step: &mut Step, report: Report) {
        match report {
            Report::Eligible { election, eligible } => self.set_eligible(step, &election, eligible),
            Report::Cordoned(cordoned) => self.set_cordoned(step, cordoned),
            Report::FenceTerm { election, term } => self.fence_read(step, &election, term),
            Report::Accepted { claim } => self.accepted(step, &claim),
            Report::FirstWork { claim } => self.first_work(step, &claim),
            Report::PromotionFailed { claim, why: _ } => self.failed_promotion(step, &claim),
            Report::Fenced { claim, found: _ } => self.fenced(step, &claim),
            Report::Fault { claim, why: _ } => self.fault(step, &claim),
            Report::Ended { claim } => self.ended(step, &claim),
            Report::Beat => {
                self.last_beat = self.last_beat.max(step.now);
                self.timers.insert(Timer::Beat, self.last_beat + self.beat_limit());
            }
            Report::ScheduleFingerprint(_) => self.register_soon(step),
            Report::HandOver { election, term, to } => self.hand_over(step, &election, term, to),
            Report::Drain => self.drain(step),
        }
    }

    fn beat_limit(&self) -> Duration {
        self.settings.ttl * TTLS_WITHOUT_BEAT
    }

    /// Time in which this process did not run: the workers are not to blame for it, and the session is in doubt.
    fn notice_pauses(&mut self, now: Now, step: &mut Step) {
        let late = self.deadline().map_or(Duration::ZERO, |(at, _)| now.boot.since(at));
        let paused = late > PAUSE;
        if paused {
            self.last_beat = self.last_beat + late;
            self.timers.insert(Timer::Beat, self.last_beat + self.beat_limit());
        }
        let gap = now.boot.since(now.monotonic);
        let disagree = gap.abs_diff(self.clock_gap) > CLOCK_TOLERANCE;
        if disagree {
            self.clock_gap = gap;
        }
        if paused {
            self.suspect_and_renew(step, Suspicion::Paused);
        } else if disagree {
            self.suspect_and_renew(step, Suspicion::ClocksDisagree);
        }
    }

    fn op(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op)
    }

    fn set(&mut self, timer: Timer, at: Moment) {
        self.timers.insert(timer, at);
    }

    fn clear(&mut self, timer: &Timer) {
        self.timers.remove(timer);
    }

    /// Whether the coordinator answers, as far as the last operation showed.
    fn answered(&mut self, step: &mut Step, up: bool) {
        if self.coordinator_up != Some(up) {
            self.coordinator_up = Some(up);
            step.note(Note::CoordinatorUp(up));
        }
    }

    fn names(&self) -> Vec<ElectionName> {
        self.elections.keys().cloned().collect()
    }
}
