//! One replica's way to the store: the ports in front of the memory store, with operations that take time, are lost, or are
//! not answered; and what the judge sees of each.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bursar::domain::job::LedgerDefinition;
use bursar::domain::{Claim, ElectionName, JobName, Term};
use bursar::store::memory::MemoryStore;
use bursar::store::*;
use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use crate::breaks::Break;
use crate::coordinator::Way;
use crate::facts::{Kind, Taken, Touch, Went};
use crate::world::To;

/// The unfenced half.
pub struct SimStore {
    pub way: Way,
    pub inner: MemoryStore,
}

impl SimStore {
    pub fn new(way: Way) -> Self {
        let inner = way.world.judge.seen_by(&way.name);
        let world = Arc::downgrade(&way.world);
        inner.set_faults(Some(Arc::new(move |_| world.upgrade().and_then(|world| world.fault()))));
        Self { way, inner }
    }

    /// One operation on its way there and back; `seen` is shown what came of it, before anybody else is.
    async fn ask<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, StoreError>> + Send,
        seen: impl FnOnce(&mut Result<T, StoreError>) + Send,
    ) -> Result<T, StoreError> {
        over(&self.way, operation, call, seen).await
    }
}

/// One operation on its way there and back.
async fn over<T>(
    way: &Way,
    operation: &'static str,
    call: impl Future<Output = Result<T, StoreError>> + Send,
    seen: impl FnOnce(&mut Result<T, StoreError>) + Send,
) -> Result<T, StoreError> {
    let there_and_back = way.world.way(way.place, To::Store);
    let detail = || "simulated".to_owned();
    let Some(there) = there_and_back.there else {
        tokio::time::sleep(there_and_back.patience).await;
        way.alive().await;
        return Err(StoreError::Unreachable { operation, detail: detail() });
    };
    tokio::time::sleep(there).await;
    way.alive().await;
    let mut done = call.await;
    way.alive().await;
    seen(&mut done);
    let Some(back) = there_and_back.back else {
        tokio::time::sleep(there_and_back.patience).await;
        way.alive().await;
        return Err(StoreError::Unknown { operation, detail: detail() });
    };
    tokio::time::sleep(back).await;
    way.alive().await;
    if let (Break::UnknownTakenForFailure, Err(StoreError::Unknown { .. })) = (way.world.state().broken, &done) {
        return Err(StoreError::TryAgain { operation, code: "40001".to_owned(), detail: detail() });
    }
    done
}

#[async_trait]
impl Store for SimStore {
    async fn health(&self) -> Result<Health, StoreError> {
        self.ask("health", self.inner.health(), |_| {}).await
    }

    async fn now(&self) -> Result<DateTime<Utc>, StoreError> {
        self.ask("now", self.inner.now(), |_| {}).await
    }

    async fn fence(&self, election: &ElectionName) -> Result<Option<Fence>, StoreError> {
        let broken = self.way.world.state().broken;
        let fence = self.ask("fence", self.inner.fence(election), |_| {}).await;
        if broken == Break::FenceForgotten { fence.map(|_| None) } else { fence }
    }

    async fn advance(&self, claim: &Claim, leader: &Leader, within: Duration) -> Result<AdvanceOutcome, StoreError> {
        let world = &self.way.world;
        self.ask("advance", self.inner.advance(claim, leader, within), |_| {
            // Also where the answer says nothing: what counts is what is in force.
            if world.in_force(&claim.election).as_ref() == Some(claim) {
                world.touch(&self.way.name, Touch::Accepted { claim: claim.clone() });
            }
        })
        .await
    }

    async fn tenure(
        &self,
        claim: &Claim,
        limits: TenureLimits,
        baseline: Lineage,
        admission: Arc<dyn Admission>,
    ) -> Result<Arc<dyn TenureStore>, StoreError> {
        let inner = self.ask("tenure", self.inner.tenure(claim, limits, baseline, admission), |_| {}).await?;
        Ok(Arc::new(SimTenure { way: self.way.clone(), inner }))
    }

    async fn wishes(&self, replica: &str) -> Result<Wishes, StoreError> {
        self.ask("wishes", self.inner.wishes(replica), |_| {}).await
    }

    async fn cordon(&self, replica: &str, cordoned: bool, reason: &str, actor: &Actor) -> Result<bool, StoreError> {
        self.inner.cordon(replica, cordoned, reason, actor).await
    }

    async fn ask_transfer(
        &self,
        election: &ElectionName,
        term: Term,
        to: Option<&str>,
        reason: &str,
        actor: &Actor,
    ) -> Result<TransferAsked, StoreError> {
        self.inner.ask_transfer(election, term, to, reason, actor).await
    }

    async fn pause_job(&self, job: &JobName, reason: &str, actor: &Actor) -> Result<PauseOutcome, StoreError> {
        self.inner.pause_job(job, reason, actor).await
    }

    async fn unpause_job(&self, job: &JobName, reason: &str, actor: &Actor) -> Result<PauseOutcome, StoreError> {
        self.inner.unpause_job(job, reason, actor).await
    }

    async fn preview(
        &self,
        job: &JobName,
        ledger: &LedgerDefinition,
        cutoffs: &[DateTime<Utc>],
    ) -> Result<Vec<PreviewLine>, StoreError> {
        self.inner.preview(job, ledger, cutoffs).await
    }

    async fn report(&self, job: &JobName, tick: DateTime<Utc>) -> Result<Vec<RunReport>, StoreError> {
        self.inner.report(job, tick).await
    }

    async fn unit_history(&self, run: i64, key: &str) -> Result<Option<UnitHistory>, StoreError> {
        self.inner.unit_history(run, key).await
    }

    async fn set_four_eyes(&self, on: bool, reason: &str, actor: &Actor) -> Result<FourEyesOutcome, StoreError> {
        self.inner.set_four_eyes(on, reason, actor).await
    }

    async fn approvals(&self, one: Option<i64>, decided: bool, limit: u32) -> Result<Vec<ApprovalView>, StoreError> {
        self.inner.approvals(one, decided, limit).await
    }

    async fn decide(
        &self,
        request: i64,
        decision: Decision,
        reason: Option<&str>,
        actor: &Actor,
    ) -> Result<DecideOutcome, StoreError> {
        self.inner.decide(request, decision, reason, actor).await
    }

    async fn stated_payouts(
        &self,
        keys: &[String],
        references: &[String],
        days: (NaiveDate, NaiveDate),
    ) -> Result<Vec<ReportedPayout>, StoreError> {
        self.inner.stated_payouts(keys, references, days).await
    }

    async fn understands(&self, statement: UsersStatement<'_>) -> Result<Option<String>, StoreError> {
        self.inner.understands(statement).await
    }

    async fn note_tenure(&self, claim: &Claim, ended: Option<&str>) -> Result<(), StoreError> {
        self.ask("note_tenure", self.inner.note_tenure(claim, ended), |_| {}).await
    }

    async fn halt(&self, scope: &Scope, reason: &str, actor: &Actor) -> Result<Vec<HaltReport>, StoreError> {
        let world = &self.way.world;
        world.count("halted by itself");
        self.ask("halt", self.inner.halt(scope, reason, actor), |done| {
            for report in done.iter().flatten() {
                world.touch(&self.way.name, Touch::Halted { election: report.election.clone() });
            }
        })
        .await
    }

    async fn resumed_baseline(&self, election: &ElectionName) -> Result<Option<(Lineage, DateTime<Utc>)>, StoreError> {
        self.ask("resumed_baseline", self.inner.resumed_baseline(election), |_| {}).await
    }

    async fn units(&self, filter: &UnitFilter) -> Result<Vec<UnitView>, StoreError> {
        self.ask("units", self.inner.units(filter), |_| {}).await
    }

    async fn figures(&self, election: &ElectionName) -> Result<StoreFigures, StoreError> {
        self.ask("figures", self.inner.figures(election), |_| {}).await
    }

    // What follows no replica asks: commands do, and they are not simulated on a way of their own.

    async fn resume(&self, scope: &Scope, reason: &str, actor: &Actor) -> Result<Vec<HaltReport>, StoreError> {
        self.inner.resume(scope, reason, actor).await
    }

    async fn bind(&self, coordinator: &CoordinatorBinding) -> Result<BindOutcome, StoreError> {
        self.inner.bind(coordinator).await
    }

    async fn request(&self, kind: &RequestKind, actor: &Actor, reason: Option<&str>) -> Result<Uuid, StoreError> {
        self.inner.request(kind, actor, reason).await
    }

    async fn request_state(&self, request: Uuid) -> Result<Option<RequestState>, StoreError> {
        self.inner.request_state(request).await
    }

    async fn import(&self, import: &NewImport, actor: &Actor) -> Result<ImportOutcome, StoreError> {
        self.inner.import(import, actor).await
    }

    async fn imports(&self, limit: u32) -> Result<Vec<ImportRecord>, StoreError> {
        self.inner.imports(limit).await
    }

    async fn import_by_id(&self, import: i64) -> Result<Option<ImportView>, StoreError> {
        self.inner.import_by_id(import).await
    }

    async fn revert_import(&self, import: i64, reason: &str, actor: &Actor) -> Result<RevertOutcome, StoreError> {
        self.inner.revert_import(import, reason, actor).await
    }

    async fn status(&self) -> Result<StatusView, StoreError> {
        self.inner.status().await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        self.inner.runs(filter).await
    }

    async fn run_by_id(&self, run: i64) -> Result<Option<RunView>, StoreError> {
        self.inner.run_by_id(run).await
    }

    async fn payouts(&self, filter: &PayoutFilter) -> Result<Vec<PayoutView>, StoreError> {
        self.inner.payouts(filter).await
    }

    async fn resolve_payout(
        &self,
        key: &str,
        resolution: &Resolution,
        reason: &str,
        actor: &Actor,
    ) -> Result<ResolveOutcome, StoreError> {
        self.inner.resolve_payout(key, resolution, reason, actor).await
    }

    async fn release_payouts(
        &self,
        run: i64,
        keys: &[String],
        reason: &str,
        actor: &Actor,
    ) -> Result<ReleaseOutcome, StoreError> {
        self.inner.release_payouts(run, keys, reason, actor).await
    }

    async fn receivers(&self) -> Result<Vec<ReceiverView>, StoreError> {
        self.inner.receivers().await
    }

    async fn resume_receiver(&self, origin: &str, reason: &str, actor: &Actor) -> Result<bool, StoreError> {
        self.inner.resume_receiver(origin, reason, actor).await
    }

    async fn hold_merchant(&self, merchant: &str, reason: &str, actor: &Actor) -> Result<HoldReport, StoreError> {
        self.inner.hold_merchant(merchant, reason, actor).await
    }

    async fn release_merchant(&self, merchant: &str, reason: &str, actor: &Actor) -> Result<Option<u64>, StoreError> {
        self.inner.release_merchant(merchant, reason, actor).await
    }

    async fn merchant_holds(&self) -> Result<Vec<MerchantHold>, StoreError> {
        self.inner.merchant_holds().await
    }

    async fn history(&self, limit: u32) -> Result<HistoryView, StoreError> {
        self.inner.history(limit).await
    }

    async fn audit(&self) -> Result<AuditReport, StoreError> {
        self.inner.audit().await
    }

    async fn migrate(&self) -> Result<(i64, i64), StoreError> {
        self.inner.migrate().await
    }

    async fn close(&self) {}
}

/// The fenced half.
struct SimTenure {
    way: Way,
    inner: Arc<dyn TenureStore>,
}

/// Nothing of this operation is on its way to a receiver.
fn nothing<T>(_: &mut T) -> Vec<Taken> {
    Vec::new()
}

impl SimTenure {
    /// One fenced operation; `taken` says what of it is now on its way to a receiver.
    async fn pass<T>(
        &self,
        kind: Kind,
        operation: &'static str,
        call: impl Future<Output = Fenced<T>> + Send,
        taken: impl FnOnce(&mut T) -> Vec<Taken> + Send,
    ) -> Fenced<T> {
        let (world, name) = (&self.way.world, &self.way.name);
        let claim = self.inner.claim();
        self.way.alive().await;
        world.touch(name, Touch::Asked { claim: claim.clone(), operation });
        over(&self.way, operation, call, |done| {
            let (went, taken) = match done {
                Ok(Entered::Mine(done)) => (Went::Mine, taken(done)),
                Ok(Entered::Fenced(_)) => (Went::Fenced, Vec::new()),
                Ok(Entered::Halted(_)) => (Went::Halted, Vec::new()),
                // The gate kept it out, here and not at the store.
                Err(StoreError::Ended { .. }) => return,
                Err(_) => (Went::Failed, Vec::new()),
            };
            match went {
                Went::Fenced => world.count("refused by the fence"),
                Went::Halted => world.count("refused by a halt"),
                Went::Mine | Went::Failed => {}
            }
            world.touch(name, Touch::Did { claim: claim.clone(), kind, operation, went, taken });
        })
        .await
    }

    fn broken(&self) -> Break {
        self.way.world.state().broken
    }
}

#[async_trait]
impl TenureStore for SimTenure {
    fn claim(&self) -> &Claim {
        self.inner.claim()
    }

    fn deployment(&self) -> Uuid {
        self.inner.deployment()
    }

    async fn recover(&self) -> Fenced<Recovery> {
        self.pass(Kind::Record, "recover", self.inner.recover(), nothing).await
    }

    async fn pulse(&self) -> Fenced<Pulse> {
        self.pass(Kind::Begin, "pulse", self.inner.pulse(), nothing).await
    }

    async fn jobs(&self) -> Fenced<JobsView> {
        self.pass(Kind::Begin, "jobs", self.inner.jobs(), nothing).await
    }

    async fn change_job(&self, change: JobChange) -> Fenced<JobChangeOutcome> {
        self.pass(Kind::Begin, "change_job", self.inner.change_job(change), nothing).await
    }

    async fn record_ticks(&self, record: TicksRecord) -> Fenced<TicksOutcome> {
        self.pass(Kind::Begin, "record_ticks", self.inner.record_ticks(record), nothing).await
    }

    async fn open_runs(&self) -> Fenced<Vec<OpenRun>> {
        self.pass(Kind::Begin, "open_runs", self.inner.open_runs(), nothing).await
    }

    async fn begin_work(&self, run: i64) -> Fenced<()> {
        self.pass(Kind::Begin, "begin_work", self.inner.begin_work(run), nothing).await
    }

    async fn plan_page(
        &self,
        run: &OpenRun,
        source: &PlanSource,
        after: Option<&str>,
        limit: u32,
    ) -> Fenced<PlanOutcome> {
        self.pass(Kind::Begin, "plan_page", self.inner.plan_page(run, source, after, limit), nothing).await
    }

    async fn settle(&self, run: &OpenRun, pick: UnitPick, effect: &Effect) -> Fenced<SettleOutcome> {
        if self.broken() == Break::BatchesLost {
            return Ok(Entered::Mine(SettleOutcome::Nothing));
        }
        self.pass(Kind::Begin, "settle", self.inner.settle(run, pick, effect), nothing).await
    }

    async fn charge(&self, run: i64, charges: &[Charge]) -> Fenced<u64> {
        self.pass(Kind::Record, "charge", self.inner.charge(run, charges), nothing).await
    }

    async fn take_calls(&self, run: &OpenRun, limit: u32) -> Fenced<Vec<Call>> {
        let taken = |calls: &mut Vec<Call>| {
            calls.iter().map(|call| (call.instruction, call.idempotency_key.clone(), call.body.clone())).collect()
        };
        self.pass(Kind::Begin, "take_calls", self.inner.take_calls(run, limit), taken).await
    }

    async fn record_calls(&self, run: i64, records: &[CallRecord]) -> Fenced<u64> {
        self.pass(Kind::Record, "record_calls", self.inner.record_calls(run, records), nothing).await
    }

    async fn put_back(&self, run: i64, kept: &[(i64, u32)]) -> Fenced<u64> {
        self.pass(Kind::Record, "put_back", self.inner.put_back(run, kept), nothing).await
    }

    async fn finish_run(&self, run: i64) -> Fenced<FinishOutcome> {
        self.pass(Kind::Begin, "finish_run", self.inner.finish_run(run), nothing).await
    }

    async fn payout_jobs(&self) -> Fenced<Vec<PayoutJob>> {
        self.pass(Kind::Begin, "payout_jobs", self.inner.payout_jobs(), nothing).await
    }

    async fn take_payouts(&self, take: &PayoutTake) -> Fenced<PayoutsTaken> {
        let anew = self.broken() == Break::KeyMadeAnew;
        let taken = move |taken: &mut PayoutsTaken| {
            for payout in taken.payouts.iter_mut().filter(|payout| anew && payout.attempt > 1) {
                payout.idempotency_key.push_str(&payout.attempt.to_string());
            }
            let of = |payout: &Payout| (payout.instruction, payout.idempotency_key.clone(), payout.body.clone());
            taken.payouts.iter().map(of).collect()
        };
        self.pass(Kind::Begin, "take_payouts", self.inner.take_payouts(take), taken).await
    }

    async fn record_payouts(&self, records: &PayoutRecords) -> Fenced<PayoutsRecorded> {
        if self.broken() == Break::RecordsLost {
            return Ok(Entered::Mine(PayoutsRecorded::default()));
        }
        self.pass(Kind::Record, "record_payouts", self.inner.record_payouts(records), nothing).await
    }

    async fn put_back_payouts(&self, origin: &str, kept: &[(i64, u32)]) -> Fenced<u64> {
        self.pass(Kind::Record, "put_back_payouts", self.inner.put_back_payouts(origin, kept), nothing).await
    }

    async fn receiver_way(&self, ask: &ReceiverAsk) -> Fenced<ReceiverWay> {
        self.pass(Kind::Begin, "receiver_way", self.inner.receiver_way(ask), nothing).await
    }

    async fn heard(&self, heard: &Heard) -> Fenced<bool> {
        self.pass(Kind::Record, "heard", self.inner.heard(heard), nothing).await
    }

    async fn requests(&self) -> Fenced<Vec<PendingRequest>> {
        self.pass(Kind::Begin, "requests", self.inner.requests(), nothing).await
    }

    async fn execute(&self, request: Uuid, execution: Execution) -> Fenced<RequestState> {
        self.pass(Kind::Begin, "execute", self.inner.execute(request, execution), nothing).await
    }

    async fn lineage(&self) -> Fenced<Lineage> {
        self.pass(Kind::Record, "lineage", self.inner.lineage(), nothing).await
    }

    async fn release(&self) -> Fenced<()> {
        self.pass(Kind::Record, "release", self.inner.release(), nothing).await
    }

    async fn end(&self, budget: Duration) -> SessionsEnded {
        self.inner.end(budget).await
    }
}
