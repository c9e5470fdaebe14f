//! One tenure's way to the store: the fenced port, and what the judge sees of each operation: what was asked, how it went, and
//! what of it is now on its way to a receiver.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bursar::domain::{Claim, ElectionName, JobName};
use bursar::store::*;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::breaks::Break;
use crate::coordinator::Way;
use crate::facts::{Kind, Taken, Touch, Went};
use crate::store::over;

/// The fenced half.
pub struct SimTenure {
    pub way: Way,
    pub inner: Arc<dyn TenureStore>,
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

    async fn give_up(&self, run: i64, after: i64, limit: u32) -> Fenced<GiveUpOutcome> {
        self.pass(Kind::Begin, "give_up", self.inner.give_up(run, after, limit), nothing).await
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

    async fn take_over_job(&self, job: &JobName, from: &ElectionName) -> Fenced<TakeOverOutcome> {
        self.pass(Kind::Begin, "take_over_job", self.inner.take_over_job(job, from), nothing).await
    }

    async fn record_ticks(&self, record: TicksRecord) -> Fenced<TicksOutcome> {
        self.pass(Kind::Begin, "record_ticks", self.inner.record_ticks(record), nothing).await
    }

    async fn recorded(&self, ticks: &[(i64, DateTime<Utc>)]) -> Fenced<BTreeSet<(i64, DateTime<Utc>)>> {
        self.pass(Kind::Begin, "recorded", self.inner.recorded(ticks), nothing).await
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
