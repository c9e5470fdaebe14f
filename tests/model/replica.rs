//! A replica: the product's own machine in a process that is paused, killed and started again, on a clock of its own.

use std::time::Duration;

use bursar::domain::{Claim, Moment, ReplicaId};
use bursar::leadership::machine::{Command, Event, Luck, Machine, Now, Report, Settings};
use bursar::leadership::record::{LeaseId, Revision};

use crate::election::name;
use crate::kept::Kept;

/// The lease's time to live.
pub const TTL: Duration = Duration::from_secs(5);

/// What a tenure has to end in.
pub const BUDGET: Duration = Duration::from_secs(1);

/// The replicas' names.
pub fn replica_id(node: usize) -> ReplicaId {
    ReplicaId::new(["a", "b"][node]).expect("a valid name")
}

/// A clock that runs at so many percent of the true time, since the boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate(pub u32);

impl Rate {
    /// What it shows.
    pub fn shows(self, now: Moment) -> Moment {
        scaled(now, u128::from(self.0), 100)
    }

    /// The first true moment at which it shows that much.
    pub fn when(self, shown: Moment) -> Moment {
        scaled(shown, 100, u128::from(self.0))
    }
}

fn scaled(moment: Moment, by: u128, of: u128) -> Moment {
    let scaled = (moment.since_boot().as_nanos() * by).div_ceil(of);
    Moment::after_boot(Duration::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX)))
}

/// A tenure, as the process has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tenure {
    /// What it presents.
    pub claim: Claim,
    /// It was told to end, by then at the latest, by the replica's clock.
    pub ends_by: Option<Moment>,
    /// The session that it stands on.
    pub lease: LeaseId,
}

/// One replica.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "what is independent of each other, in every combination")]
pub struct Replica {
    /// The machine; none while the process is down.
    pub machine: Option<Kept<Machine>>,
    /// Counts the starts: what was meant for an earlier process reaches nobody.
    pub start: u8,
    /// It does not run, and does not know it.
    pub paused: bool,
    /// Its workers stand still, and its session's thread goes on.
    pub stuck: bool,
    /// Of the process.
    pub tenure: Option<Tenure>,
    /// What the gate of its session shows: closed from then on, by its own clock.
    pub deadline: Option<(LeaseId, Moment)>,
    /// Where its watch has come to.
    pub watch: Option<Revision>,
    /// It began a tenure before the one before it had ended.
    pub began_beside: bool,
    /// A session was shown to its gates as open again that had been over.
    pub revived: bool,
}

impl Replica {
    /// A process that is down.
    pub const fn down() -> Self {
        Self {
            machine: None,
            start: 0,
            paused: false,
            stuck: false,
            tenure: None,
            deadline: None,
            watch: None,
            began_beside: false,
            revived: false,
        }
    }

    /// Starts the process. Nothing of an earlier one is left: a replica keeps nothing on disk.
    pub fn start(&mut self, node: usize, shown: Moment) {
        let settings = Settings {
            me: replica_id(node),
            elections: vec![name()],
            ttl: TTL,
            teardown_budget: BUDGET,
            drain: Duration::from_secs(2),
        };
        let machine = Machine::new(settings, Now::both(shown));
        self.end();
        (self.machine, self.start) = (Some(Kept::new(machine)), self.start + 1);
    }

    /// The process is gone.
    pub fn end(&mut self) {
        let (start, began_beside, revived) = (self.start, self.began_beside, self.revived);
        *self = Self { start, began_beside, revived, ..Self::down() };
    }

    /// Hands the machine an event.
    pub fn hand(&mut self, shown: Moment, luck: Luck, event: Event) -> Vec<Command> {
        let beats = !self.stuck;
        let Some(machine) = &mut self.machine else { return Vec::new() };
        machine.change(|machine| {
            let mut commands = Vec::new();
            if event == Event::Wake && beats {
                // The workers live.
                commands.extend(machine.handle(Now::both(shown), luck, Event::Reported(Report::Beat)));
            }
            commands.extend(machine.handle(Now::both(shown), luck, event));
            commands
        })
    }

    /// When the machine wants to be woken, by its own clock.
    pub fn wakes_at(&self) -> Option<Moment> {
        self.machine.as_ref().and_then(|machine| machine.deadline()).map(|(at, _)| at)
    }

    /// What it leads, by its own clock.
    pub fn leads(&self, shown: Moment) -> Vec<Claim> {
        self.machine.as_ref().map(|machine| machine.leads(shown)).unwrap_or_default()
    }
}
