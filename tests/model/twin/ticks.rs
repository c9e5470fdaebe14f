//! The same for ticks: what records them, and what puts an edit in force, from every state of a job's row that a few of these
//! lead to, also while halted and with a clock that goes back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use bursar::domain::job::{JobDefinition, Misfire};
use bursar::domain::run::RunState;
use bursar::schedule::{Outcome, TickDecision};
use bursar::store::memory::{MemoryState, MemoryStore};
use bursar::store::{
    AdvanceOutcome, Entered as Answer, Fenced, JobChange, JobChangeOutcome, JobRow, Leader, RunFilter, Store as _,
    TickFate, TickRecord, TicksOutcome, TicksRecord,
};
use uuid::Uuid;

use super::{actor, claim, definition, election, mine, now, open};
use crate::ticks::book::{Book, Read, Rules, Said};
use crate::ticks::decided::{Fate, at, scan, timing};

/// Ticks there are.
const TICKS: u8 = 2;
/// The terms that there are.
const TERMS: u8 = 2;

#[derive(Debug, Clone, Copy)]
enum Op {
    Advance(u8),
    Halt,
    Resume,
    Forward,
    Back,
    Record(u8, Read),
}

fn all() -> Vec<Op> {
    let mut reads = Vec::new();
    for (from, to) in (0..=TICKS).flat_map(|from| (0..=TICKS).map(move |to| (from, to))) {
        reads.push(Read { edited: false, from, to, edits: true });
        // Where nothing is due nothing is recorded.
        reads.extend(
            [false, true].map(|edited| Read { edited, from, to, edits: false }).into_iter().filter(|_| from < to),
        );
    }
    let of_term =
        |term| std::iter::once(Op::Advance(term)).chain(reads.iter().map(move |read| Op::Record(term, *read)));
    [Op::Halt, Op::Resume, Op::Forward, Op::Back].into_iter().chain((1..=TERMS).flat_map(of_term)).collect()
}

fn with(misfire: Misfire) -> JobDefinition {
    JobDefinition { timing: timing(misfire), ..definition(true) }
}

fn leader() -> Leader {
    Leader { replica: "a".to_owned(), host: "here".to_owned(), version: "0".to_owned() }
}

fn recorded(decision: &TickDecision) -> TickRecord {
    let fate = match decision.outcome {
        Outcome::Open { .. } => TickFate::Open { caught_up: false },
        Outcome::CatchUp { .. } => TickFate::Open { caught_up: true },
        Outcome::Coalesced { .. } => TickFate::Coalesced("with a later one".to_owned()),
        Outcome::Skipped(_) => TickFate::Skipped("its policy".to_owned()),
        Outcome::Missed { .. } => TickFate::Missed("too old".to_owned()),
    };
    TickRecord {
        tick: decision.tick.nominal,
        due_at: decision.tick.due_at,
        cutoff_at: decision.cutoff_at,
        value_date: decision.value_date,
        fate,
    }
}

/// The product's store, with one job, on a clock that is set.
struct Twin {
    store: MemoryStore,
    time: Arc<AtomicU8>,
    first: JobRow,
    policies: [Misfire; 2],
}

impl Twin {
    fn new(policies: [Misfire; 2]) -> Self {
        let time = Arc::new(AtomicU8::new(0));
        let clock = Arc::clone(&time);
        let store = MemoryStore::new(Arc::new(move || at(clock.load(Ordering::SeqCst))), Uuid::from_u128(7));
        now(store.advance(&claim(1), &leader(), Duration::ZERO)).expect("the first term is accepted");
        let definition = with(policies[0]);
        let change = JobChange {
            name: definition.name.clone(),
            definition: Some(definition),
            expected: None,
            settled: Vec::new(),
            evaluated_until: at(0),
        };
        let changed = mine(now(open(&store, 1).change_job(change)));
        let JobChangeOutcome::Changed(Some(first)) = changed else { panic!("the job is new") };
        Self { store, time, first: *first, policies }
    }

    /// The row as a leader read it.
    fn row(&self, edited: bool, from: u8) -> JobRow {
        let definition = with(self.policies[usize::from(edited)]);
        let fingerprint = definition.fingerprint();
        JobRow { definition, fingerprint, evaluated_until: at(from), ..self.first.clone() }
    }

    fn record(&self, term: u8, read: Read) -> Said {
        let [old, new] = self.policies;
        let policy = if read.edited { new } else { old };
        let scan = scan(policy, read.edits.then_some(new), read.from, read.to);
        let (row, evaluated_until) = (self.row(read.edited, read.from), scan.evaluated_until);
        let ticks: Vec<TickRecord> = scan.decisions.iter().map(recorded).collect();
        let tenure = open(&self.store, term);
        if !read.edits {
            let record = TicksRecord { job: row, evaluated_until, ticks };
            return said(now(tenure.record_ticks(record)), |outcome| match outcome {
                TicksOutcome::Recorded { duplicates, .. } => {
                    Said::Recorded(u8::try_from(duplicates).expect("there are few"))
                }
                TicksOutcome::Moved => Said::Moved,
                TicksOutcome::NotYet { .. } => Said::NotYet,
            });
        }
        let definition = with(new);
        let change = JobChange {
            name: definition.name.clone(),
            definition: Some(definition),
            expected: Some(row),
            settled: ticks,
            evaluated_until,
        };
        said(now(tenure.change_job(change)), |outcome| match outcome {
            JobChangeOutcome::Changed(_) => Said::Changed,
            JobChangeOutcome::Moved => Said::Moved,
            JobChangeOutcome::NotYet { .. } => Said::NotYet,
            JobChangeOutcome::OtherElection(other) => panic!("there is no election {other}"),
        })
    }

    /// Does what the model did, and answers what it said.
    fn follow(&self, op: Op) -> Option<Said> {
        match op {
            Op::Advance(term) => match now(self.store.advance(&claim(term), &leader(), Duration::ZERO)) {
                Ok(AdvanceOutcome::Accepted { .. }) => None,
                Ok(AdvanceOutcome::Lost(_)) => Some(Said::Fenced),
                Err(error) => panic!("nothing fails here: {error}"),
            },
            Op::Halt => {
                now(self.store.halt(&election(), "test", &actor())).expect("nothing fails here");
                None
            }
            Op::Resume => {
                now(self.store.resume(&election(), "test", &actor())).expect("nothing fails here");
                None
            }
            Op::Forward | Op::Back => None,
            Op::Record(term, read) => Some(self.record(term, read)),
        }
    }

    /// The job as the product has it: whether it was edited, its mark, and its ticks' rows.
    fn job(&self) -> (bool, chrono::DateTime<chrono::Utc>, Vec<Option<Fate>>) {
        let status = now(self.store.status()).expect("it answers");
        let job = status.jobs.first().expect("it is there");
        let filter = RunFilter { limit: 100, ..RunFilter::default() };
        let runs = now(self.store.runs(&filter)).expect("it answers");
        let fate = |tick: u8| {
            let run = runs.iter().find(|run| run.tick == at(tick + 1))?;
            Some(match run.state {
                RunState::Coalesced => Fate::Coalesced,
                RunState::Skipped | RunState::Missed => Fate::Skipped,
                RunState::Planning | RunState::Open | RunState::Complete | RunState::CompleteSetAside => Fate::Opened,
            })
        };
        let rows: Vec<_> = (0..TICKS).map(fate).collect();
        assert_eq!(rows.iter().flatten().count(), runs.len(), "a run without its tick, or two of one");
        (job.fingerprint != self.first.fingerprint, job.evaluated_until, rows)
    }
}

fn said<T>(answer: Fenced<T>, outcome: impl FnOnce(T) -> Said) -> Said {
    match answer.expect("the store answers") {
        Answer::Mine(done) => outcome(done),
        Answer::Fenced(_) => Said::Fenced,
        Answer::Halted(_) => Said::Halted,
    }
}

/// What the model does and says; none where it says nothing.
fn lead(book: &mut Book, op: Op, rules: Rules) -> Option<Said> {
    match op {
        Op::Advance(term) if term < book.fence => Some(Said::Fenced),
        Op::Advance(term) => {
            book.fence = term;
            None
        }
        Op::Halt | Op::Resume => {
            book.halted = matches!(op, Op::Halt);
            None
        }
        Op::Forward => {
            book.now = (book.now + 1).min(TICKS);
            None
        }
        Op::Back => {
            book.now = book.now.saturating_sub(1);
            None
        }
        Op::Record(term, read) => Some(book.record(term, read, rules)),
    }
}

/// Answers how many states and steps were compared.
pub fn compare(policies: [Misfire; 2]) -> (usize, usize) {
    let rules = Rules { policies, defect: None };
    let twin = Twin::new(policies);
    let first = Book { fence: 1, ..Book::new(TICKS) };
    let mut seen: HashMap<Book, MemoryState> = HashMap::from([(first.clone(), twin.store.snapshot())]);
    let (mut waiting, mut steps) = (vec![first], 0);
    while let Some(before) = waiting.pop() {
        let content = seen[&before].clone();
        for op in all() {
            let mut after = before.clone();
            let said = lead(&mut after, op, rules);
            twin.store.restore(content.clone());
            twin.time.store(after.now, Ordering::SeqCst);
            assert_eq!(twin.follow(op), said, "{op:?} from {before:?}");
            let fence = now(twin.store.fence(&election())).expect("it answers").expect("somebody led");
            assert_eq!(
                (fence.holder.term.get(), fence.halt.is_some()),
                (i64::from(after.fence), after.halted),
                "{op:?} from {before:?}"
            );
            let rows = after.rows.iter().map(|row| row.map(|(fate, _)| fate)).collect();
            assert_eq!(twin.job(), (after.edited, at(after.evaluated_until), rows), "{op:?} from {before:?}");
            steps += 1;
            if !seen.contains_key(&after) {
                seen.insert(after.clone(), twin.store.snapshot());
                waiting.push(after);
            }
        }
    }
    (seen.len(), steps)
}
