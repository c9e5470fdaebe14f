//! What must have come to an end some time after trouble is over: ticks, runs, units, instructions, terms; and to which end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bursar::domain::instruction::InstructionState;
use bursar::domain::job::{HandlerDefinition, LedgerDefinition};
use bursar::domain::run::{RunKind, RunState};
use bursar::domain::unit::UnitState;
use bursar::domain::{ElectionName, JobName};
use bursar::schedule::Schedule;
use bursar::store::{StatusView, Store as _};
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::FutureExt as _;

use crate::facts::Views;
use crate::receiver::Habits;
use crate::scenario::{BANK, HOUSE, Scenario};
use crate::world::World;

/// After trouble is over a new leader is at work within the lease's TTL and this: what is on the way still, and a promotion.
const AT_WORK_WITHIN: Duration = Duration::from_secs(6);
/// What a replica may think that the store's clock is away from what it is.
const CLOCK_ERROR: TimeDelta = TimeDelta::milliseconds(500);
/// A receiver that answers within so many milliseconds is mild.
const QUICK: u64 = 200;

/// The world some time after trouble is over.
pub struct Calm<'a> {
    scenario: &'a Scenario,
    views: Views,
    status: StatusView,
    /// Open entries that a run would take now.
    open_entries: u64,
    /// When trouble was over, by the store's clock now.
    since: DateTime<Utc>,
    /// How long after that somebody worked in an election.
    worked: BTreeMap<ElectionName, Duration>,
    marks: BTreeMap<JobName, DateTime<Utc>>,
}

type Check = (&'static str, fn(&Calm) -> Vec<String>);

/// All that is asked.
pub const CHECKS: &[Check] = &[
    ("jobs_are_brought_up", jobs_are_brought_up),
    ("at_work_in_time", at_work_in_time),
    ("ticks_are_evaluated", ticks_are_evaluated),
    ("every_tick_has_one_outcome", every_tick_has_one_outcome),
    ("policy_strikes_past_the_grace_only", policy_strikes_past_the_grace_only),
    ("runs_end", runs_end),
    ("entries_are_bound", entries_are_bound),
    ("payouts_end", payouts_end),
    ("mild_receivers_are_paid_at", mild_receivers_are_paid_at),
];

/// What was there when trouble ended and is not over yet, or ended otherwise than it should; nothing where all is well.
pub fn what_is_left(world: &World, scenario: &Scenario, calm: Duration) -> Vec<String> {
    let views = Views::read(&world.judge).now_or_never().expect("memory answers at once");
    let status = world.judge.status().now_or_never().expect("memory answers at once").expect("the judge has no faults");
    let lasted = world.now().saturating_sub(calm);
    let (worked, marks) = {
        let state = world.state();
        let after = |at: &Duration| at.saturating_sub(calm);
        let worked = state.facts.worked.iter().map(|(election, at)| (election.clone(), after(at))).collect();
        (worked, state.facts.marks.clone())
    };
    let since = world.store_time() - TimeDelta::from_std(lasted).expect("short");
    let open_entries = open_entries(world, scenario);
    let calm = Calm { scenario, views, status, open_entries, since, worked, marks };
    let found =
        |(name, check): &Check| check(&calm).into_iter().map(|found| format!("liveness: {name}: {found}")).collect();
    CHECKS.iter().flat_map(|check| -> Vec<String> { found(check) }).collect()
}

fn open_entries(world: &World, scenario: &Scenario) -> u64 {
    let ledgers = scenario.schedules[0].jobs.iter().filter_map(|job| match &job.handler {
        HandlerDefinition::Ledger(ledger) => Some((&job.name, ledger)),
        HandlerDefinition::Sql(_)
        | HandlerDefinition::Http(_)
        | HandlerDefinition::Command(_)
        | HandlerDefinition::Probe(_) => None,
    });
    let now = world.store_time();
    let of = |(job, ledger): (&JobName, &LedgerDefinition)| {
        let lines = world.judge.preview(job, ledger, &[now]).now_or_never().expect("memory answers at once");
        lines.expect("the judge has no faults").iter().map(|line| line.entries).sum::<u64>()
    };
    ledgers.map(of).sum()
}

fn jobs_are_brought_up(calm: &Calm) -> Vec<String> {
    let there: BTreeSet<&JobName> = calm.status.jobs.iter().map(|job| &job.job).collect();
    let first = calm.scenario.schedules[0].jobs.iter().map(|job| &job.name);
    // Edits take jobs away; the first never.
    let expected = first.take(if calm.scenario.is_edited() { 1 } else { usize::MAX });
    expected.filter(|job| !there.contains(job)).map(|job| format!("{job} is not there")).collect()
}

/// L1.
fn at_work_in_time(calm: &Calm) -> Vec<String> {
    let bound = calm.scenario.ttl + AT_WORK_WITHIN;
    let late = |election: &ElectionName| match calm.worked.get(election) {
        Some(after) => (*after > bound).then(|| format!("{election} was at work after {after:?} only")),
        None => Some(format!("nobody works in {election}")),
    };
    calm.scenario.worked_in().iter().filter_map(late).collect()
}

/// L3; a second is the precision of ticks.
fn ticks_are_evaluated(calm: &Calm) -> Vec<String> {
    let late = calm.status.jobs.iter().filter(|job| job.evaluated_until < calm.since - TimeDelta::seconds(1));
    late.map(|job| format!("those of {} until {} only", job.job, job.evaluated_until)).collect()
}

/// L3, S5: of every tick since its job was brought up there is one record, whatever it says.
fn every_tick_has_one_outcome(calm: &Calm) -> Vec<String> {
    if calm.scenario.is_edited() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for job in &calm.scenario.schedules[0].jobs {
        let until = calm.status.jobs.iter().find(|seen| seen.job == job.name).map(|seen| seen.evaluated_until);
        let (Some(from), Some(until)) = (calm.marks.get(&job.name), until) else { continue };
        let schedule = Schedule::new(&job.timing).expect("scenarios have sound ones");
        let due = schedule.ticks_after(*from).take_while(|tick| tick.due_at <= until);
        let expected: Vec<DateTime<Utc>> = due.map(|tick| tick.nominal).collect();
        let runs = calm.views.runs.iter().filter(|run| run.job == job.name && run.kind == RunKind::Tick);
        let mut there: Vec<DateTime<Utc>> = runs.map(|run| run.tick).collect();
        there.sort_unstable();
        if expected != there {
            found.push(format!("of {} expected {expected:?}, found {there:?}", job.name));
        }
    }
    found
}

/// L3: no tick of a scan is taken for missed while all of them are within the grace.
fn policy_strikes_past_the_grace_only(calm: &Calm) -> Vec<String> {
    if calm.scenario.is_edited() || calm.scenario.steps_the_clock() {
        return Vec::new();
    }
    let grace = |job: &JobName| {
        let found = calm.scenario.schedules[0].jobs.iter().find(|found| found.name == *job);
        found.and_then(|job| TimeDelta::from_std(job.timing.misfire_grace).ok()).unwrap_or(TimeDelta::MAX)
    };
    let ticks = || calm.views.runs.iter().filter(|run| run.kind == RunKind::Tick);
    // A scan's ticks are recorded at one moment.
    let mut latest = BTreeMap::new();
    for run in ticks() {
        let late = latest.entry((&run.job, run.opened_at)).or_insert(TimeDelta::zero());
        *late = (run.opened_at - run.due_at).max(*late);
    }
    let struck = ticks().filter(|run| match run.state {
        RunState::Coalesced => true,
        RunState::Skipped => run.why.as_deref() == Some("misfire: skip"),
        _ => false,
    });
    struck
        .filter(|run| latest[&(&run.job, run.opened_at)] + CLOCK_ERROR < grace(&run.job))
        .map(|run| format!("{} of {}: {}", run.tick, run.job, run.why.as_deref().unwrap_or_default()))
        .collect()
}

fn runs_end(calm: &Calm) -> Vec<String> {
    let open = calm.views.runs.iter().filter(|run| run.state.is_open() && run.opened_at <= calm.since);
    open.map(|run| {
        format!("run {} of {} is {:?}, with {} units pending", run.id, run.job, run.state, run.units.pending)
    })
    .collect()
}

/// L4: what came in is in some unit, whoever it is for.
fn entries_are_bound(calm: &Calm) -> Vec<String> {
    let open = calm.open_entries;
    if open > 0 { vec![format!("{open} entries are in no unit")] } else { Vec::new() }
}

fn payouts_end(calm: &Calm) -> Vec<String> {
    let is_over = |payout: &bursar::store::PayoutView| match payout.state {
        // A job that pays nobody leaves them to whoever takes them from the store.
        InstructionState::Pending => !calm.scenario.receivers.contains_key(BANK),
        InstructionState::Sending | InstructionState::Unknown => false,
        InstructionState::Held => payout.reason.is_some(),
        InstructionState::Paid | InstructionState::Rejected | InstructionState::Returned => true,
    };
    let left = calm.views.payouts.iter().filter(|payout| payout.created_at <= calm.since && !is_over(payout));
    left.map(|payout| format!("{} is {:?} after {} tries", payout.key, payout.state, payout.attempts)).collect()
}

/// Where nothing is refused and everything may be sent again, nothing is left to a person.
fn mild_receivers_are_paid_at(calm: &Calm) -> Vec<String> {
    let is_mild = |host: &str| {
        let mild = |habits: &Habits| habits.idempotent && habits.is_smooth() && habits.slow <= QUICK;
        calm.scenario.receivers.get(host).is_some_and(mild) && !calm.scenario.troubles_receivers()
    };
    let mut found = Vec::new();
    if is_mild(BANK) {
        let left = calm.views.payouts.iter().filter(|payout| {
            matches!(payout.state, InstructionState::Held | InstructionState::Rejected | InstructionState::Returned)
        });
        found.extend(left.map(|payout| format!("{} is {:?}: {:?}", payout.key, payout.state, payout.reason)));
    }
    if is_mild(HOUSE) {
        let calls: BTreeSet<i64> =
            calm.views.runs.iter().filter(|run| run.job.as_str() == "call").map(|run| run.id).collect();
        let left =
            calm.views.units.iter().filter(|unit| unit.state == UnitState::SetAside && calls.contains(&unit.run));
        found.extend(left.map(|unit| format!("{} is set aside: {:?}", unit.key, unit.last_error)));
    }
    found
}
