//! The unfenced half of the port: each operation with its session, its transaction and its bound.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use super::halt::{Switch, switch};
use super::store::{SqliteStore, finish};
use super::tenure::SqliteTenure;
use super::tx::{Done, read};
use super::within::{COMMAND, CONTROL, HEALTH, READ, within};
use super::{
    advance, audit, binding, call_acts, carries, fence, figures, fitness, halt, history, import, migrate, pauses,
    payout_acts, preview, report, requests, revert, runs, status, stories, understands, unit_history, units, wishes,
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

/// An operation that reads one snapshot on a control session.
macro_rules! control {
    ($self:ident, $operation:literal, $bound:expr, $connection:ident => $work:expr) => {{
        let mut tx = read(&$self.control, $operation).await?;
        let $connection = tx.conn();
        let done = within($operation, $bound, $work).await;
        finish(tx, done.map(Done::RollBack)).await
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

/// A short operation that writes.
macro_rules! acting {
    ($self:ident, $operation:literal, $connection:ident => $work:expr) => {{
        let mut tx = $self.control_tx($operation).await?;
        let $connection = tx.conn();
        let done = within($operation, CONTROL, $work).await;
        finish(tx, done).await
    }};
}

/// A command with one long transaction.
macro_rules! command {
    ($self:ident, $operation:literal, $connection:ident => $work:expr) => {{
        let mut tx = $self.command_tx($operation).await?;
        let $connection = tx.conn();
        let done = within($operation, COMMAND, $work).await;
        finish(tx, done).await
    }};
}

#[async_trait]
impl Store for SqliteStore {
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
        let bound = control!(self, "bind", CONTROL, connection => binding::compare(connection, coordinator))?;
        if let Some(outcome) = bound {
            return Ok(outcome);
        }
        acting!(self, "bind", connection => binding::bind(connection, coordinator))
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
        Ok(Arc::new(SqliteTenure::open(self, claim, limits, baseline, admission).await?))
    }

    async fn note_work(&self, claim: &Claim, at: DateTime<Utc>) -> Result<(), StoreError> {
        acting!(self, "note_work", connection => binding::note_work(connection, claim, at))
    }

    async fn note_end(&self, claim: &Claim, reason: &str, at: Option<DateTime<Utc>>) -> Result<(), StoreError> {
        // Before it is tried: whoever waits may give up, and then it is said again with the next health check.
        self.untold.remember(claim, reason, at);
        self.tell_ends().await
    }

    async fn note_promotion(&self, claim: &Claim, promotion: &Promotion) -> Result<(), StoreError> {
        acting!(self, "note_promotion", connection => stories::note_promotion(connection, claim, promotion))
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
        acting!(self, "request", connection => requests::file(connection, kind, actor, reason))
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
        acting!(self, "withdraw_request", connection => requests::withdraw(connection, request, reason, actor))
    }

    async fn pause_job(&self, job: &JobName, reason: &str, actor: &Actor) -> Result<PauseOutcome, StoreError> {
        acting!(self, "pause_job", connection => pauses::pause(connection, job, reason, actor))
    }

    async fn unpause_job(&self, job: &JobName, reason: &str, actor: &Actor) -> Result<PauseOutcome, StoreError> {
        acting!(self, "unpause_job", connection => pauses::unpause(connection, job, reason, actor))
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
        // Before the file's write lock is taken.
        let file = import::File::of(import)?;
        command!(self, "import", connection => import::import(connection, &file, actor))
    }

    async fn imports(&self, limit: u32) -> Result<Vec<ImportRecord>, StoreError> {
        reading!(self, "imports", connection => import::imports(connection, limit))
    }

    async fn import_by_id(&self, import: i64) -> Result<Option<ImportView>, StoreError> {
        reading!(self, "import_by_id", connection => import::import_by_id(connection, import))
    }

    async fn revert_import(&self, import: i64, reason: &str, actor: &Actor) -> Result<RevertOutcome, StoreError> {
        command!(self, "revert_import", connection => revert::revert_import(connection, import, reason, actor))
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
        finish(tx, worked.map(Done::RollBack)).await
    }

    async fn units(&self, filter: &UnitFilter) -> Result<Vec<UnitView>, StoreError> {
        reading!(self, "units", connection => units::units(connection, filter))
    }

    async fn unit_history(&self, run: i64, key: &str) -> Result<Option<UnitHistory>, StoreError> {
        let mut tx = self.snapshot_tx("unit_history").await?;
        let worked = within("unit_history", READ, unit_history::unit_history(tx.conn(), run, key)).await;
        finish(tx, worked.map(Done::RollBack)).await
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
        acting!(self, "resolve_payout", connection => payout_acts::resolve_payout(connection, key, resolution, reason, actor))
    }

    async fn resolve_call(
        &self,
        run: i64,
        unit: &str,
        word: &CallWord,
        reason: &str,
        actor: &Actor,
    ) -> Result<ResolveOutcome, StoreError> {
        acting!(self, "resolve_call", connection => call_acts::resolve(connection, (run, unit), word, reason, actor))
    }

    async fn release_payouts(
        &self,
        run: i64,
        keys: &[String],
        reason: &str,
        actor: &Actor,
    ) -> Result<ReleaseOutcome, StoreError> {
        command!(self, "release_payouts", connection => payout_acts::release_payouts(connection, run, keys, reason, actor))
    }

    async fn set_four_eyes(&self, on: bool, _reason: &str, _actor: &Actor) -> Result<FourEyesOutcome, StoreError> {
        if on {
            let detail = "the second pair of eyes is another database role, and SQLite has none";
            return Err(StoreError::Unfit { detail: detail.to_owned() });
        }
        Ok(FourEyesOutcome::Off)
    }

    async fn approvals(&self, _one: Option<i64>, _decided: bool, _limit: u32) -> Result<Vec<ApprovalView>, StoreError> {
        Ok(Vec::new())
    }

    async fn decide(
        &self,
        _request: i64,
        _decision: Decision,
        _reason: Option<&str>,
        _actor: &Actor,
    ) -> Result<DecideOutcome, StoreError> {
        Ok(DecideOutcome::NotFound)
    }

    async fn stated_payouts(
        &self,
        keys: &[String],
        references: &[String],
        days: (NaiveDate, NaiveDate),
    ) -> Result<Vec<ReportedPayout>, StoreError> {
        let mut tx = self.snapshot_tx("reconcile").await?;
        let worked = within("reconcile", COMMAND, report::stated(tx.conn(), keys, references, days)).await;
        finish(tx, worked.map(Done::RollBack)).await
    }

    async fn receivers(&self) -> Result<Vec<ReceiverView>, StoreError> {
        reading!(self, "receivers", connection => payout_acts::receivers(connection))
    }

    async fn resume_receiver(&self, origin: &str, reason: &str, actor: &Actor) -> Result<bool, StoreError> {
        acting!(self, "resume_receiver", connection => payout_acts::resume_receiver(connection, origin, reason, actor))
    }

    async fn hold_merchant(&self, merchant: &str, reason: &str, actor: &Actor) -> Result<HoldReport, StoreError> {
        command!(self, "hold_merchant", connection => payout_acts::hold_merchant(connection, merchant, reason, actor))
    }

    async fn release_merchant(&self, merchant: &str, reason: &str, actor: &Actor) -> Result<Option<u64>, StoreError> {
        command!(self, "release_merchant", connection => payout_acts::release_merchant(connection, merchant, reason, actor))
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
        acting!(self, "cordon", connection => wishes::cordon(connection, replica, cordoned, reason, actor))
    }

    async fn ask_transfer(
        &self,
        election: &ElectionName,
        term: Term,
        to: Option<&str>,
        reason: &str,
        actor: &Actor,
    ) -> Result<TransferAsked, StoreError> {
        acting!(self, "ask_transfer", connection => wishes::ask_transfer(connection, election, term, to, reason, actor))
    }

    async fn history(&self, limit: u32) -> Result<HistoryView, StoreError> {
        reading!(self, "history", connection => history::history(connection, limit))
    }

    async fn stories(&self, filter: &StoryFilter) -> Result<Vec<TermStory>, StoreError> {
        let mut tx = self.snapshot_tx("stories").await?;
        let worked = within("stories", READ, stories::stories(tx.conn(), filter)).await;
        finish(tx, worked.map(Done::RollBack)).await
    }

    async fn figures(&self, election: &ElectionName) -> Result<StoreFigures, StoreError> {
        self.log_size.look(self.file.path());
        reading!(self, "figures", connection => figures::figures(connection, election))
    }

    async fn audit(&self) -> Result<AuditReport, StoreError> {
        let mut tx = self.snapshot_tx("audit").await?;
        let worked = within("audit", COMMAND, audit::audit(tx.conn())).await;
        finish(tx, worked.map(Done::RollBack)).await
    }

    async fn understands(&self, statement: UsersStatement<'_>) -> Result<Option<String>, StoreError> {
        let mut tx = self.command_tx("understands").await?;
        let worked = within("understands", READ, understands::understands(tx.conn(), statement)).await;
        finish(tx, worked.map(Done::RollBack)).await
    }

    async fn migrate(&self) -> Result<(i64, i64), StoreError> {
        let (before, _) = self.file.make_ready("migrate").await?;
        let (_, now) = command!(self, "migrate", connection => migrate::migrate(connection, "migrate"))?;
        Ok((before, now))
    }

    async fn close(&self) {
        // Each is bounded by itself.
        self.notes.close();
        self.notes.wait().await;
        // The last connection of a file brings its log in and removes it.
        for sessions in [&self.commands, &self.control] {
            sessions.shed().await;
            sessions.close();
            if !sessions.gone(CONTROL).await {
                tracing::warn!("connections with the file could not be seen to close");
            }
        }
    }
}
