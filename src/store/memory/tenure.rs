//! The store under one claim: every operation through the fence, in one step with what it does.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::MemoryStore;
use super::settle;
use super::state::{Done, Kind, MemoryState};
use crate::domain::{Claim, ElectionName, JobName};
use crate::store::{
    Admission, BatchError, Call, CallRecord, Charge, Effect, Entered, Execution, FenceReject, Fenced, FinishOutcome,
    GiveUpOutcome, Heard, JobChange, JobChangeOutcome, JobsView, Lineage, OpenRun, PayoutJob, PayoutRecords,
    PayoutTake, PayoutsRecorded, PayoutsTaken, PendingRequest, PlanOutcome, PlanSource, Pulse, ReceiverAsk,
    ReceiverWay, Recovery, RequestState, SessionsEnded, SettleOutcome, StoreError, TakeOverOutcome, TenureStore,
    TicksOutcome, TicksRecord, UnitPick,
};

/// The fenced half.
pub(super) struct MemoryTenure {
    store: MemoryStore,
    claim: Claim,
    /// Where the store was last known to stand; it only goes forward.
    known: Mutex<Lineage>,
    admission: Arc<dyn Admission>,
    ended: AtomicBool,
}

impl MemoryTenure {
    /// Opens it on a store that stands where it was known to, or later.
    pub(super) fn open(
        store: &MemoryStore,
        claim: &Claim,
        baseline: Lineage,
        admission: Arc<dyn Admission>,
    ) -> Result<Self, StoreError> {
        let (store, claim) = (store.clone(), claim.clone());
        let opened = Self { store, claim, known: Mutex::new(baseline), admission, ended: AtomicBool::new(false) };
        opened.store.operate("tenure", |state, _now| opened.compare(state).map(Done::RollBack))?;
        Ok(opened)
    }

    pub(super) const fn store(&self) -> &MemoryStore {
        &self.store
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Sees whether the store forgot. The others look on each new session, which there is after each restore.
    fn compare(&self, state: &MemoryState) -> Result<(), StoreError> {
        let found = state.lineage();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let detail = if found.system_identifier != known.system_identifier {
            format!("system identifier {}, expected {}", found.system_identifier, known.system_identifier)
        } else if found.timeline != known.timeline {
            format!("timeline {}, expected {}", found.timeline, known.timeline)
        } else if found.position < known.position {
            format!("{} commits, expected at least {}", found.position, known.position)
        } else {
            *known = found;
            return Ok(());
        };
        Err(StoreError::Forgot { detail })
    }

    /// One fenced transaction.
    pub(super) async fn fenced<T>(
        &self,
        kind: Kind,
        operation: &'static str,
        work: impl FnOnce(&mut MemoryState, DateTime<Utc>) -> Result<Done<T>, StoreError> + Send,
    ) -> Fenced<T> {
        let admitted = match kind {
            Kind::Begin => self.admission.admitted().await,
            // What has begun ends by itself, and the fence covers it.
            Kind::Record => true,
        };
        if !admitted || self.has_ended() {
            return Err(StoreError::Ended { operation });
        }
        let entered = self.store.operate_told(operation, |state, now, unfenced| {
            self.compare(state)?;
            let entered = if unfenced { Entered::Mine(()) } else { state.enter(&self.claim, kind) };
            match entered {
                Entered::Mine(()) => Ok(work(state, now)?.map(Entered::Mine)),
                Entered::Fenced(found) => Ok(Done::RollBack(Entered::Fenced(found))),
                Entered::Halted(halt) => Ok(Done::RollBack(Entered::Halted(halt))),
            }
        })?;
        if let Entered::Fenced(found) = &entered {
            self.store.note(FenceReject {
                presented: self.claim.clone(),
                found: *found,
                operation: operation.to_owned(),
                replica: self.store.replica.clone(),
                at: DateTime::UNIX_EPOCH,
            });
        }
        Ok(entered)
    }
}

#[async_trait]
impl TenureStore for MemoryTenure {
    fn claim(&self) -> &Claim {
        &self.claim
    }

    fn deployment(&self) -> Uuid {
        self.store.deployment()
    }

    async fn recover(&self) -> Fenced<Recovery> {
        self.fenced(Kind::Record, "recover", |state, now| Ok(state.recover(&self.claim, now))).await
    }

    async fn give_up(&self, run: i64, after: i64, limit: u32) -> Fenced<GiveUpOutcome> {
        self.fenced(Kind::Begin, "give_up", |state, now| state.give_up(&self.claim, run, after, limit, now)).await
    }

    async fn pulse(&self) -> Fenced<Pulse> {
        self.fenced(Kind::Begin, "pulse", |state, now| Ok(Done::RollBack(state.pulse(&self.claim, now)))).await
    }

    async fn jobs(&self) -> Fenced<JobsView> {
        self.fenced(Kind::Begin, "jobs", |state, now| Ok(Done::RollBack(state.jobs_view(&self.claim, now)))).await
    }

    async fn change_job(&self, change: JobChange) -> Fenced<JobChangeOutcome> {
        self.fenced(Kind::Begin, "change_job", |state, now| Ok(state.change_job(&self.claim, &change, now))).await
    }

    async fn take_over_job(&self, job: &JobName, from: &ElectionName) -> Fenced<TakeOverOutcome> {
        self.fenced(Kind::Begin, "take_over_job", |state, _now| Ok(state.take_over(&self.claim, job, from))).await
    }

    async fn record_ticks(&self, record: TicksRecord) -> Fenced<TicksOutcome> {
        self.fenced(Kind::Begin, "record_ticks", |state, now| Ok(state.record_ticks(&self.claim, &record, now))).await
    }

    async fn recorded(&self, ticks: &[(i64, DateTime<Utc>)]) -> Fenced<BTreeSet<(i64, DateTime<Utc>)>> {
        self.fenced(Kind::Begin, "recorded", |state, _now| Ok(Done::RollBack(state.recorded(ticks)))).await
    }

    async fn open_runs(&self) -> Fenced<Vec<OpenRun>> {
        self.fenced(Kind::Begin, "open_runs", |state, _now| Ok(Done::RollBack(state.open_runs(&self.claim)))).await
    }

    async fn begin_work(&self, run: i64) -> Fenced<()> {
        self.fenced(Kind::Begin, "begin_work", |state, _now| Ok(state.begin_work(&self.claim, run))).await
    }

    async fn plan_page(
        &self,
        run: &OpenRun,
        source: &PlanSource,
        after: Option<&str>,
        limit: u32,
    ) -> Fenced<PlanOutcome> {
        self.fenced(Kind::Begin, "plan_page", |state, _now| state.plan_page(&self.claim, run, source, after, limit))
            .await
    }

    async fn settle(&self, run: &OpenRun, pick: UnitPick, effect: &Effect) -> Fenced<SettleOutcome> {
        match effect {
            Effect::Ledger(definition) => {
                self.fenced(Kind::Begin, settle::OPERATION, |state, now| {
                    let held = self.store.held();
                    state.settle_ledger(&self.claim, run, &pick, definition, &held, now)
                })
                .await
            }
            Effect::Sql(_) => {
                let error = BatchError { message: "the store in memory runs no statement".to_owned(), permanent: true };
                let refused = |state: &mut MemoryState, now| {
                    let units = state.picked(&self.claim, run.id, &pick, &self.store.held(), now);
                    Ok(if units.is_empty() {
                        Done::RollBack(SettleOutcome::Nothing)
                    } else {
                        settle::failed(&units, error.clone())
                    })
                };
                self.fenced(Kind::Begin, settle::OPERATION, refused).await
            }
            Effect::Mark(hook) => settle::marked(self, run, &pick, hook).await,
        }
    }

    async fn charge(&self, run: i64, charges: &[Charge]) -> Fenced<u64> {
        self.fenced(Kind::Record, "charge", |state, now| Ok(state.charge(&self.claim, run, charges, now))).await
    }

    async fn take_calls(&self, run: &OpenRun, limit: u32) -> Fenced<Vec<Call>> {
        self.fenced(Kind::Begin, "take_calls", |state, now| Ok(state.take_calls(&self.claim, run, limit, now))).await
    }

    async fn record_calls(&self, run: i64, records: &[CallRecord]) -> Fenced<u64> {
        self.fenced(Kind::Record, "record_calls", |state, now| Ok(state.record_calls(&self.claim, run, records, now)))
            .await
    }

    async fn put_back(&self, run: i64, kept: &[(i64, u32)]) -> Fenced<u64> {
        self.fenced(Kind::Record, "put_back", |state, now| Ok(state.put_back(&self.claim, run, kept, now))).await
    }

    async fn finish_run(&self, run: i64) -> Fenced<FinishOutcome> {
        self.fenced(Kind::Begin, "finish_run", |state, now| state.finish_run(&self.claim, run, now)).await
    }

    async fn payout_jobs(&self) -> Fenced<Vec<PayoutJob>> {
        self.fenced(Kind::Begin, "payout_jobs", |state, _now| Ok(Done::RollBack(state.payout_jobs(&self.claim)))).await
    }

    async fn take_payouts(&self, take: &PayoutTake) -> Fenced<PayoutsTaken> {
        self.fenced(Kind::Begin, "take_payouts", |state, now| Ok(state.take_payouts(&self.claim, take, now))).await
    }

    async fn record_payouts(&self, records: &PayoutRecords) -> Fenced<PayoutsRecorded> {
        self.fenced(Kind::Record, "record_payouts", |state, now| Ok(state.record_payouts(&self.claim, records, now)))
            .await
    }

    async fn put_back_payouts(&self, origin: &str, kept: &[(i64, u32)]) -> Fenced<u64> {
        self.fenced(Kind::Record, "put_back_payouts", |state, now| {
            Ok(state.put_back_payouts(&self.claim, origin, kept, now))
        })
        .await
    }

    async fn receiver_way(&self, ask: &ReceiverAsk) -> Fenced<ReceiverWay> {
        self.fenced(Kind::Begin, "receiver_way", |state, now| Ok(state.receiver_way(ask, now))).await
    }

    async fn heard(&self, heard: &Heard) -> Fenced<bool> {
        self.fenced(Kind::Record, "heard", |state, now| Ok(Done::Commit(state.hear(&self.claim, heard, now)))).await
    }

    async fn requests(&self) -> Fenced<Vec<PendingRequest>> {
        self.fenced(Kind::Begin, "requests", |state, _now| Ok(Done::RollBack(state.waiting(&self.claim)))).await
    }

    async fn execute(&self, request: Uuid, execution: Execution) -> Fenced<RequestState> {
        self.fenced(Kind::Begin, "execute", |state, now| state.execute(&self.claim, request, &execution, now)).await
    }

    async fn lineage(&self) -> Fenced<Lineage> {
        self.fenced(Kind::Record, "lineage", |state, _now| Ok(Done::RollBack(state.lineage()))).await
    }

    async fn release(&self) -> Fenced<()> {
        self.fenced(Kind::Record, "release", |state, _now| Ok(state.release(&self.claim))).await
    }

    async fn end(&self, _budget: Duration) -> SessionsEnded {
        self.ended.store(true, Ordering::SeqCst);
        SessionsEnded { terminated: 0, confirmed: true }
    }
}
