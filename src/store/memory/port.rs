//! The unfenced half of the port.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use super::MemoryStore;
use super::approvals::Eyes;
use super::state::{Done, MemoryState};
use super::tenure::MemoryTenure;
use crate::domain::job::LedgerDefinition;
use crate::domain::{Claim, ElectionName, JobName, Term};
use crate::store::bounds::LIST_ROWS;
use crate::store::{
    Actor, Admission, AdvanceOutcome, ApprovalView, AuditReport, BindOutcome, CallWord, CoordinatorBinding,
    DecideOutcome, Decision, Fence, FenceReject, FourEyesOutcome, HaltReport, Health, HistoryView, HoldReport,
    ImportOutcome, ImportRecord, ImportView, JobCarries, Leader, Lineage, MerchantHold, NewImport, PauseOutcome,
    PayoutFilter, PayoutView, PreviewLine, Promotion, ReceiverView, ReleaseOutcome, ReportedPayout, RequestKind,
    RequestState, Resolution, ResolveOutcome, RevertOutcome, RunFilter, RunReport, RunSummary, RunView, StatusView,
    Store, StoreError, StoreFigures, StoryFilter, TenureLimits, TenureStore, TermStory, TransferAsked, TransferWish,
    UnitFilter, UnitHistory, UnitView, UsersStatement, WaitingRequest, Wishes, WithdrawOutcome,
};

/// There is one schema.
const SCHEMA: i64 = 1;

/// The rows of a list, within the bound.
fn most(limit: u32) -> usize {
    usize::try_from(limit.clamp(1, LIST_ROWS)).unwrap_or(usize::MAX)
}

#[async_trait]
impl Store for MemoryStore {
    async fn health(&self) -> Result<Health, StoreError> {
        self.look("health", |state, now| Health { now, lineage: state.lineage() })
    }

    async fn now(&self) -> Result<DateTime<Utc>, StoreError> {
        self.look("now", |_state, now| now)
    }

    async fn bind(&self, coordinator: &CoordinatorBinding) -> Result<BindOutcome, StoreError> {
        self.operate("bind", |state, _now| Ok(state.bind(coordinator)))
    }

    async fn fence(&self, election: &ElectionName) -> Result<Option<Fence>, StoreError> {
        self.look("fence", |state, _now| state.fence_of(election))
    }

    async fn advance(&self, claim: &Claim, leader: &Leader, _within: Duration) -> Result<AdvanceOutcome, StoreError> {
        let outcome = self.operate("advance", |state, now| Ok(state.advance(claim, leader, now)))?;
        match &outcome {
            AdvanceOutcome::Accepted { .. } => {}
            AdvanceOutcome::Lost(found) => self.note(FenceReject {
                presented: claim.clone(),
                found: Some(*found),
                operation: "advance".to_owned(),
                replica: self.replica.clone(),
                at: DateTime::UNIX_EPOCH,
            }),
        }
        Ok(outcome)
    }

    async fn tenure(
        &self,
        claim: &Claim,
        _limits: TenureLimits,
        baseline: Lineage,
        admission: Arc<dyn Admission>,
    ) -> Result<Arc<dyn TenureStore>, StoreError> {
        Ok(Arc::new(MemoryTenure::open(self, claim, baseline, admission)?))
    }

    async fn note_work(&self, claim: &Claim, at: DateTime<Utc>) -> Result<(), StoreError> {
        self.operate("note_work", |state, _| Ok(state.note_work(claim, at)))
    }

    async fn note_end(&self, claim: &Claim, reason: &str, at: Option<DateTime<Utc>>) -> Result<(), StoreError> {
        self.operate("note_end", |state, now| Ok(state.note_end(claim, reason, at.map_or(now, |at| at.min(now)))))
    }

    async fn note_promotion(&self, claim: &Claim, promotion: &Promotion) -> Result<(), StoreError> {
        self.operate("note_promotion", |state, now| Ok(state.note_promotion(claim, promotion, now)))
    }

    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        self.look("elections", |state, _now| state.elections())
    }

    async fn halt(&self, election: &ElectionName, reason: &str, actor: &Actor) -> Result<HaltReport, StoreError> {
        self.operate("halt", |state, now| Ok(Done::Commit(state.halt(election, reason, actor, now))))
    }

    async fn resume(&self, election: &ElectionName, reason: &str, actor: &Actor) -> Result<HaltReport, StoreError> {
        self.operate("resume", |state, now| Ok(Done::Commit(state.resume(election, reason, actor, now))))
    }

    async fn resumed_baseline(&self, election: &ElectionName) -> Result<Option<(Lineage, DateTime<Utc>)>, StoreError> {
        self.look("resumed_baseline", |state, _now| state.resumed_baseline(election))
    }

    async fn request(&self, kind: &RequestKind, actor: &Actor, reason: Option<&str>) -> Result<Uuid, StoreError> {
        self.operate("request", |state, now| state.file_request(kind, actor, reason, now))
    }

    async fn request_state(&self, request: Uuid) -> Result<Option<RequestState>, StoreError> {
        self.look("request_state", |state, _now| state.request_state(request))
    }

    async fn waiting_requests(&self) -> Result<Vec<WaitingRequest>, StoreError> {
        self.look("waiting_requests", |state, _now| state.waiting_requests())
    }

    async fn withdraw_request(
        &self,
        request: Uuid,
        reason: &str,
        actor: &Actor,
    ) -> Result<WithdrawOutcome, StoreError> {
        self.operate("withdraw_request", |state, now| Ok(state.withdraw_request(request, reason, actor, now)))
    }

    async fn pause_job(&self, job: &JobName, reason: &str, actor: &Actor) -> Result<PauseOutcome, StoreError> {
        self.operate("pause_job", |state, now| Ok(state.pause_job(job, reason, actor, now)))
    }

    async fn unpause_job(&self, job: &JobName, reason: &str, actor: &Actor) -> Result<PauseOutcome, StoreError> {
        self.operate("unpause_job", |state, now| Ok(state.unpause_job(job, reason, actor, now)))
    }

    async fn preview(
        &self,
        job: &JobName,
        ledger: &LedgerDefinition,
        cutoffs: &[DateTime<Utc>],
    ) -> Result<Vec<PreviewLine>, StoreError> {
        self.look("preview", |state, _now| state.preview(job, ledger, cutoffs))
    }

    async fn import(&self, import: &NewImport, actor: &Actor) -> Result<ImportOutcome, StoreError> {
        self.operate("import", |state, now| state.import(import, actor, now))
    }

    async fn imports(&self, limit: u32) -> Result<Vec<ImportRecord>, StoreError> {
        self.look("imports", |state, _now| state.import_records(most(limit)))
    }

    async fn import_by_id(&self, import: i64) -> Result<Option<ImportView>, StoreError> {
        self.look("import_by_id", |state, _now| state.import_view(import))
    }

    async fn revert_import(&self, import: i64, reason: &str, actor: &Actor) -> Result<RevertOutcome, StoreError> {
        self.operate("revert_import", |state, now| {
            Ok(state.revert_import(import, reason, actor, Eyes::One(&self.replica), now))
        })
    }

    async fn status(&self) -> Result<StatusView, StoreError> {
        self.look("status", MemoryState::status)
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        self.look("runs", |state, now| state.runs_view(filter, most(filter.limit), now))
    }

    async fn run_by_id(&self, run: i64) -> Result<Option<RunView>, StoreError> {
        self.look("run_by_id", |state, now| state.run_view(run, now))
    }

    async fn report(&self, job: &JobName, tick: DateTime<Utc>) -> Result<Vec<RunReport>, StoreError> {
        self.look("report", |state, now| state.report(job, tick, now))
    }

    async fn units(&self, filter: &UnitFilter) -> Result<Vec<UnitView>, StoreError> {
        self.look("units", |state, _now| state.units_view(filter, most(filter.limit)))
    }

    async fn unit_history(&self, run: i64, key: &str) -> Result<Option<UnitHistory>, StoreError> {
        self.look("unit_history", |state, _now| state.unit_history(run, key))
    }

    async fn payouts(&self, filter: &PayoutFilter) -> Result<Vec<PayoutView>, StoreError> {
        self.look("payouts", |state, _now| state.payouts_view(filter, most(filter.limit)))
    }

    async fn resolve_payout(
        &self,
        key: &str,
        resolution: &Resolution,
        reason: &str,
        actor: &Actor,
    ) -> Result<ResolveOutcome, StoreError> {
        let eyes = Eyes::One(&self.replica);
        self.operate("resolve_payout", |state, now| Ok(state.resolve_payout(key, resolution, reason, actor, eyes, now)))
    }

    async fn resolve_call(
        &self,
        run: i64,
        unit: &str,
        word: &CallWord,
        reason: &str,
        actor: &Actor,
    ) -> Result<ResolveOutcome, StoreError> {
        let eyes = Eyes::One(&self.replica);
        self.operate("resolve_call", |state, now| Ok(state.resolve_call((run, unit), word, reason, actor, eyes, now)))
    }

    async fn release_payouts(
        &self,
        run: i64,
        keys: &[String],
        reason: &str,
        actor: &Actor,
    ) -> Result<ReleaseOutcome, StoreError> {
        let eyes = Eyes::One(&self.replica);
        self.operate("release_payouts", |state, now| Ok(state.release_payouts(run, keys, reason, actor, eyes, now)))
    }

    async fn set_four_eyes(&self, on: bool, reason: &str, actor: &Actor) -> Result<FourEyesOutcome, StoreError> {
        self.operate("four_eyes", |state, now| Ok(state.set_four_eyes(on, &self.replica, reason, actor, now)))
    }

    async fn approvals(&self, one: Option<i64>, decided: bool, limit: u32) -> Result<Vec<ApprovalView>, StoreError> {
        self.look("approvals", |state, _now| state.approvals_view(one, decided, most(limit)))
    }

    async fn decide(
        &self,
        request: i64,
        decision: Decision,
        reason: Option<&str>,
        actor: &Actor,
    ) -> Result<DecideOutcome, StoreError> {
        self.operate("approve", |state, now| Ok(state.decide(request, decision, &self.replica, reason, actor, now)))
    }

    async fn stated_payouts(
        &self,
        keys: &[String],
        references: &[String],
        days: (NaiveDate, NaiveDate),
    ) -> Result<Vec<ReportedPayout>, StoreError> {
        self.look("reconcile", |state, _now| state.stated_payouts(keys, references, days))
    }

    async fn receivers(&self) -> Result<Vec<ReceiverView>, StoreError> {
        self.look("receivers", |state, _now| state.receivers_view())
    }

    async fn resume_receiver(&self, origin: &str, reason: &str, actor: &Actor) -> Result<bool, StoreError> {
        self.operate("resume_receiver", |state, now| Ok(state.resume_receiver(origin, reason, actor, now)))
    }

    async fn hold_merchant(&self, merchant: &str, reason: &str, actor: &Actor) -> Result<HoldReport, StoreError> {
        self.operate("hold_merchant", |state, now| Ok(state.hold_merchant(merchant, reason, actor, now)))
    }

    async fn release_merchant(&self, merchant: &str, reason: &str, actor: &Actor) -> Result<Option<u64>, StoreError> {
        self.operate("release_merchant", |state, now| Ok(state.release_merchant(merchant, reason, actor, now)))
    }

    async fn is_merchant_known(&self, merchant: &str) -> Result<bool, StoreError> {
        self.look("is_merchant_known", |state, _now| state.is_merchant_known(merchant))
    }

    async fn merchant_holds(&self) -> Result<Vec<MerchantHold>, StoreError> {
        self.look("merchant_holds", |state, _now| state.merchant_holds())
    }

    async fn carries(&self) -> Result<Vec<JobCarries>, StoreError> {
        self.look("carries", |state, _now| state.carries())
    }

    async fn wishes(&self, replica: &str) -> Result<Wishes, StoreError> {
        self.look("wishes", |state, _now| state.wishes(replica))
    }

    async fn cordon(&self, replica: &str, cordoned: bool, reason: &str, actor: &Actor) -> Result<bool, StoreError> {
        self.operate("cordon", |state, now| Ok(state.cordon(replica, cordoned, reason, actor, now)))
    }

    async fn ask_transfer(
        &self,
        election: &ElectionName,
        term: Term,
        to: Option<&str>,
        reason: &str,
        actor: &Actor,
    ) -> Result<TransferAsked, StoreError> {
        let wish = TransferWish { election: election.clone(), term, to: to.map(ToOwned::to_owned) };
        self.operate("ask_transfer", |state, now| Ok(state.ask_transfer(wish.clone(), reason, actor, now)))
    }

    async fn history(&self, limit: u32) -> Result<HistoryView, StoreError> {
        self.look("history", |state, _now| state.history(most(limit)))
    }

    async fn stories(&self, filter: &StoryFilter) -> Result<Vec<TermStory>, StoreError> {
        self.look("stories", |state, _now| state.stories(filter))
    }

    async fn figures(&self, election: &ElectionName) -> Result<StoreFigures, StoreError> {
        self.look("figures", |state, now| state.figures(election, now))
    }

    async fn audit(&self) -> Result<AuditReport, StoreError> {
        self.look("audit", MemoryState::audit)
    }

    async fn understands(&self, _statement: UsersStatement<'_>) -> Result<Option<String>, StoreError> {
        Ok(Some("there is no SQL in memory".to_owned()))
    }

    async fn migrate(&self) -> Result<(i64, i64), StoreError> {
        Ok((SCHEMA, SCHEMA))
    }

    async fn close(&self) {}
}
