//! The model's store and the product's: every transaction of [`store`](crate::store), from every state that a few of them
//! lead to, is done by the product's store in memory as well, and both have to say and to hold the same. What the store in
//! memory does, those on PostgreSQL and SQLite do: the contract's tests show that.

pub mod payouts;
pub mod ticks;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bursar::domain::instruction::InstructionState;
use bursar::domain::job::{
    BatchDefinition, HandlerDefinition, JobDefinition, Misfire, ProbeDefinition, ProbeShape, RetryDefinition,
};
use bursar::domain::{Claim, ElectionName, JobName, TenureId, Term};
use bursar::store::memory::{MemoryState, MemoryStore};
use bursar::store::{
    Actor, Admission, AdvanceOutcome, CallFate, CallRecord, Entered as Answer, Fenced, JobChange, JobChangeOutcome,
    Leader, OpenRun, PlanSource, Store as _, TenureLimits, TenureStore, TickFate, TickRecord, TicksRecord, UnitFilter,
};
use chrono::DateTime;
use futures_util::FutureExt as _;
use uuid::Uuid;

use crate::store::{Entered, Fate, Rules, Store};
use crate::ticks::decided::timing;

/// The terms that there are.
const TERMS: u8 = 2;

#[derive(Debug, Clone, Copy)]
enum Op {
    Advance(u8),
    Recover(u8),
    Take(u8),
    Record(u8, u8, Fate),
    PutBack(u8, bool),
    Halt,
    Resume,
}

fn all() -> Vec<Op> {
    let mut ops = vec![Op::Halt, Op::Resume];
    for term in 1..=TERMS {
        ops.extend([Op::Advance(term), Op::Recover(term), Op::Take(term)]);
        ops.extend([Op::PutBack(term, false), Op::PutBack(term, true)]);
        for attempt in 1..=2 {
            ops.extend(Fate::ALL.map(|fate| Op::Record(term, attempt, fate)));
        }
    }
    ops
}

struct Open;

#[async_trait]
impl Admission for Open {
    async fn admitted(&self) -> bool {
        true
    }
}

fn now<T>(answer: impl Future<Output = T>) -> T {
    answer.now_or_never().expect("the store in memory answers at once")
}

fn election() -> ElectionName {
    ElectionName::new("settlement").expect("a valid name")
}

fn claim(term: u8) -> Claim {
    let tenure_id = TenureId(Uuid::from_u128(u128::from(term)));
    Claim { election: election(), term: Term::new(i64::from(term)).expect("not negative"), tenure_id }
}

fn actor() -> Actor {
    Actor { user: "operator".to_owned(), host: "here".to_owned() }
}

fn definition(idempotent: bool) -> JobDefinition {
    JobDefinition {
        name: JobName::new("calls").expect("a valid name"),
        election: election(),
        timing: timing(Misfire::RunLatest),
        handler: HandlerDefinition::Probe(ProbeDefinition {
            shape: ProbeShape::Outside,
            idempotent,
            ..ProbeDefinition::default()
        }),
        batch: BatchDefinition { size: 10, concurrency: 1 },
        retry: RetryDefinition {
            max_attempts: 2,
            backoff_min: Duration::from_millis(1),
            backoff_max: Duration::from_millis(1),
        },
    }
}

/// The product's store, with one unit to be called for.
struct Twin {
    store: MemoryStore,
    run: OpenRun,
}

impl Twin {
    fn new(idempotent: bool) -> Self {
        let clock = || DateTime::from_timestamp(1_800_000_000, 0).expect("in range");
        let store = MemoryStore::new(Arc::new(clock), Uuid::from_u128(7));
        let leader = Leader { replica: "a".to_owned(), host: "here".to_owned(), version: "0".to_owned() };
        now(store.advance(&claim(1), &leader, Duration::ZERO)).expect("the first term is accepted");
        let tenure = open(&store, 1);
        let definition = definition(idempotent);
        let change = JobChange {
            name: definition.name.clone(),
            definition: Some(definition),
            expected: None,
            settled: Vec::new(),
            evaluated_until: DateTime::UNIX_EPOCH,
        };
        let Ok(Answer::Mine(JobChangeOutcome::Changed(Some(job)))) = now(tenure.change_job(change)) else {
            panic!("the job is new");
        };
        let at = clock();
        let fate = TickFate::Open { caught_up: false };
        let tick = TickRecord { tick: at, due_at: at, cutoff_at: at, value_date: at.date_naive(), fate };
        let record = TicksRecord { evaluated_until: job.evaluated_until, ticks: vec![tick], job: *job };
        mine(now(tenure.record_ticks(record)));
        let run = mine(now(tenure.open_runs())).remove(0);
        let source = PlanSource::Keys(vec!["unit".to_owned()]);
        mine(now(tenure.plan_page(&run, &source, None, 10)));
        let run = mine(now(tenure.open_runs())).remove(0);
        Self { store, run }
    }

    /// The row as the product has it: state, doubt, tries, and those that were charged.
    fn row(&self) -> (InstructionState, bool, u32, u32) {
        let filter = UnitFilter { run: Some(self.run.id), limit: 10, ..UnitFilter::default() };
        let unit = now(self.store.units(&filter)).expect("it answers").remove(0);
        match unit.instructions.first() {
            Some(call) => {
                let state = InstructionState::parse(&call.state).expect("a known state");
                (state, call.in_doubt, call.attempts, unit.attempts)
            }
            None => (InstructionState::Pending, false, 0, unit.attempts),
        }
    }

    fn fence(&self) -> (i64, bool) {
        let fence = now(self.store.fence(&election())).expect("it answers").expect("somebody led");
        (fence.holder.term.get(), fence.halt.is_some())
    }

    /// Does what the model did, and answers what it said.
    fn follow(&self, op: Op, instruction: i64) -> String {
        let store = &self.store;
        let said = |entered: Result<Answer<u64>, _>| match entered.expect("nothing fails here") {
            Answer::Mine(count) => format!("mine {count}"),
            Answer::Fenced(_) => "fenced".to_owned(),
            Answer::Halted(_) => "halted".to_owned(),
        };
        match op {
            Op::Advance(term) => {
                let leader = Leader { replica: "a".to_owned(), host: "here".to_owned(), version: "0".to_owned() };
                match now(store.advance(&claim(term), &leader, Duration::ZERO)).expect("nothing fails here") {
                    AdvanceOutcome::Accepted { .. } => "accepted".to_owned(),
                    AdvanceOutcome::Lost(_) => "lost".to_owned(),
                }
            }
            Op::Recover(term) => said(now(open(store, term).recover()).map(|done| done.map(|_| 0))),
            Op::Take(term) => {
                let taken = now(open(store, term).take_calls(&self.run, 10));
                said(taken.map(|calls| calls.map(|calls| calls.len() as u64)))
            }
            Op::Record(term, attempt, fate) => {
                let record = CallRecord { instruction, attempt: u32::from(attempt), fate: product(fate) };
                said(now(open(store, term).record_calls(self.run.id, &[record])).map(|done| done.map(|_| 0)))
            }
            Op::PutBack(term, in_hand) => {
                let kept = if in_hand { vec![(instruction, self.row().2)] } else { Vec::new() };
                said(now(open(store, term).put_back(self.run.id, &kept)).map(|done| done.map(|_| 0)))
            }
            Op::Halt => {
                now(store.halt(&election(), "test", &actor())).expect("nothing fails here");
                "done".to_owned()
            }
            Op::Resume => {
                now(store.resume(&election(), "test", &actor())).expect("nothing fails here");
                "done".to_owned()
            }
        }
    }
}

fn open(store: &MemoryStore, term: u8) -> Arc<dyn TenureStore> {
    let limits = TenureLimits {
        connections: 1,
        statement_timeout: Duration::ZERO,
        lock_timeout: Duration::ZERO,
        idle_in_transaction_timeout: Duration::ZERO,
        acquire_timeout: Duration::ZERO,
    };
    let lineage = now(store.health()).expect("it is healthy").lineage;
    now(store.tenure(&claim(term), limits, lineage, Arc::new(Open))).expect("it opens")
}

fn mine<T>(answer: Fenced<T>) -> T {
    match answer.expect("the store answers") {
        Answer::Mine(done) => done,
        Answer::Fenced(_) | Answer::Halted(_) => panic!("the claim is in force"),
    }
}

/// The product's word for a fate.
fn product(fate: Fate) -> CallFate {
    let error = "it failed".to_owned();
    let wait = Duration::ZERO;
    match fate {
        Fate::Done => CallFate::Done,
        Fate::Failed { again } => CallFate::Failed { error, again_in: again.then_some(wait) },
        Fate::NotSent => CallFate::NotSent,
        Fate::Stopped => CallFate::Stopped { error, again_in: wait, left: true },
        Fate::PutOff => CallFate::PutOff { error, again_in: wait },
        Fate::Unknown { again } => CallFate::Unknown { error, again_in: again.then_some(wait) },
    }
}

/// What the model does and says.
fn lead(store: &mut Store, op: Op, rules: Rules) -> String {
    let enter = |store: &Store, term, begins| match store.enter(term, begins, rules) {
        Entered::Mine => Ok(()),
        Entered::Fenced => Err("fenced".to_owned()),
        Entered::Halted => Err("halted".to_owned()),
    };
    let does = |store: &mut Store| -> Result<String, String> {
        match op {
            Op::Advance(term) => return Ok(if store.advance(term) { "accepted" } else { "lost" }.to_owned()),
            Op::Recover(term) => {
                enter(store, term, false)?;
                store.recover(term, rules);
            }
            Op::Take(term) => {
                enter(store, term, true)?;
                let due = store.may_be_taken(0);
                if due {
                    store.take(term, 0);
                }
                return Ok(format!("mine {}", u8::from(due)));
            }
            Op::Record(term, attempt, fate) => {
                enter(store, term, false)?;
                store.record(term, 0, attempt, fate, rules);
            }
            Op::PutBack(term, in_hand) => {
                enter(store, term, false)?;
                store.put_back(term, if in_hand { &[0] } else { &[] });
            }
            Op::Halt | Op::Resume => {
                store.halted = matches!(op, Op::Halt);
                return Ok("done".to_owned());
            }
        }
        Ok("mine 0".to_owned())
    };
    does(store).unwrap_or_else(|refused| refused)
}

/// Answers how many states and steps were compared.
pub fn compare(idempotent: bool, most_attempts: u8) -> (usize, usize) {
    let rules = Rules { idempotent, defect: None };
    let twin = Twin::new(idempotent);
    let mut first = Store::new(1);
    first.fence = 1;
    // The call's id is the next that the store gives out; it is the same in every history.
    let begin = twin.store.snapshot();
    let instruction = mine(now(open(&twin.store, 1).take_calls(&twin.run, 10)))[0].instruction;
    let mut seen: HashMap<Store, MemoryState> = HashMap::from([(first.clone(), begin)]);
    let (mut waiting, mut steps) = (vec![first], 0);
    while let Some(before) = waiting.pop() {
        let content = seen[&before].clone();
        for op in all() {
            let mut after = before.clone();
            let said = lead(&mut after, op, rules);
            if after.rows[0].attempts > most_attempts {
                continue;
            }
            // Before the first take there is no call to be spoken of.
            if before.rows[0].attempts == 0 && matches!(op, Op::Record(..) | Op::PutBack(..)) {
                continue;
            }
            twin.store.restore(content.clone());
            let answered = twin.follow(op, instruction);
            assert_eq!(answered, said, "{op:?} from {before:?}");
            let row = after.rows[0];
            assert_eq!(
                (twin.row(), twin.fence()),
                (
                    (row.state, row.in_doubt, u32::from(row.attempts), u32::from(row.charged)),
                    (i64::from(after.fence), after.halted)
                ),
                "{op:?} from {before:?}"
            );
            steps += 1;
            if !seen.contains_key(&after) {
                seen.insert(after.clone(), twin.store.snapshot());
                waiting.push(after);
            }
        }
    }
    (seen.len(), steps)
}
