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
use futures_util::FutureExt as _;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::breaks::Break;
use crate::coordinator::Way;
use crate::facts::Touch;
use crate::tenure_store::SimTenure;
use crate::world::{Landing, To, World};

/// Lets everything begin.
struct Anybody;

#[async_trait]
impl Admission for Anybody {
    async fn admitted(&self) -> bool {
        true
    }
}

/// The unfenced half.
pub struct SimStore {
    pub way: Way,
    pub inner: MemoryStore,
}

impl SimStore {
    pub fn new(way: Way) -> Self {
        let inner = way.world.judge.seen_by(&way.name);
        let world = Arc::downgrade(&way.world);
        inner.set_faults(Some(Arc::new(move |operation| world.upgrade().and_then(|world| world.fault(operation)))));
        Self { way, inner }
    }

    /// One operation on its way there and back, of no tenure.
    async fn ask<T, F>(
        &self,
        operation: &'static str,
        call: impl FnOnce(MemoryStore) -> F + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let inner = self.inner.clone();
        over(&self.way, operation, None, async move { call(inner).await }, |_, _| {}).await
    }
}

/// One operation on its way there and back. Once it has left, it arrives, whatever becomes of its sender, unless the sessions of its
/// tenure are ended first; the answer alone needs somebody to come back to. `seen` is shown what came of it, before anybody
/// else is.
pub async fn over<T: Send + 'static>(
    way: &Way,
    operation: &'static str,
    of: Option<Claim>,
    call: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    seen: impl FnOnce(&World, &mut Result<T, StoreError>) + Send + 'static,
) -> Result<T, StoreError> {
    way.alive().await;
    let there_and_back = way.world.way(way.place, To::Store);
    let detail = || "simulated".to_owned();
    let Some(there) = there_and_back.there else {
        tokio::time::sleep(there_and_back.patience).await;
        way.alive().await;
        return Err(StoreError::Unreachable { operation, detail: detail() });
    };
    let (answer, answered) = oneshot::channel();
    let landing: Landing = Box::new(move |world| {
        let mut done = call.now_or_never().expect("memory answers at once");
        seen(world, &mut done);
        // The one that asked may be gone.
        drop(answer.send(done));
    });
    way.send(there, of, landing);
    let done = way.heard(answered).await;
    let done = if let Some(back) = there_and_back.back {
        tokio::time::sleep(back).await;
        done
    } else {
        tokio::time::sleep(there_and_back.patience).await;
        Err(StoreError::Unknown { operation, detail: detail() })
    };
    way.alive().await;
    if let (Break::UnknownTakenForFailure, Err(StoreError::Unknown { .. })) = (way.world.state().broken, &done) {
        return Err(StoreError::TryAgain { operation, code: "40001".to_owned(), detail: detail() });
    }
    done
}

#[async_trait]
impl Store for SimStore {
    async fn health(&self) -> Result<Health, StoreError> {
        self.ask("health", move |inner| async move { inner.health().await }).await
    }

    async fn now(&self) -> Result<DateTime<Utc>, StoreError> {
        self.ask("now", move |inner| async move { inner.now().await }).await
    }

    async fn fence(&self, election: &ElectionName) -> Result<Option<Fence>, StoreError> {
        let (broken, election) = (self.way.world.state().broken, election.clone());
        let fence = self.ask("fence", move |inner| async move { inner.fence(&election).await }).await;
        let forgets = matches!(broken, Break::FenceForgotten | Break::FenceGoesDown | Break::TermForTwo);
        if forgets { fence.map(|_| None) } else { fence }
    }

    async fn advance(&self, claim: &Claim, leader: &Leader, within: Duration) -> Result<AdvanceOutcome, StoreError> {
        let (inner, leader, presented) = (self.inner.clone(), leader.clone(), claim.clone());
        let call = async move { inner.advance(&presented, &leader, within).await };
        let (name, claim) = (self.way.name.clone(), claim.clone());
        over(&self.way, "advance", None, call, move |world, done| {
            let lets_in = match (world.state().broken, &*done) {
                (Break::FenceGoesDown, Ok(AdvanceOutcome::Lost(found))) => found.term > claim.term,
                (Break::TermForTwo, Ok(AdvanceOutcome::Lost(found))) => found.term == claim.term,
                (_, _) => false,
            };
            if lets_in {
                *done = Ok(AdvanceOutcome::Accepted { halt: None });
                world.touch(&name, Touch::Accepted { claim: claim.clone() });
            }
            // Also where the answer says nothing: what counts is what is in force.
            if world.in_force(&claim.election).as_ref() == Some(&claim) {
                world.touch(&name, Touch::Accepted { claim });
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
        let presented = claim.clone();
        let opened = self.ask("tenure", move |inner| async move {
            // Whether something may begin is asked here, before it leaves.
            inner.tenure(&presented, limits, baseline, Arc::new(Anybody)).await
        });
        Ok(Arc::new(SimTenure::new(self.way.clone(), opened.await?, admission)))
    }

    async fn carries(&self) -> Result<Vec<JobCarries>, StoreError> {
        self.inner.carries().await
    }

    async fn wishes(&self, replica: &str) -> Result<Wishes, StoreError> {
        let replica = replica.to_owned();
        self.ask("wishes", move |inner| async move { inner.wishes(&replica).await }).await
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
        let claim = claim.clone();
        self.ask("note_work", move |inner| async move { inner.note_work(&claim, at).await }).await
    }

    async fn note_end(&self, claim: &Claim, reason: &str, at: Option<DateTime<Utc>>) -> Result<(), StoreError> {
        let (claim, reason) = (claim.clone(), reason.to_owned());
        self.way.alive().await;
        self.way.world.touch(&self.way.name, Touch::Ending { claim: claim.clone(), reason: reason.clone() });
        self.ask("note_end", move |inner| async move { inner.note_end(&claim, &reason, at).await }).await
    }

    async fn halt(&self, election: &ElectionName, reason: &str, actor: &Actor) -> Result<HaltReport, StoreError> {
        self.way.world.count("halted by itself");
        let (inner, of, reason, actor) = (self.inner.clone(), election.clone(), reason.to_owned(), actor.clone());
        let call = async move { inner.halt(&of, &reason, &actor).await };
        let (name, election) = (self.way.name.clone(), election.clone());
        over(&self.way, "halt", None, call, move |world, done| {
            if done.is_ok() {
                world.touch(&name, Touch::Halted { election });
            }
        })
        .await
    }

    async fn resumed_baseline(&self, election: &ElectionName) -> Result<Option<(Lineage, DateTime<Utc>)>, StoreError> {
        let election = election.clone();
        self.ask("resumed_baseline", move |inner| async move { inner.resumed_baseline(&election).await }).await
    }

    async fn units(&self, filter: &UnitFilter) -> Result<Vec<UnitView>, StoreError> {
        let filter = filter.clone();
        let found = self.ask("units", move |inner| async move { inner.units(&filter).await }).await;
        // A batch that the store did not answer is made out by what is pending: the only one of it was tried alone.
        if let Ok([unit]) = found.as_deref() {
            self.way.world.touch(&self.way.name, Touch::Alone { unit: unit.id });
        }
        found
    }

    async fn figures(&self, election: &ElectionName) -> Result<StoreFigures, StoreError> {
        let election = election.clone();
        self.ask("figures", move |inner| async move { inner.figures(&election).await }).await
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
        let (claim, promotion) = (claim.clone(), promotion.clone());
        self.ask("note_promotion", move |inner| async move { inner.note_promotion(&claim, &promotion).await }).await
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
