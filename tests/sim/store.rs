//! One replica's way to the store: the unfenced port in front of the memory store, with operations that take time, are lost,
//! or are not answered; and what the judge sees of each.

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
use crate::facts::Touch;
use crate::tenure_store::SimTenure;
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
pub async fn over<T>(
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

    async fn carries(&self) -> Result<Vec<JobCarries>, StoreError> {
        self.inner.carries().await
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

    async fn note_work(&self, claim: &Claim, at: DateTime<Utc>) -> Result<(), StoreError> {
        self.ask("note_work", self.inner.note_work(claim, at), |_| {}).await
    }

    async fn note_end(&self, claim: &Claim, reason: &str, at: Option<DateTime<Utc>>) -> Result<(), StoreError> {
        self.ask("note_end", self.inner.note_end(claim, reason, at), |_| {}).await
    }

    async fn halt(&self, election: &ElectionName, reason: &str, actor: &Actor) -> Result<HaltReport, StoreError> {
        let world = &self.way.world;
        world.count("halted by itself");
        self.ask("halt", self.inner.halt(election, reason, actor), |done| {
            if done.is_ok() {
                world.touch(&self.way.name, Touch::Halted { election: election.clone() });
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

    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        self.inner.elections().await
    }

    async fn resume(&self, election: &ElectionName, reason: &str, actor: &Actor) -> Result<HaltReport, StoreError> {
        self.inner.resume(election, reason, actor).await
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

    async fn waiting_requests(&self) -> Result<Vec<WaitingRequest>, StoreError> {
        self.inner.waiting_requests().await
    }

    async fn withdraw_request(
        &self,
        request: Uuid,
        reason: &str,
        actor: &Actor,
    ) -> Result<WithdrawOutcome, StoreError> {
        self.inner.withdraw_request(request, reason, actor).await
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

    async fn resolve_call(
        &self,
        run: i64,
        unit: &str,
        word: &CallWord,
        reason: &str,
        actor: &Actor,
    ) -> Result<ResolveOutcome, StoreError> {
        self.inner.resolve_call(run, unit, word, reason, actor).await
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

    async fn is_merchant_known(&self, merchant: &str) -> Result<bool, StoreError> {
        self.inner.is_merchant_known(merchant).await
    }

    async fn merchant_holds(&self) -> Result<Vec<MerchantHold>, StoreError> {
        self.inner.merchant_holds().await
    }

    async fn note_promotion(&self, claim: &Claim, promotion: &Promotion) -> Result<(), StoreError> {
        self.ask("note_promotion", self.inner.note_promotion(claim, promotion), |_| {}).await
    }

    async fn stories(&self, filter: &StoryFilter) -> Result<Vec<TermStory>, StoreError> {
        self.inner.stories(filter).await
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
