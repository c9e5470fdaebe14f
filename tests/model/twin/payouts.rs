//! The same for payouts: taken, recorded, put back, recovered, from every state of one that a few of these lead to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bursar::domain::entry::{EntryKind, NewEntry};
use bursar::domain::instruction::InstructionState;
use bursar::domain::job::{HandlerDefinition, JobDefinition, LedgerDefinition, PayoutDefinition, Release};
use bursar::domain::money::Currency;
use bursar::store::memory::{MemoryState, MemoryStore};
use bursar::store::{
    AdvanceOutcome, Effect, Entered as Answer, Fenced, JobChange, JobChangeOutcome, Leader, NewImport,
    PayoutFate as Fate, PayoutFilter, PayoutRecord, PayoutRecords, PayoutTake, PayoutTerms, PlanSource, Store as _,
    TickFate, TickRecord, TicksRecord, UnitPick,
};
use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::{actor, claim, definition, election, mine, now, open};
use crate::paying::receiver;
use crate::store::payouts::PayoutFate;
use crate::store::{Entered, Rules, Store};

/// The terms that there are.
const TERMS: u8 = 2;
/// The receiver.
const BANK: &str = "https://bank";

#[derive(Debug, Clone, Copy)]
enum Op {
    Advance(u8),
    Recover(u8),
    Take(u8),
    Record(u8, u8, PayoutFate),
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
            ops.extend(PayoutFate::ALL.map(|fate| Op::Record(term, attempt, fate)));
        }
    }
    ops
}

fn clock() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).expect("in range")
}

fn leader() -> Leader {
    Leader { replica: "a".to_owned(), host: "here".to_owned(), version: "0".to_owned() }
}

fn ledger(idempotent: bool) -> LedgerDefinition {
    LedgerDefinition {
        sources: BTreeSet::new(),
        currencies: BTreeSet::new(),
        merchants: BTreeSet::new(),
        minimum_payout: BTreeMap::new(),
        maximum_payout: BTreeMap::new(),
        release: Release::Auto,
        payout: PayoutDefinition::Http(Box::new(receiver(idempotent))),
    }
}

fn entry() -> NewEntry {
    let before = clock() - TimeDelta::hours(1);
    NewEntry {
        id: "e1".to_owned(),
        merchant: "m1".to_owned(),
        currency: Currency::new("EUR").expect("a currency"),
        kind: EntryKind::Capture,
        amount: 1000,
        fee: 0,
        occurred_at: before,
        available_at: before,
        reference: None,
    }
}

/// The product's store, with one payout.
struct Twin {
    store: MemoryStore,
    job: i64,
    idempotent: bool,
}

impl Twin {
    fn new(idempotent: bool) -> Self {
        let store = MemoryStore::new(Arc::new(clock), Uuid::from_u128(7));
        now(store.advance(&claim(1), &leader(), Duration::ZERO)).expect("the first term is accepted");
        let import = NewImport {
            source: "scheme".to_owned(),
            file_name: "entries.csv".to_owned(),
            sha256: "0".repeat(64),
            entries: vec![(2, entry())],
        };
        now(store.import(&import, &actor())).expect("the entry is new");
        let tenure = open(&store, 1);
        let ledger = ledger(idempotent);
        let definition = JobDefinition { handler: HandlerDefinition::Ledger(ledger.clone()), ..definition(idempotent) };
        let change = JobChange {
            name: definition.name.clone(),
            definition: Some(definition),
            expected: None,
            settled: Vec::new(),
            evaluated_until: DateTime::UNIX_EPOCH,
        };
        let JobChangeOutcome::Changed(Some(job)) = mine(now(tenure.change_job(change))) else {
            panic!("the job is new");
        };
        let (id, at) = (job.id, clock());
        let fate = TickFate::Open { caught_up: false };
        let tick = TickRecord { tick: at, due_at: at, cutoff_at: at, value_date: at.date_naive(), fate };
        let record = TicksRecord { evaluated_until: job.evaluated_until, ticks: vec![tick], job: *job };
        mine(now(tenure.record_ticks(record)));
        let run = mine(now(tenure.open_runs())).remove(0);
        mine(now(tenure.plan_page(&run, &PlanSource::Ledger(ledger.clone()), None, 10)));
        let run = mine(now(tenure.open_runs())).remove(0);
        mine(now(tenure.settle(&run, UnitPick::Fresh { after: 0, limit: 10 }, &Effect::Ledger(ledger))));
        Self { store, job: id, idempotent }
    }

    /// The payout as the product has it: its id, its state, whether it is in doubt, its tries.
    fn row(&self) -> (i64, InstructionState, bool, u32) {
        let filter = PayoutFilter { limit: 10, ..PayoutFilter::default() };
        let payout = now(self.store.payouts(&filter)).expect("it answers").remove(0);
        (payout.id, payout.state, payout.in_doubt, payout.attempts)
    }

    fn order(&self) -> PayoutTake {
        let receiver = receiver(self.idempotent);
        let terms = PayoutTerms {
            job: self.job,
            url: receiver.url,
            idempotent: self.idempotent,
            looks_up: false,
            key_valid_for: receiver.key_valid_for,
            timeout: receiver.timeout,
            maximum: BTreeMap::new(),
        };
        let wait = Duration::from_hours(1);
        PayoutTake { origin: BANK.to_owned(), jobs: vec![terms], limit: 9, probe_waits: (wait, wait), probe_now: false }
    }

    /// Does what the model did, and answers what it said.
    fn follow(&self, op: Op) -> String {
        let store = &self.store;
        match op {
            Op::Advance(term) => match now(store.advance(&claim(term), &leader(), Duration::ZERO)) {
                Ok(AdvanceOutcome::Accepted { .. }) => "accepted".to_owned(),
                Ok(AdvanceOutcome::Lost(_)) => "lost".to_owned(),
                Err(error) => panic!("nothing fails here: {error}"),
            },
            Op::Recover(term) => said(now(open(store, term).recover()), |_| "mine".to_owned()),
            Op::Take(term) => said(now(open(store, term).take_payouts(&self.order())), |taken| {
                format!("mine {} {}", taken.payouts.len(), taken.held)
            }),
            Op::Record(term, attempt, fate) => {
                let (instruction, attempt) = (self.row().0, u32::from(attempt));
                let records = PayoutRecords {
                    origin: BANK.to_owned(),
                    records: vec![PayoutRecord { instruction, attempt, asked: false, fate: product(fate) }],
                    stop: None,
                    max_refusals: 20,
                    probe_after: Duration::from_hours(1),
                };
                said(now(open(store, term).record_payouts(&records)), |told| format!("mine {}", told.states.len()))
            }
            Op::PutBack(term, in_hand) => {
                let (instruction, _, _, attempt) = self.row();
                let kept = if in_hand { vec![(instruction, attempt)] } else { Vec::new() };
                said(now(open(store, term).put_back_payouts(BANK, &kept)), |_| "mine".to_owned())
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

fn said<T>(answer: Fenced<T>, mine: impl FnOnce(T) -> String) -> String {
    match answer.expect("the store answers") {
        Answer::Mine(done) => mine(done),
        Answer::Fenced(_) => "fenced".to_owned(),
        Answer::Halted(_) => "halted".to_owned(),
    }
}

/// The product's word for a fate.
fn product(fate: PayoutFate) -> Fate {
    let error = "it failed".to_owned();
    match fate {
        PayoutFate::Paid => Fate::Paid { reference: None },
        PayoutFate::Mismatch => Fate::Mismatch { error },
        PayoutFate::Rejected => Fate::Rejected { error },
        PayoutFate::Unknown { again } => Fate::Unknown { error, again_in: again.then_some(Duration::ZERO) },
        PayoutFate::Back { left } => Fate::Back { left, error: None, again_in: None },
    }
}

/// What the model does and says.
fn lead(store: &mut Store, op: Op, rules: Rules) -> String {
    let refused = |store: &Store, term, begins| match store.enter(term, begins, rules) {
        Entered::Mine => None,
        Entered::Fenced => Some("fenced".to_owned()),
        Entered::Halted => Some("halted".to_owned()),
    };
    match op {
        Op::Advance(term) => if store.advance(term) { "accepted" } else { "lost" }.to_owned(),
        Op::Recover(term) => refused(store, term, false).unwrap_or_else(|| {
            store.recover(term, rules);
            "mine".to_owned()
        }),
        Op::Take(term) => refused(store, term, true).unwrap_or_else(|| {
            let (leave, held) = store.take_payout(term, 0, rules);
            format!("mine {leave} {held}")
        }),
        Op::Record(term, attempt, fate) => refused(store, term, false)
            .unwrap_or_else(|| format!("mine {}", u8::from(store.record_payout(term, 0, attempt, fate)))),
        Op::PutBack(term, in_hand) => refused(store, term, false).unwrap_or_else(|| {
            store.put_back(term, if in_hand { &[0] } else { &[] });
            "mine".to_owned()
        }),
        Op::Halt | Op::Resume => {
            store.halted = matches!(op, Op::Halt);
            "done".to_owned()
        }
    }
}

/// Answers how many states and steps were compared.
pub fn compare(idempotent: bool, most_attempts: u8) -> (usize, usize) {
    let rules = Rules { idempotent, defect: None };
    let twin = Twin::new(idempotent);
    let first = Store { fence: 1, ..Store::new(1) };
    let mut seen: HashMap<Store, MemoryState> = HashMap::from([(first.clone(), twin.store.snapshot())]);
    let (mut waiting, mut steps) = (vec![first], 0);
    while let Some(before) = waiting.pop() {
        let content = seen[&before].clone();
        for op in all() {
            let mut after = before.clone();
            let said = lead(&mut after, op, rules);
            let row = after.rows[0];
            if row.attempts > most_attempts {
                continue;
            }
            twin.store.restore(content.clone());
            assert_eq!(twin.follow(op), said, "{op:?} from {before:?}");
            let (_, state, in_doubt, attempts) = twin.row();
            assert_eq!(
                (state, in_doubt, attempts),
                (row.state, row.in_doubt, u32::from(row.attempts)),
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
