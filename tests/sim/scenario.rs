//! What a seed stands for: replicas, jobs, receivers, entries, and what goes wrong when. Drawn once, before anything runs.
//!
//! Each seed draws from some kinds of trouble only, so that one kind is seen without another that would hide it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bursar::domain::entry::{EntryKind, NewEntry};
use bursar::domain::job::{
    BatchDefinition, CatchUpOrder, CutoffRule, FoldRule, GapRule, HandlerDefinition, JobDefinition, LedgerDefinition,
    Misfire, Overlap, PayoutDefinition, Release, RetryDefinition, Timing,
};
use bursar::domain::money::Currency;
use bursar::domain::outside::{HttpDefinition, ReceiverDefinition};
use bursar::domain::{ElectionName, JobName};
use bursar::tenure::ScheduleInForce;
use chrono::DateTime;

use crate::receiver::Habits;
use crate::world::{BadCommits, To};

/// Trouble lasts from here to there.
pub const TROUBLE: std::ops::Range<u64> = 2_000..30_000;

/// Who is sent payouts, and who calls.
pub const BANK: &str = "bank.test";
pub const HOUSE: &str = "house.test";

/// The query for units of calls.
pub const QUERY: &str = "select key from calls";

/// What happens at a moment.
#[derive(Debug, Clone)]
pub enum Act {
    Crash {
        place: usize,
        down: Duration,
    },
    Drain {
        place: usize,
        down: Duration,
    },
    Pause {
        place: usize,
        time: Duration,
    },
    Cut {
        place: usize,
        to: To,
        time: Duration,
    },
    CutAll {
        to: To,
        time: Duration,
    },
    Slow {
        place: usize,
        to: To,
        time: Duration,
    },
    Deaf {
        place: usize,
        to: To,
        time: Duration,
    },
    Commits {
        bad: BadCommits,
        time: Duration,
    },
    Coordinator(Hand),
    DeleteLeader {
        election: ElectionName,
    },
    LeaselessLeader {
        election: ElectionName,
    },
    Halt {
        election: ElectionName,
        time: Duration,
    },
    Edit {
        edited: usize,
    },
    StepStore {
        seconds: i64,
    },
    Import {
        entries: Vec<NewEntry>,
    },
    Trigger {
        job: JobName,
    },
    HoldMerchant {
        merchant: String,
        time: Duration,
    },
    ReceiverAway {
        host: String,
        time: Duration,
    },
    /// The election is to be handed over, to the replica in that place or to any.
    Transfer {
        election: ElectionName,
        to: Option<usize>,
    },
    Cordon {
        place: usize,
        time: Duration,
    },
}

/// What happens to the coordinator as a whole.
#[derive(Debug, Clone, Copy)]
pub enum Hand {
    Wipe,
    Backup,
    Restore,
    /// Every lease lapses before its time.
    Lapse,
}

/// A seed's scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub seed: u64,
    pub replicas: usize,
    /// Each replica's clock runs so many parts in a million fast.
    pub skews: Vec<i64>,
    pub elections: Vec<ElectionName>,
    pub ttl: Duration,
    pub teardown_budget: Duration,
    /// The schedule at the start, and edits of it.
    pub schedules: Vec<ScheduleInForce>,
    pub receivers: BTreeMap<String, Habits>,
    pub calls: Vec<String>,
    pub acts: Vec<(Duration, Act)>,
}

/// Kinds of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    Crash,
    Drain,
    Pause,
    CutCoordinator,
    CutStore,
    CutReceiver,
    CutAll,
    Slow,
    Deaf,
    Commits,
    Coordinator,
    Hands,
    Halt,
    Edit,
    Step,
    Trigger,
    Hold,
    Away,
    Transfer,
    Cordon,
}

const TROUBLES: [Trouble; 20] = [
    Trouble::Crash,
    Trouble::Drain,
    Trouble::Pause,
    Trouble::CutCoordinator,
    Trouble::CutStore,
    Trouble::CutReceiver,
    Trouble::CutAll,
    Trouble::Slow,
    Trouble::Deaf,
    Trouble::Commits,
    Trouble::Coordinator,
    Trouble::Hands,
    Trouble::Halt,
    Trouble::Edit,
    Trouble::Step,
    Trouble::Trigger,
    Trouble::Hold,
    Trouble::Away,
    Trouble::Transfer,
    Trouble::Cordon,
];

struct Draw(fastrand::Rng);

impl Draw {
    fn ms(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.0.u64(range))
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.0.usize(0..of.len())].clone()
    }
}

fn election(name: &str) -> ElectionName {
    ElectionName::new(name).expect("valid")
}

fn eur() -> Currency {
    Currency::new("EUR").expect("known")
}

fn timing(draw: &mut Draw) -> Timing {
    let every = draw.one(&[5, 7, 10, 15]);
    Timing {
        cron: format!("*/{every} * * * * *"),
        timezone: chrono_tz::UTC,
        gap: GapRule::Shift,
        fold: FoldRule::First,
        misfire: draw.one(&[Misfire::RunLatest, Misfire::RunAll, Misfire::Skip]),
        misfire_grace: draw.ms(1_000..6_000),
        catch_up_window: Duration::from_hours(1),
        catch_up_max: draw.0.u32(1..=2),
        catch_up_order: draw.one(&[CatchUpOrder::Oldest, CatchUpOrder::Newest]),
        overlap: draw.one(&[Overlap::Queue, Overlap::Skip]),
        cutoff: CutoffRule::Before(Duration::ZERO),
        business_days: None,
        run_deadline: None,
    }
}

fn receiver(draw: &mut Draw, host: &str, habits: &mut BTreeMap<String, Habits>) -> ReceiverDefinition {
    let idempotent = draw.0.bool();
    let rough = draw.one(&[0, 30, 150]);
    habits.insert(
        host.to_owned(),
        Habits {
            idempotent,
            checks_tokens: draw.0.bool(),
            lost: rough / 2,
            unanswered: rough,
            busy: rough,
            failing: rough / 2,
            refusing: rough / 2,
            elsewhere: draw.one(&[0, rough / 4]),
            mistaken: draw.one(&[0, rough / 4]),
            slow: draw.one(&[5, 200, 1_500]),
            away_until: Duration::ZERO,
        },
    );
    ReceiverDefinition {
        url: format!("http://{host}/payouts"),
        idempotent,
        // What can only be asked for is asked until then, and held.
        key_valid_for: if idempotent { Duration::from_hours(24) } else { Duration::from_secs(20) },
        refusals: BTreeSet::from([422]),
        max_refusals: 5,
        not_done: BTreeSet::from([503]),
        timeout: draw.ms(500..2_000),
        secret_files: Vec::new(),
        tls_ca: None,
        lookup_url: draw.0.bool().then(|| format!("http://{host}/payouts/{{key}}")),
        max_per_second: None,
        max_in_flight: draw.0.u32(1..=8),
    }
}

fn job(draw: &mut Draw, name: &str, election: &ElectionName, handler: HandlerDefinition) -> JobDefinition {
    JobDefinition {
        name: JobName::new(name).expect("valid"),
        election: election.clone(),
        timing: timing(draw),
        handler,
        batch: BatchDefinition { size: draw.0.u32(1..=8), concurrency: draw.0.u32(1..=2) },
        retry: RetryDefinition {
            max_attempts: 4,
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(1),
        },
    }
}

fn jobs(draw: &mut Draw, elections: &[ElectionName], habits: &mut BTreeMap<String, Habits>) -> Vec<JobDefinition> {
    let payout = match draw.0.u32(0..8) {
        0 => PayoutDefinition::None,
        _ => PayoutDefinition::Http(Box::new(receiver(draw, BANK, habits))),
    };
    let ledger = HandlerDefinition::Ledger(LedgerDefinition {
        sources: BTreeSet::new(),
        currencies: BTreeSet::new(),
        merchants: BTreeSet::new(),
        minimum_payout: BTreeMap::from([(eur(), draw.one(&[0, 500]))]),
        maximum_payout: BTreeMap::from([(eur(), 1_000_000)]),
        release: Release::Auto,
        payout,
    });
    let mut jobs = vec![job(draw, "settle", &elections[0], ledger)];
    if elections.len() > 1 || draw.0.bool() {
        let receiver = receiver(draw, HOUSE, habits);
        let calls = HandlerDefinition::Http(HttpDefinition { units: QUERY.to_owned(), receiver });
        let last = elections.last().expect("at least one");
        jobs.push(job(draw, "call", last, calls));
    }
    jobs
}

fn in_force(jobs: Vec<JobDefinition>) -> ScheduleInForce {
    let fingerprint = bursar::domain::job::fingerprint(&jobs);
    ScheduleInForce { jobs, fingerprint }
}

/// The schedule as somebody edits it: other times, a job that goes, a job that moves.
fn edited(draw: &mut Draw, elections: &[ElectionName], jobs: &[JobDefinition]) -> Vec<JobDefinition> {
    let mut jobs = jobs.to_vec();
    match draw.0.u32(0..3) {
        0 if jobs.len() > 1 => {
            jobs.pop();
        }
        1 => jobs[0].election = draw.one(elections),
        _ => jobs[0].timing = timing(draw),
    }
    jobs
}

fn entries(draw: &mut Draw, next: &mut u32, at: Duration) -> Vec<NewEntry> {
    let at = DateTime::from_timestamp(1_700_000_000 + i64::try_from(at.as_secs()).unwrap_or(0), 0).expect("in range");
    (0..draw.0.u32(1..=6))
        .map(|_| {
            *next += 1;
            let (kind, amount) = match draw.0.u32(0..5) {
                0 => (EntryKind::Refund, -draw.0.i64(1..4_000)),
                _ => (EntryKind::Capture, draw.0.i64(1..20_000)),
            };
            NewEntry {
                id: format!("e-{next}"),
                merchant: format!("m-{}", draw.0.u32(0..5)),
                currency: eur(),
                kind,
                amount,
                fee: if kind == EntryKind::Capture { draw.0.i64(0..=amount / 10) } else { 0 },
                occurred_at: at,
                available_at: at,
                reference: None,
            }
        })
        .collect()
}

impl Scenario {
    pub fn of(seed: u64) -> Self {
        let mut draw = Draw(fastrand::Rng::with_seed(seed ^ 0x5e77_1e00));
        let replicas = draw.0.usize(2..=4);
        let mut elections = vec![election("settlement")];
        if draw.0.u32(0..3) == 0 {
            elections.push(election("second"));
        }
        let mut receivers = BTreeMap::new();
        let first = jobs(&mut draw, &elections, &mut receivers);
        let mut schedules = vec![in_force(first.clone())];
        for _ in 0..2 {
            let next = edited(&mut draw, &elections, &first);
            schedules.push(in_force(next));
        }
        let ttl = draw.one(&[2, 3, 5]);
        let mut scenario = Self {
            seed,
            replicas,
            skews: (0..replicas).map(|_| draw.one(&[0, 0, 10_000, -10_000])).collect(),
            elections,
            ttl: Duration::from_secs(ttl),
            teardown_budget: Duration::from_millis(ttl * 200),
            schedules,
            receivers,
            calls: (0..draw.0.u32(1..=4)).map(|number| format!("call-{number}")).collect(),
            acts: Vec::new(),
        };
        scenario.draw_acts(&mut draw);
        scenario
    }

    fn draw_acts(&mut self, draw: &mut Draw) {
        let mut troubles: Vec<Trouble> = TROUBLES.into_iter().filter(|_| draw.0.u32(0..3) == 0).collect();
        // The audit knows halts by the store's clock: one that goes back would make its question meaningless.
        if troubles.contains(&Trouble::Step) {
            troubles.retain(|trouble| *trouble != Trouble::Halt);
        }
        let mut next = 0;
        for _ in 0..draw.0.u32(3..=6) {
            let at = draw.ms(0..TROUBLE.end);
            let entries = entries(draw, &mut next, at);
            self.acts.push((at, Act::Import { entries }));
        }
        if !troubles.is_empty() {
            for _ in 0..draw.0.u32(3..=12) {
                let at = draw.ms(TROUBLE);
                let trouble = draw.one(&troubles);
                let act = self.act(draw, trouble);
                self.acts.push((at, act));
            }
        }
        self.acts.sort_by_key(|(at, _)| *at);
    }

    fn act(&self, draw: &mut Draw, trouble: Trouble) -> Act {
        let place = draw.0.usize(0..self.replicas);
        let ttl = u64::try_from(self.ttl.as_millis()).unwrap_or(5_000);
        let time = draw.ms(50..ttl * 3);
        let to = draw.one(&[To::Coordinator, To::Store, To::Receiver]);
        match trouble {
            Trouble::Crash => Act::Crash { place, down: draw.ms(10..6_000) },
            Trouble::Drain => Act::Drain { place, down: draw.ms(10..6_000) },
            Trouble::Pause => Act::Pause { place, time },
            Trouble::CutCoordinator => Act::Cut { place, to: To::Coordinator, time },
            Trouble::CutStore => Act::Cut { place, to: To::Store, time },
            Trouble::CutReceiver => Act::Cut { place, to: To::Receiver, time },
            Trouble::CutAll => Act::CutAll { to, time },
            Trouble::Slow => Act::Slow { place, to, time },
            Trouble::Deaf => Act::Deaf { place, to, time },
            Trouble::Commits => {
                let (unknown, try_again) = (draw.0.u32(20..200), draw.0.u32(0..100));
                Act::Commits { bad: BadCommits { unknown, try_again, contended: draw.one(&[0, 0, 900]) }, time }
            }
            Trouble::Coordinator => Act::Coordinator(draw.one(&[Hand::Wipe, Hand::Backup, Hand::Restore, Hand::Lapse])),
            Trouble::Hands => {
                let election = draw.one(&self.elections);
                draw.one(&[
                    Act::DeleteLeader { election: election.clone() },
                    Act::DeleteLeader { election: election.clone() },
                    Act::LeaselessLeader { election },
                ])
            }
            Trouble::Halt => Act::Halt { election: draw.one(&self.elections), time: time * 2 },
            Trouble::Edit => Act::Edit { edited: draw.0.usize(0..self.schedules.len()) },
            Trouble::Step => Act::StepStore { seconds: draw.one(&[-20, -5, -1, 1, 5, 30, 90]) },
            Trouble::Trigger => Act::Trigger { job: draw.one(&self.schedules[0].jobs).name },
            Trouble::Transfer => {
                let to = draw.0.bool().then_some(place);
                Act::Transfer { election: draw.one(&self.elections), to }
            }
            Trouble::Cordon => Act::Cordon { place, time },
            Trouble::Hold => Act::HoldMerchant { merchant: format!("m-{}", draw.0.u32(0..5)), time },
            Trouble::Away => {
                let hosts: Vec<String> = self.receivers.keys().cloned().collect();
                if hosts.is_empty() {
                    Act::Coordinator(Hand::Lapse)
                } else {
                    Act::ReceiverAway { host: draw.one(&hosts), time }
                }
            }
        }
    }
}
