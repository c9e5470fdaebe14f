//! The unfenced half of the port: each operation with its session, its transaction and its bound.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use super::approvals::Eyes;
use super::halt::{Switch, switch};
use super::store::{PgStore, finish};
use super::tenure::PgTenure;
use super::within::{COMMAND, CONTROL, HEALTH, READ, within};
use super::{
    advance, approvals, audit, binding, call_acts, carries, fence, figures, fitness, halt, history, import, migrate,
    pauses, payout_acts, preview, report, requests, revert, runs, status, stories, understands, unit_history, units,
    wishes,
};
use crate::domain::job::LedgerDefinition;
use crate::domain::{Claim, ElectionName, JobName, Term};
use crate::store::{
    Actor, Admission, AdvanceOutcome, ApprovalView, AuditReport, BindOutcome, CallWord, CoordinatorBinding,
    DecideOutcome, Decision, Fence, FourEyesOutcome, HaltReport, Health, HistoryView, HoldReport, ImportOutcome,
    ImportRecord, ImportView, JobCarries, Leader, Lineage, MerchantHold, NewImport, PauseOutcome, PayoutFilter,
    PayoutView, PreviewLine, Promotion, ReceiverView, ReleaseOutcome, ReportedPayout, RequestKind, RequestState,
    Resolution, ResolveOutcome, RevertOutcome, RunFilter, RunReport, RunSummary, RunView, StatusView, Store,
    StoreError, StoreFigures, StoryFilter, TenureLimits, TenureStore, TermStory, TransferAsked, UnitFilter,
    UnitHistory, UnitView, UsersStatement, WaitingRequest, Wishes, WithdrawOutcome,
};

/// An operation of single statements on the control pool.
macro_rules! control {
    ($self:ident, $operation:literal, $bound:expr, $connection:ident => $work:expr) => {{
        let mut held = $self.control.acquire($operation).await?;
        let $connection = held.connection();
        let done = within($operation, $bound, $work).await;
        // After a fault the session is dropped: what was given up may still be under way on the server.
        if done.is_ok() {
            held.give_back();
        }
        done
    }};
}

/// The same, reading for people: one at a time, so that the fence never waits for them.
macro_rules! reading {
    ($self:ident, $operation:literal, $connection:ident => $work:expr) => {{
        let _turn = within($operation, READ, async {
            $self.reading.acquire().await.map_err(|_closed| StoreError::Ended { operation: $operation })
        })
        .await?;
        control!($self, $operation, READ, $connection => $work)
    }};
}

#[async_trait]
impl Store for PgStore {
    async fn health(&self) -> Result<Health, StoreError> {
        let health = fitness::health(self).await?;
        if let Err(error) = within("note_end", HEALTH, self.tell_ends()).await {
            tracing::debug!(%error, "the ends of tenures could not be noted");
        }
        Ok(health)
    }

    async fn now(&self) -> Result<DateTime<Utc>, StoreError> {
        control!(self, "now", CONTROL, connection => binding::now(connection))
    }

    async fn bind(&self, coordinator: &CoordinatorBinding) -> Result<BindOutcome, StoreError> {
        control!(self, "bind", CONTROL, connection => binding::bind(connection, coordinator))
    }

    async fn fence(&self, election: &ElectionName) -> Result<Option<Fence>, StoreError> {
        control!(self, "fence", CONTROL, connection => fence::read(connection, "fence", election))
    }

    async fn advance(&self, claim: &Claim, leader: &Leader, within: Duration) -> Result<AdvanceOutcome, StoreError> {
        advance::advance(self, claim, leader, within).await
    }

    async fn tenure(
        &self,
        claim: &Claim,
        limits: TenureLimits,
        baseline: Lineage,
        admission: Arc<dyn Admission>,
    ) -> Result<Arc<dyn TenureStore>, StoreError> {
        Ok(Arc::new(PgTenure::open(self, claim, limits, baseline, admission).await?))
    }

    async fn note_work(&self, claim: &Claim, at: DateTime<Utc>) -> Result<(), StoreError> {
        control!(self, "note_work", CONTROL, connection => binding::note_work(connection, claim, at))
    }

    async fn note_end(&self, claim: &Claim, reason: &str, at: Option<DateTime<Utc>>) -> Result<(), StoreError> {
        // Before it is tried: whoever waits may give up, and then it is said again with the next health check.
        self.untold.remember(claim, reason, at);
        self.tell_ends().await
    }

    async fn note_promotion(&self, claim: &Claim, promotion: &Promotion) -> Result<(), StoreError> {
        control!(self, "note_promotion", CONTROL, connection => stories::note_promotion(connection, claim, promotion))
    }

    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        control!(self, "elections", CONTROL, connection => halt::elections(connection))
    }

    async fn halt(&self, election: &ElectionName, reason: &str, actor: &Actor) -> Result<HaltReport, StoreError> {
        switch(self, Switch::Halt, election, reason, actor).await
    }

    async fn resume(&self, election: &ElectionName, reason: &str, actor: &Actor) -> Result<HaltReport, StoreError> {
        switch(self, Switch::Resume, election, reason, actor).await
    }

    async fn resumed_baseline(&self, election: &ElectionName) -> Result<Option<(Lineage, DateTime<Utc>)>, StoreError> {
        control!(self, "resumed_baseline", CONTROL, connection => halt::resumed_baseline(connection, election))
    }

    async fn request(&self, kind: &RequestKind, actor: &Actor, reason: Option<&str>) -> Result<Uuid, StoreError> {
        let mut tx = self.control_tx("request").await?;
        let worked = within("request", CONTROL, requests::file(tx.conn(), kind, actor, reason)).await;
        finish(tx, worked).await
    }

    async fn request_state(&self, request: Uuid) -> Result<Option<RequestState>, StoreError> {
        control!(self, "request_state", CONTROL, connection => requests::state(connection, request))
    }

    async fn waiting_requests(&self) -> Result<Vec<WaitingRequest>, StoreError> {
        reading!(self, "waiting_requests", connection => requests::waiting(connection))
    }

    async fn withdraw_request(
        &self,
        request: Uuid,
        reason: &str,
        actor: &Actor,
    ) -> Result<WithdrawOutcome, StoreError> {
        let mut tx = self.control_tx("withdraw_request").await?;
        let worked = within("withdraw_request", CONTROL, requests::withdraw(tx.conn(), request, reason, actor)).await;
        finish(tx, worked).await
    }

    async fn pause_job(&self, job: &JobName, reason: &str, actor: &Actor) -> Result<PauseOutcome, StoreError> {
        let mut tx = self.control_tx("pause_job").await?;
        let worked = within("pause_job", CONTROL, pauses::pause(tx.conn(), job, reason, actor)).await;
        finish(tx, worked).await
    }

    async fn unpause_job(&self, job: &JobName, reason: &str, actor: &Actor) -> Result<PauseOutcome, StoreError> {
        let mut tx = self.control_tx("unpause_job").await?;
        let worked = within("unpause_job", CONTROL, pauses::unpause(tx.conn(), job, reason, actor)).await;
        finish(tx, worked).await
    }

    async fn preview(
        &self,
        job: &JobName,
        ledger: &LedgerDefinition,
        cutoffs: &[DateTime<Utc>],
    ) -> Result<Vec<PreviewLine>, StoreError> {
        reading!(self, "preview", connection => preview::preview(connection, job, ledger, cutoffs))
    }

    async fn import(&self, import: &NewImport, actor: &Actor) -> Result<ImportOutcome, StoreError> {
        let mut tx = self.command_tx("import").await?;
        let worked = within("import", COMMAND, import::import(tx.conn(), import, actor)).await;
        finish(tx, worked).await
    }

    async fn imports(&self, limit: u32) -> Result<Vec<ImportRecord>, StoreError> {
        reading!(self, "imports", connection => import::imports(connection, limit))
    }

    async fn import_by_id(&self, import: i64) -> Result<Option<ImportView>, StoreError> {
        reading!(self, "import_by_id", connection => import::import_by_id(connection, import))
    }

    async fn revert_import(&self, import: i64, reason: &str, actor: &Actor) -> Result<RevertOutcome, StoreError> {
        let mut tx = self.command_tx("revert_import").await?;
        let worked =
            within("revert_import", COMMAND, revert::revert_import(tx.conn(), import, reason, actor, Eyes::One)).await;
        finish(tx, worked).await
    }

    async fn status(&self) -> Result<StatusView, StoreError> {
        reading!(self, "status", connection => status::status(connection))
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        reading!(self, "runs", connection => runs::runs(connection, filter))
    }

    async fn run_by_id(&self, run: i64) -> Result<Option<RunView>, StoreError> {
        reading!(self, "run_by_id", connection => runs::run_by_id(connection, run))
    }

    async fn report(&self, job: &JobName, tick: DateTime<Utc>) -> Result<Vec<RunReport>, StoreError> {
        let mut tx = self.snapshot_tx("report").await?;
        let worked = within("report", COMMAND, report::report(tx.conn(), job, tick)).await;
        finish(tx, worked.map(super::tx::Done::RollBack)).await
    }

    async fn units(&self, filter: &UnitFilter) -> Result<Vec<UnitView>, StoreError> {
        reading!(self, "units", connection => units::units(connection, filter))
    }

    async fn unit_history(&self, run: i64, key: &str) -> Result<Option<UnitHistory>, StoreError> {
        let mut tx = self.snapshot_tx("unit_history").await?;
        let worked = within("unit_history", READ, unit_history::unit_history(tx.conn(), run, key)).await;
        finish(tx, worked.map(super::tx::Done::RollBack)).await
    }

    async fn payouts(&self, filter: &PayoutFilter) -> Result<Vec<PayoutView>, StoreError> {
        reading!(self, "payouts", connection => payout_acts::payouts(connection, filter))
    }

    async fn resolve_payout(
        &self,
        key: &str,
        resolution: &Resolution,
        reason: &str,
        actor: &Actor,
    ) -> Result<ResolveOutcome, StoreError> {
        let mut tx = self.command_tx("resolve_payout").await?;
        let work = payout_acts::resolve_payout(tx.conn(), key, resolution, reason, actor, Eyes::One);
        let worked = within("resolve_payout", COMMAND, work).await;
        finish(tx, worked).await
    }

    async fn resolve_call(
        &self,
        run: i64,
        unit: &str,
        word: &CallWord,
        reason: &str,
        actor: &Actor,
    ) -> Result<ResolveOutcome, StoreError> {
        let mut tx = self.command_tx("resolve_call").await?;
        let resolving = call_acts::resolve(tx.conn(), (run, unit), word, reason, actor, Eyes::One);
        let worked = within("resolve_call", COMMAND, resolving).await;
        finish(tx, worked).await
    }

    async fn release_payouts(
        &self,
        run: i64,
        keys: &[String],
        reason: &str,
        actor: &Actor,
    ) -> Result<ReleaseOutcome, StoreError> {
        let mut tx = self.command_tx("release_payouts").await?;
        let work = payout_acts::release_payouts(tx.conn(), run, keys, reason, actor, Eyes::One);
        let worked = within("release_payouts", COMMAND, work).await;
        finish(tx, worked).await
    }

    async fn set_four_eyes(&self, on: bool, reason: &str, actor: &Actor) -> Result<FourEyesOutcome, StoreError> {
        let mut tx = self.control_tx("four_eyes").await?;
        let worked = within("four_eyes", CONTROL, approvals::set_four_eyes(tx.conn(), on, reason, actor)).await;
        finish(tx, worked).await
    }

    async fn approvals(&self, one: Option<i64>, decided: bool, limit: u32) -> Result<Vec<ApprovalView>, StoreError> {
        reading!(self, "approvals", connection => approvals::approvals(connection, one, decided, limit))
    }

    async fn decide(
        &self,
        request: i64,
        decision: Decision,
        reason: Option<&str>,
        actor: &Actor,
    ) -> Result<DecideOutcome, StoreError> {
        let mut tx = self.command_tx("approve").await?;
        let worked = within("approve", COMMAND, approvals::decide(tx.conn(), request, decision, reason, actor)).await;
        finish(tx, worked).await
    }

    async fn stated_payouts(
        &self,
        keys: &[String],
        references: &[String],
        days: (NaiveDate, NaiveDate),
    ) -> Result<Vec<ReportedPayout>, StoreError> {
        let mut tx = self.snapshot_tx("reconcile").await?;
        let worked = within("reconcile", COMMAND, report::stated(tx.conn(), keys, references, days)).await;
        finish(tx, worked.map(super::tx::Done::RollBack)).await
    }

    async fn receivers(&self) -> Result<Vec<ReceiverView>, StoreError> {
        reading!(self, "receivers", connection => payout_acts::receivers(connection))
    }

    async fn resume_receiver(&self, origin: &str, reason: &str, actor: &Actor) -> Result<bool, StoreError> {
        let mut tx = self.command_tx("resume_receiver").await?;
        let work = payout_acts::resume_receiver(tx.conn(), origin, reason, actor);
        let worked = within("resume_receiver", COMMAND, work).await;
        finish(tx, worked).await
    }

    async fn hold_merchant(&self, merchant: &str, reason: &str, actor: &Actor) -> Result<HoldReport, StoreError> {
        let mut tx = self.command_tx("hold_merchant").await?;
        let work = payout_acts::hold_merchant(tx.conn(), merchant, reason, actor);
        let worked = within("hold_merchant", COMMAND, work).await;
        finish(tx, worked).await
    }

    async fn release_merchant(&self, merchant: &str, reason: &str, actor: &Actor) -> Result<Option<u64>, StoreError> {
        let mut tx = self.command_tx("release_merchant").await?;
        let work = payout_acts::release_merchant(tx.conn(), merchant, reason, actor);
        let worked = within("release_merchant", COMMAND, work).await;
        finish(tx, worked).await
    }

    async fn is_merchant_known(&self, merchant: &str) -> Result<bool, StoreError> {
        reading!(self, "is_merchant_known", connection => import::is_merchant_known(connection, merchant))
    }

    async fn merchant_holds(&self) -> Result<Vec<MerchantHold>, StoreError> {
        reading!(self, "merchant_holds", connection => payout_acts::merchant_holds(connection))
    }

    async fn carries(&self) -> Result<Vec<JobCarries>, StoreError> {
        reading!(self, "carries", connection => carries::carries(connection))
    }

    async fn wishes(&self, replica: &str) -> Result<Wishes, StoreError> {
        control!(self, "wishes", CONTROL, connection => wishes::wishes(connection, replica))
    }

    async fn cordon(&self, replica: &str, cordoned: bool, reason: &str, actor: &Actor) -> Result<bool, StoreError> {
        let mut tx = self.control_tx("cordon").await?;
        let work = wishes::cordon(tx.conn(), replica, cordoned, reason, actor);
        let worked = within("cordon", CONTROL, work).await;
        finish(tx, worked).await
    }

    async fn ask_transfer(
        &self,
        election: &ElectionName,
        term: Term,
        to: Option<&str>,
        reason: &str,
        actor: &Actor,
    ) -> Result<TransferAsked, StoreError> {
        let mut tx = self.control_tx("ask_transfer").await?;
        let work = wishes::ask_transfer(tx.conn(), election, term, to, reason, actor);
        let worked = within("ask_transfer", CONTROL, work).await;
        finish(tx, worked).await
    }

    async fn history(&self, limit: u32) -> Result<HistoryView, StoreError> {
        reading!(self, "history", connection => history::history(connection, limit))
    }

    async fn stories(&self, filter: &StoryFilter) -> Result<Vec<TermStory>, StoreError> {
        let mut tx = self.snapshot_tx("stories").await?;
        let worked = within("stories", READ, stories::stories(tx.conn(), filter)).await;
        finish(tx, worked.map(super::tx::Done::RollBack)).await
    }

    async fn figures(&self, election: &ElectionName) -> Result<StoreFigures, StoreError> {
        reading!(self, "figures", connection => figures::figures(connection, election))
    }

    async fn audit(&self) -> Result<AuditReport, StoreError> {
        let mut tx = self.snapshot_tx("audit").await?;
        let worked = within("audit", COMMAND, audit::audit(tx.conn())).await;
        finish(tx, worked.map(super::tx::Done::RollBack)).await
    }

    async fn understands(&self, statement: UsersStatement<'_>) -> Result<Option<String>, StoreError> {
        let mut tx = self.command_tx("understands").await?;
        let worked = within("understands", READ, understands::understands(tx.conn(), statement)).await;
        finish(tx, worked.map(super::tx::Done::RollBack)).await
    }

    async fn migrate(&self) -> Result<(i64, i64), StoreError> {
        let mut tx = self.command_tx("migrate").await?;
        let worked = within("migrate", COMMAND, migrate::migrate(tx.conn())).await;
        finish(tx, worked).await
    }

    async fn close(&self) {
        // Each is bounded by itself.
        self.notes.close();
        self.notes.wait().await;
        drop(self.control.close());
    }
}
