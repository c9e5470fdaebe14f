//! The bounded worlds that are explored: each completes. What a world leaves out, another has; the long ones are larger.

use std::time::Duration;

use bursar::domain::job::Misfire;

use crate::election::{self, Election};
use crate::fencing::{self, Claim, Fencing};
use crate::paying::{self, Paying};
use crate::receiver::Receiver;
use crate::replica::Rate;
use crate::ticks::{self, Ticks};

/// Clocks that run alike.
const ALIKE: [Rate; 2] = [Rate(100), Rate(100)];
/// One is slow, the other fast, by a tenth each: the bound within which the teardown budget covers a TTL.
const APART: [Rate; 2] = [Rate(90), Rate(110)];

const NO_FAULTS: election::Faults = election::Faults {
    losses: 0,
    delays: 0,
    late_renewals: 0,
    doubles: 0,
    pauses: 0,
    stops: 0,
    crashes: 0,
    stuck: 0,
    drains: 0,
    handovers: 0,
    lifts: 0,
    stalls: 0,
    wipes: 0,
    restores: 0,
    deletions: 0,
    leaseless: 0,
};

const fn led(rates: [Rate; 2], faults: election::Faults, faults_until: u64, horizon: u64) -> Election {
    let (faults_until, horizon) = (Duration::from_secs(faults_until), Duration::from_secs(horizon));
    Election { rates, faults, faults_until, horizon, led: true, watches: false, defect: None }
}

const fn start(faults: election::Faults, horizon: u64) -> Election {
    Election { led: false, ..led(ALIKE, faults, 0, horizon) }
}

const fn watched(world: Election) -> Election {
    Election { watches: true, ..world }
}

/// Elections, by what befalls them. L1 is claimed where the horizon is beyond its bound.
pub const ELECTIONS: &[(&str, Election)] = &[
    ("election: two that start, a message late", start(election::Faults { delays: 1, ..NO_FAULTS }, 2)),
    (
        "election: two that start, a message twice, another lost",
        start(election::Faults { losses: 1, doubles: 1, ..NO_FAULTS }, 1),
    ),
    ("election: two that start, a message lost", start(election::Faults { losses: 1, ..NO_FAULTS }, 9)),
    ("election: two that start, a wipe", start(election::Faults { wipes: 1, ..NO_FAULTS }, 11)),
    ("election: a crash", led(ALIKE, election::Faults { crashes: 1, ..NO_FAULTS }, 2, 13)),
    ("election: workers that stand still", led(ALIKE, election::Faults { stuck: 1, ..NO_FAULTS }, 0, 24)),
    ("election: a message late", led(ALIKE, election::Faults { delays: 1, ..NO_FAULTS }, 2, 12)),
    (
        "election: a renewal late, a stop",
        led(ALIKE, election::Faults { late_renewals: 1, stops: 1, ..NO_FAULTS }, 3, 6),
    ),
    ("election: a pause, clocks apart", led(APART, election::Faults { pauses: 1, ..NO_FAULTS }, 2, 13)),
    (
        "election: a pause, a lease that lapses late",
        led(APART, election::Faults { pauses: 1, stalls: 1, ..NO_FAULTS }, 0, 12),
    ),
    ("election: a leader, a wipe", led(ALIKE, election::Faults { wipes: 1, ..NO_FAULTS }, 2, 13)),
    ("election: a restore, a pause", led(ALIKE, election::Faults { restores: 1, pauses: 1, ..NO_FAULTS }, 1, 10)),
    (
        "election: a person deletes the key, and puts one",
        led(ALIKE, election::Faults { deletions: 1, leaseless: 1, ..NO_FAULTS }, 1, 12),
    ),
    (
        "election: a person deletes the key, a message late",
        led(ALIKE, election::Faults { deletions: 1, delays: 1, ..NO_FAULTS }, 0, 3),
    ),
    ("election: a drain, a message late", led(ALIKE, election::Faults { drains: 1, delays: 1, ..NO_FAULTS }, 0, 2)),
    (
        "election: a drain, a message lost, watches",
        watched(led(ALIKE, election::Faults { drains: 1, losses: 1, ..NO_FAULTS }, 0, 4)),
    ),
    (
        "election: a hand-over, a message late",
        led(ALIKE, election::Faults { handovers: 1, delays: 1, ..NO_FAULTS }, 0, 4),
    ),
    (
        "election: a hand-over, a message twice, watches",
        watched(led(ALIKE, election::Faults { handovers: 1, doubles: 1, ..NO_FAULTS }, 0, 4)),
    ),
    (
        "election: a hand-over, a message lost",
        led(ALIKE, election::Faults { handovers: 1, losses: 1, ..NO_FAULTS }, 0, 9),
    ),
    (
        "election: a hand-over, a term that is lifted",
        led(ALIKE, election::Faults { handovers: 1, lifts: 1, ..NO_FAULTS }, 0, 9),
    ),
];

/// The same with more faults in one history.
pub const LARGER_ELECTIONS: &[(&str, Election)] = &[
    (
        "election, larger: a hand-over, a term that is lifted, a crash",
        led(ALIKE, election::Faults { handovers: 1, lifts: 1, crashes: 1, ..NO_FAULTS }, 0, 9),
    ),
    (
        "election, larger: messages late and lost, a crash",
        led(ALIKE, election::Faults { losses: 1, delays: 1, crashes: 1, ..NO_FAULTS }, 1, 12),
    ),
    (
        "election, larger: two pauses and a crash, clocks apart",
        led(APART, election::Faults { pauses: 2, crashes: 1, ..NO_FAULTS }, 1, 12),
    ),
    (
        "election, larger: a wipe, a restore, a pause",
        led(ALIKE, election::Faults { wipes: 1, restores: 1, pauses: 1, ..NO_FAULTS }, 1, 12),
    ),
];

const HIGHER: [Claim; 2] = [Claim { term: 1, tenure: 1 }, Claim { term: 2, tenure: 2 }];
const SAME: [Claim; 2] = [Claim { term: 1, tenure: 1 }, Claim { term: 1, tenure: 2 }];

/// Transactions at the fence.
pub const FENCES: &[(&str, Fencing)] = &[
    (
        "fence: a lower and a higher claim",
        Fencing {
            claims: HIGHER,
            faults: fencing::Faults { failures: 1, unknowns: 2, untold: 1, crashes: 1, halts: 1 },
            defect: None,
        },
    ),
    (
        "fence: one term, two tenures",
        Fencing {
            claims: SAME,
            faults: fencing::Faults { failures: 1, unknowns: 1, untold: 1, crashes: 1, halts: 1 },
            defect: None,
        },
    ),
];

/// The same with more faults in one history.
pub const LARGER_FENCES: &[(&str, Fencing)] = &[(
    "fence, larger: a lower and a higher claim",
    Fencing {
        claims: HIGHER,
        faults: fencing::Faults { failures: 4, unknowns: 4, untold: 2, crashes: 2, halts: 3 },
        defect: None,
    },
)];

const NOTHING: paying::Faults = paying::Faults {
    crashes: 0,
    lapses: 0,
    holds: 0,
    elections: 0,
    losses: 0,
    doubles: 0,
    hurries: 0,
    unknowns: 0,
    refusals: 0,
    undone: 0,
    odd: 0,
    away: 0,
    halts: 0,
};

const IDEMPOTENT: Receiver = Receiver { idempotent: true, tokens: true, remembers: true };
const TOKENLESS: Receiver = Receiver { idempotent: true, tokens: false, remembers: false };
const PLAIN: Receiver = Receiver { idempotent: false, tokens: false, remembers: false };

const fn paying(instructions: usize, tries: u8, receiver: Receiver, faults: paying::Faults) -> Paying {
    Paying { instructions, tries, receiver, faults, defect: None }
}

/// Instructions.
pub const PAYINGS: &[(&str, Paying)] = &[
    (
        "paying: an idempotent receiver, leaders that come and go",
        paying(1, 2, IDEMPOTENT, paying::Faults { crashes: 1, elections: 1, losses: 1, ..NOTHING }),
    ),
    (
        "paying: an idempotent receiver that refuses, requests twice",
        paying(1, 2, IDEMPOTENT, paying::Faults { elections: 1, doubles: 1, refusals: 1, ..NOTHING }),
    ),
    (
        "paying: a receiver without tokens that refuses, late requests",
        paying(1, 3, TOKENLESS, paying::Faults { hurries: 1, lapses: 1, refusals: 1, undone: 1, ..NOTHING }),
    ),
    (
        "paying: a receiver that is not idempotent",
        paying(1, 2, PLAIN, paying::Faults { elections: 1, losses: 1, hurries: 1, refusals: 1, undone: 1, ..NOTHING }),
    ),
    (
        "paying: an idempotent receiver that answers oddly, or is away",
        paying(1, 2, IDEMPOTENT, paying::Faults { odd: 2, away: 1, refusals: 1, ..NOTHING }),
    ),
    (
        "paying: a receiver that answers oddly and is not idempotent",
        paying(1, 3, PLAIN, paying::Faults { odd: 1, away: 1, elections: 1, losses: 1, ..NOTHING }),
    ),
    (
        "paying: a halt, a held gate, a lost session",
        paying(1, 2, IDEMPOTENT, paying::Faults { halts: 1, holds: 1, lapses: 1, ..NOTHING }),
    ),
    (
        "paying: commits without an answer, a halt, a crash",
        paying(1, 2, IDEMPOTENT, paying::Faults { unknowns: 2, halts: 1, crashes: 1, ..NOTHING }),
    ),
    ("paying: two instructions", paying(2, 2, IDEMPOTENT, paying::Faults { elections: 1, ..NOTHING })),
];

/// The same with more faults in one history.
pub const LARGER_PAYINGS: &[(&str, Paying)] = &[
    (
        "paying, larger: an idempotent receiver and most faults",
        paying(
            1,
            3,
            IDEMPOTENT,
            paying::Faults {
                crashes: 1,
                lapses: 1,
                elections: 1,
                losses: 1,
                doubles: 1,
                hurries: 1,
                unknowns: 1,
                refusals: 1,
                undone: 1,
                ..NOTHING
            },
        ),
    ),
    (
        "paying, larger: two instructions, held and halted",
        paying(2, 2, IDEMPOTENT, paying::Faults { elections: 1, lapses: 1, holds: 1, halts: 1, losses: 1, ..NOTHING }),
    ),
];

const ON_TIME: ticks::Faults =
    ticks::Faults { crashes: 0, elections: 0, unknowns: 0, steps_back: 0, ahead: 0, halts: 0, edits: 0 };

const fn ticks(ticks: u8, policies: [Misfire; 2], faults: ticks::Faults) -> Ticks {
    Ticks { ticks, policies, faults, defect: None }
}

/// Ticks.
pub const TICKS: &[(&str, Ticks)] = &[
    (
        "ticks: leaders that come and go, commits without an answer, a clock stepped back",
        ticks(
            3,
            [Misfire::RunAll; 2],
            ticks::Faults { crashes: 1, elections: 1, unknowns: 1, steps_back: 1, ..ON_TIME },
        ),
    ),
    (
        "ticks: a leader's clock ahead, a halt, another leader",
        ticks(3, [Misfire::RunLatest; 2], ticks::Faults { ahead: 1, halts: 1, elections: 1, ..ON_TIME }),
    ),
    (
        "ticks: an edit, leaders that come and go, a commit without an answer, a clock stepped back",
        ticks(
            3,
            [Misfire::Skip, Misfire::RunAll],
            ticks::Faults { edits: 1, crashes: 1, unknowns: 1, steps_back: 1, ..ON_TIME },
        ),
    ),
    (
        "ticks: an edit, another leader",
        ticks(3, [Misfire::RunLatest, Misfire::Skip], ticks::Faults { edits: 1, elections: 1, ..ON_TIME }),
    ),
];

/// The same with more faults in one history.
pub const LARGER_TICKS: &[(&str, Ticks)] = &[(
    "ticks, larger",
    ticks(
        4,
        [Misfire::RunLatest, Misfire::RunAll],
        ticks::Faults { crashes: 2, elections: 1, unknowns: 1, steps_back: 1, ahead: 1, halts: 1, edits: 1 },
    ),
)];

/// The world of that name.
pub fn of<M: Copy>(worlds: &[(&'static str, M)], name: &str) -> (&'static str, M) {
    *worlds.iter().find(|(found, _)| found.contains(name)).unwrap_or_else(|| panic!("no world is named {name}"))
}
