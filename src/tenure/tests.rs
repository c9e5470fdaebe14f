//! A tenure's scope on a store that answers as it was told, behind a gate that the test holds.

mod beside;
mod bringing_up;
mod coalescing;
mod handing_over;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::{Notify, Semaphore, watch};
use uuid::Uuid;

use super::scope::{Scope, Stop, Tenure};
use super::{
    Begin, Gate, GateClosed, NoMemory, NoObserver, Reports, ScheduleInForce, TenureDeps, TenureSettings, Win, bringup,
    outside,
};
use crate::clock;
use crate::domain::job::JobDefinition;
use crate::domain::{Claim, ElectionName, JobName, Moment, TenureId, Term};
use crate::settlement::{CallOutcome, Departure, Leave, NotSent, OutsideHandler};
use crate::store::postgres::{PgSettings, PgStore};
use crate::store::{
    Call, CallFate, CallRecord, Charge, Effect, Entered, Execution, FenceHolder, Fenced, FinishOutcome, GiveUpOutcome,
    Halt, JobChange, JobChangeOutcome, JobRow, JobsView, Leader, Lineage, OpenRun, PayoutJob, PayoutRecords,
    PayoutTake, PayoutsRecorded, PayoutsTaken, PendingRequest, PlanOutcome, PlanSource, Pulse, ReceiverAsk,
    ReceiverWay, Recovery, RequestState, SessionsEnded, SettleOutcome, StoreError, TakeOverOutcome, TenureLimits,
    TenureStore, TicksOutcome, TicksRecord, UnitPick,
};

const SOON: Duration = Duration::from_secs(10);

/// Answers what was laid out, in order; a heartbeat that nothing was laid out for is let in.
struct Stub {
    claim: Claim,
    pulses: Mutex<VecDeque<Fenced<Pulse>>>,
    records: Mutex<VecDeque<Fenced<u64>>>,
    takes: Mutex<VecDeque<Fenced<Vec<Call>>>>,
    put_backs: Mutex<u32>,
    /// Pages of ticks that were recorded.
    pages: Mutex<u32>,
    jobs: Mutex<Vec<JobRow>>,
    unreadable: Mutex<Vec<String>>,
    /// Ticks with an outcome on record, and those that were asked for.
    ran: Mutex<BTreeSet<(i64, DateTime<Utc>)>>,
    asked: Mutex<Vec<(i64, DateTime<Utc>)>>,
    /// When a heartbeat last failed.
    failed_at: Mutex<Option<Moment>>,
    /// Requests that wait; none is ever executed, and how often that was begun.
    waiting: Mutex<Vec<PendingRequest>>,
    executing: Notify,
    /// Ticks were recorded.
    recorded: Notify,
    /// Runs that fail at once, and how often they were read and begun.
    open: Mutex<Vec<OpenRun>>,
    reads: Mutex<u32>,
    begun: Mutex<u32>,
}

fn row_of(definition: JobDefinition, evaluated_until: DateTime<Utc>) -> JobRow {
    let fingerprint = definition.fingerprint();
    JobRow { id: 1, definition, fingerprint, evaluated_until, paused: None, pauses: Vec::new() }
}

/// Its row cannot be changed.
const BAD: &str = "bad";
/// The store's clock has not reached what its change settles.
const EARLY: &str = "early";

#[async_trait]
impl TenureStore for Stub {
    fn claim(&self) -> &Claim {
        &self.claim
    }
    fn deployment(&self) -> Uuid {
        Uuid::from_u128(1)
    }
    async fn recover(&self) -> Fenced<Recovery> {
        unreachable!("not asked for here")
    }
    async fn give_up(&self, _: i64, _: i64, _: u32) -> Fenced<GiveUpOutcome> {
        unreachable!("not asked for here")
    }
    async fn pulse(&self) -> Fenced<Pulse> {
        let now = DateTime::from_timestamp(1_800_000_000, 0).expect("in range");
        let laid_out = self.pulses.lock().expect("no panic holds it").pop_front();
        if let Some(Err(_)) = laid_out {
            *self.failed_at.lock().expect("no panic holds it") = Some(clock::boottime());
        }
        let requests = self.waiting.lock().expect("no panic holds it").len() as u64;
        laid_out.unwrap_or(Ok(Entered::Mine(Pulse { now, requests, open_runs: 0, jobs: 0 })))
    }
    async fn jobs(&self) -> Fenced<JobsView> {
        let now = DateTime::from_timestamp(1_800_000_000, 0).expect("in range");
        Ok(Entered::Mine(JobsView {
            now,
            jobs: self.jobs.lock().expect("no panic holds it").clone(),
            unreadable: self.unreadable.lock().expect("no panic holds it").clone(),
        }))
    }
    async fn change_job(&self, change: JobChange) -> Fenced<JobChangeOutcome> {
        if change.name.as_str() == BAD {
            return Err(StoreError::Broken { operation: "change_job", detail: "set to fail".to_owned() });
        }
        if change.name.as_str() == EARLY {
            return Ok(Entered::Mine(JobChangeOutcome::NotYet { now: change.evaluated_until }));
        }
        let definition = change.definition.expect("no removals here");
        let row = row_of(definition, change.evaluated_until);
        let mut rows = self.jobs.lock().expect("no panic holds it");
        rows.retain(|old| old.definition.name != row.definition.name);
        rows.push(row.clone());
        drop(rows);
        Ok(Entered::Mine(JobChangeOutcome::Changed(Some(Box::new(row)))))
    }
    async fn take_over_job(&self, _: &JobName, _: &ElectionName) -> Fenced<TakeOverOutcome> {
        unreachable!("not asked for here")
    }
    async fn record_ticks(&self, record: TicksRecord) -> Fenced<TicksOutcome> {
        for row in self.jobs.lock().expect("no panic holds it").iter_mut().filter(|row| **row == record.job) {
            row.evaluated_until = record.evaluated_until;
        }
        self.recorded.notify_one();
        *self.pages.lock().expect("no panic holds it") += 1;
        Ok(Entered::Mine(TicksOutcome::Recorded { opened: Vec::new(), duplicates: 0 }))
    }
    async fn recorded(&self, ticks: &[(i64, DateTime<Utc>)]) -> Fenced<BTreeSet<(i64, DateTime<Utc>)>> {
        self.asked.lock().expect("no panic holds it").extend(ticks);
        let ran = self.ran.lock().expect("no panic holds it");
        Ok(Entered::Mine(ticks.iter().filter(|tick| ran.contains(tick)).copied().collect()))
    }
    async fn open_runs(&self) -> Fenced<Vec<OpenRun>> {
        *self.reads.lock().expect("no panic holds it") += 1;
        Ok(Entered::Mine(self.open.lock().expect("no panic holds it").clone()))
    }
    async fn begin_work(&self, _: i64) -> Fenced<()> {
        *self.begun.lock().expect("no panic holds it") += 1;
        Err(StoreError::Broken { operation: "begin_work", detail: "set to fail".to_owned() })
    }
    async fn plan_page(&self, _: &OpenRun, _: &PlanSource, _: Option<&str>, _: u32) -> Fenced<PlanOutcome> {
        unreachable!("not asked for here")
    }
    async fn settle(&self, _: &OpenRun, _: UnitPick, _: &Effect) -> Fenced<SettleOutcome> {
        unreachable!("not asked for here")
    }
    async fn charge(&self, _: i64, _: &[Charge]) -> Fenced<u64> {
        unreachable!("not asked for here")
    }
    async fn take_calls(&self, _: &OpenRun, _: u32) -> Fenced<Vec<Call>> {
        self.takes.lock().expect("no panic holds it").pop_front().expect("laid out")
    }
    async fn record_calls(&self, _: i64, _: &[CallRecord]) -> Fenced<u64> {
        self.records.lock().expect("no panic holds it").pop_front().expect("laid out")
    }
    async fn put_back(&self, _: i64, _: &[(i64, u32)]) -> Fenced<u64> {
        *self.put_backs.lock().expect("no panic holds it") += 1;
        Ok(Entered::Mine(0))
    }
    async fn finish_run(&self, _: i64) -> Fenced<FinishOutcome> {
        unreachable!("not asked for here")
    }
    async fn payout_jobs(&self) -> Fenced<Vec<PayoutJob>> {
        Ok(Entered::Mine(Vec::new()))
    }
    async fn take_payouts(&self, _: &PayoutTake) -> Fenced<PayoutsTaken> {
        unreachable!("not asked for here")
    }
    async fn record_payouts(&self, _: &PayoutRecords) -> Fenced<PayoutsRecorded> {
        unreachable!("not asked for here")
    }
    async fn put_back_payouts(&self, _: &str, _: &[(i64, u32)]) -> Fenced<u64> {
        unreachable!("not asked for here")
    }
    async fn receiver_way(&self, _: &ReceiverAsk) -> Fenced<ReceiverWay> {
        unreachable!("not asked for here")
    }
    async fn heard(&self, _: &crate::store::Heard) -> Fenced<bool> {
        unreachable!("not asked for here")
    }
    async fn requests(&self) -> Fenced<Vec<PendingRequest>> {
        Ok(Entered::Mine(self.waiting.lock().expect("no panic holds it").clone()))
    }
    async fn execute(&self, _: Uuid, _: Execution) -> Fenced<RequestState> {
        self.executing.notify_one();
        std::future::pending().await
    }
    async fn lineage(&self) -> Fenced<Lineage> {
        unreachable!("not asked for here")
    }
    async fn release(&self) -> Fenced<()> {
        Ok(Entered::Mine(()))
    }
    async fn end(&self, _: Duration) -> SessionsEnded {
        SessionsEnded { terminated: 0, confirmed: true }
    }
}

/// Makes no call.
struct Nobody;

#[async_trait]
impl OutsideHandler for Nobody {
    fn is_idempotent(&self) -> bool {
        false
    }
    async fn call(&self, _: &Call, _: Moment, _: &Departure) -> CallOutcome {
        unreachable!("nothing is taken here")
    }
}

/// What leadership heard that ends a tenure.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Heard {
    fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic holds it").clone()
    }
    fn hear(&self, what: &str) {
        self.0.lock().expect("no panic holds it").push(what.to_owned());
    }
}

impl Reports for Heard {
    fn fence_term(&self, _: &ElectionName, _: Result<Term, String>) {}
    fn accepted(&self, _: &Claim) {}
    fn first_work(&self, _: &Claim) {}
    fn promotion_failed(&self, _: &Claim, why: &str) {
        self.hear(why);
    }
    fn fenced(&self, _: &Claim, _: Option<FenceHolder>) {
        self.hear("fenced");
    }
    fn fault(&self, _: &Claim, why: &str) {
        self.hear(why);
    }
    fn ended(&self, _: &Claim) {}
    fn beat(&self) {}
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Open,
    Held,
    Closed,
}

/// A gate, and how many wait at it.
struct Switch(watch::Receiver<Door>, watch::Sender<u32>);

#[async_trait]
impl Gate for Switch {
    async fn pass(&self) -> Result<(), GateClosed> {
        self.1.send_modify(|waiting| *waiting += 1);
        let mut door = self.0.clone();
        let found = door.wait_for(|door| *door != Door::Held).await.map(|door| *door);
        self.1.send_modify(|waiting| *waiting -= 1);
        match found {
            Ok(Door::Open) => Ok(()),
            Ok(Door::Held | Door::Closed) | Err(_) => Err(GateClosed),
        }
    }
    fn deadline(&self) -> watch::Receiver<Moment> {
        unreachable!("not asked for here")
    }
}

/// A scope, and the strings that it hangs on.
struct Rig {
    scope: Arc<Scope>,
    store: Arc<Stub>,
    heard: Arc<Heard>,
    door: watch::Sender<Door>,
    waiting: watch::Receiver<u32>,
}

fn rig() -> Rig {
    rig_of(ScheduleInForce::default())
}

fn rig_of(schedule: ScheduleInForce) -> Rig {
    let claim = Claim {
        election: ElectionName::new("here").expect("valid"),
        term: Term::new(3).expect("valid"),
        tenure_id: TenureId(Uuid::from_u128(3)),
    };
    // Never connected to: nothing here goes past the tenure's own store.
    let url = "postgres://nobody@127.0.0.1:1/nothing".to_owned();
    let store = PgStore::new(&PgSettings { url: url.into(), ..PgSettings::default() }).expect("the settings are right");
    let heard = Arc::new(Heard::default());
    let deps = TenureDeps {
        store: Arc::new(store),
        reports: Arc::clone(&heard) as Arc<dyn Reports>,
        observer: Arc::new(NoObserver),
        schedule: watch::channel(Arc::new(schedule)).1,
        permits: Arc::new(Semaphore::new(1)),
        receivers: Arc::default(),
        settings: TenureSettings {
            leader: Leader { replica: "a".to_owned(), host: "a".to_owned(), version: "0".to_owned() },
            limits: TenureLimits {
                connections: 2,
                statement_timeout: SOON,
                lock_timeout: SOON,
                idle_in_transaction_timeout: SOON,
                acquire_timeout: SOON,
            },
            advance_within: SOON,
            teardown_budget: SOON,
            lease_ttl: SOON,
        },
    };
    let (door, at_door) = watch::channel(Door::Open);
    let (waits, waiting) = watch::channel(0);
    let win = Win { handed_over: false, vacant_for: None, at: clock::boottime() };
    let begin = Begin { claim: claim.clone(), gate: Arc::new(Switch(at_door, waits)), memory: Arc::new(NoMemory), win };
    let scope = Arc::new(Scope::new(begin, Arc::new(deps)));
    let store = Arc::new(Stub {
        claim,
        pulses: Mutex::default(),
        records: Mutex::default(),
        takes: Mutex::default(),
        put_backs: Mutex::default(),
        pages: Mutex::default(),
        jobs: Mutex::default(),
        unreadable: Mutex::default(),
        ran: Mutex::default(),
        asked: Mutex::default(),
        failed_at: Mutex::default(),
        waiting: Mutex::default(),
        executing: Notify::new(),
        recorded: Notify::new(),
        open: Mutex::default(),
        reads: Mutex::default(),
        begun: Mutex::default(),
    });
    assert!(scope.store.set(Arc::clone(&store) as Arc<dyn TenureStore>).is_ok());
    Rig { scope, store, heard, door, waiting }
}

impl Rig {
    fn next_pulse(&self, answer: Fenced<Pulse>) {
        self.store.pulses.lock().expect("no panic holds it").push_back(answer);
    }
}

fn halted() -> Entered<Pulse> {
    let since = DateTime::from_timestamp(1_800_000_000, 0).expect("in range");
    Entered::Halted(Halt { reason: "month end".to_owned(), since, by: "ann".to_owned() })
}

#[tokio::test]
async fn a_gate_that_is_found_closed_is_reported_so_that_the_end_is_ordered() {
    let rig = rig();
    rig.door.send_replace(Door::Closed);
    assert_eq!(rig.scope.pass_gate().await, Err(Stop::Ending));
    assert!(rig.scope.stopping.is_cancelled());
    assert_eq!(rig.heard.all(), ["the gate was found closed"]);
    assert_eq!(rig.scope.pass_gate().await, Err(Stop::Ending));
    assert_eq!(rig.heard.all().len(), 1, "once");
}

#[tokio::test]
async fn a_halt_that_came_while_a_call_waited_at_the_gate_is_read_before_its_first_byte() {
    let mut rig = rig();
    assert_eq!(rig.scope.leave().await, Ok(()), "before the halt it may leave");
    rig.door.send_replace(Door::Held);
    let scope = Arc::clone(&rig.scope);
    let leaving = rig.scope.tracker.spawn(async move { scope.leave().await });
    tokio::time::timeout(SOON, rig.waiting.wait_for(|waiting| *waiting == 1)).await.expect("in time").expect("there");
    rig.next_pulse(Ok(halted()));
    rig.door.send_replace(Door::Open);
    assert_eq!(leaving.await.expect("it ends"), Err(NotSent));
    assert!(*rig.scope.halted.borrow());
    assert_eq!(rig.heard.all(), [""; 0], "a halt ends nothing");
}

#[tokio::test]
async fn a_call_that_was_committed_does_not_leave_once_the_session_is_lost() {
    let rig = rig();
    rig.door.send_replace(Door::Closed);
    assert_eq!(rig.scope.leave().await, Err(NotSent));
}

#[tokio::test]
async fn a_refusal_by_the_fence_ends_the_tenure_whatever_was_asked() {
    let rig = rig();
    let tenure = Tenure::new(Arc::clone(&rig.scope), Arc::clone(&rig.store) as Arc<dyn TenureStore>);
    rig.next_pulse(Ok(Entered::Fenced(None)));
    let refused = tenure.begin("pulse", || tenure.store.pulse()).await;
    assert_eq!(refused.map(|_| ()), Err(Stop::Ending), "it is not that nothing is due");
    assert!(rig.scope.stopping.is_cancelled());
    assert_eq!(rig.heard.all(), ["fenced"]);
    rig.store.records.lock().expect("no panic holds it").push_back(Ok(Entered::Fenced(None)));
    assert_eq!(tenure.record("record_calls", || tenure.store.record_calls(1, &[])).await, Err(Stop::Ending));
}

#[tokio::test]
async fn a_call_leaves_only_on_an_answer_of_the_store() {
    let rig = rig();
    rig.next_pulse(Err(StoreError::TimedOut { operation: "pulse", within: SOON }));
    assert_eq!(rig.scope.leave().await, Err(NotSent));
    rig.next_pulse(Ok(Entered::Fenced(None)));
    assert_eq!(rig.scope.leave().await, Err(NotSent));
    assert_eq!(rig.heard.all(), ["fenced"]);
}

#[tokio::test]
async fn outcomes_that_cannot_be_recorded_end_the_tenure_for_only_a_promotion_can_take_them_up() {
    let rig = rig();
    let tenure = Tenure::new(Arc::clone(&rig.scope), Arc::clone(&rig.store) as Arc<dyn TenureStore>);
    let broken = StoreError::Broken { operation: "record_calls", detail: "53100".to_owned() };
    rig.store.records.lock().expect("no panic holds it").push_back(Err(broken));
    let run = super::work::tests::open(1, crate::domain::run::RunKind::Tick, false);
    let done = CallRecord { instruction: 1, attempt: 1, fate: CallFate::Done };
    assert_eq!(outside::record(&tenure, &run, vec![done]).await, Err(Stop::Ending));
    assert_eq!(rig.heard.all().len(), 1, "{:?}", rig.heard.all());
}

#[tokio::test]
async fn what_a_take_without_an_answer_may_have_left_on_the_wire_is_put_back() {
    let rig = rig();
    let tenure = Tenure::new(Arc::clone(&rig.scope), Arc::clone(&rig.store) as Arc<dyn TenureStore>);
    let unknown = StoreError::Unknown { operation: "take_calls", detail: "no answer".to_owned() };
    let answers = [Err(unknown), Ok(Entered::Mine(Vec::new()))];
    rig.store.takes.lock().expect("no panic holds it").extend(answers);
    let run = super::work::tests::open(1, crate::domain::run::RunKind::Tick, false);
    let nobody: Arc<dyn OutsideHandler> = Arc::new(Nobody);
    assert_eq!(outside::drain(&tenure, &run, &nobody, &mut outside::Door::default()).await, Ok(()));
    assert_eq!(*rig.store.put_backs.lock().expect("no panic holds it"), 1, "it would be in nobody's hands");
}
