//! One tenure's way to the store: the fenced port, and what the judge sees of each operation: what was asked, how it went, and
//! what of it is now on its way to a receiver.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bursar::domain::{Claim, ElectionName, JobName};
use bursar::store::*;
use chrono::{DateTime, Utc};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::breaks::Break;
use crate::coordinator::Way;
use crate::facts::{Kind, Taken, Touch, Went};
use crate::store::over;
use crate::world::{Landing, To};

/// The fenced half.
pub struct SimTenure {
    way: Way,
    inner: Arc<dyn TenureStore>,
    admission: Arc<dyn Admission>,
    /// Its sessions are ended: nothing leaves any more.
    ended: AtomicBool,
}

/// Nothing of this operation is on its way to a receiver.
fn nothing<T>(_: &mut T) -> Vec<Taken> {
    Vec::new()
}

/// Asks on, some time after the end.
#[expect(clippy::disallowed_methods, reason = "a task that nobody owns is what is broken here")]
fn ask_on(way: Way, claim: Claim) {
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        way.alive().await;
        way.world.touch(&way.name, Touch::Asked { claim, kind: Kind::Record, operation: "lineage" });
    });
}

impl SimTenure {
    pub fn new(way: Way, inner: Arc<dyn TenureStore>, admission: Arc<dyn Admission>) -> Self {
        Self { way, inner, admission, ended: AtomicBool::new(false) }
    }

    /// One fenced operation; `taken` says what of it is now on its way to a receiver.
    async fn pass<T: Send + 'static, F: Future<Output = Fenced<T>> + Send + 'static>(
        &self,
        kind: Kind,
        operation: &'static str,
        call: impl FnOnce(Arc<dyn TenureStore>) -> F + Send + 'static,
        taken: impl FnOnce(&mut T) -> Vec<Taken> + Send + 'static,
    ) -> Fenced<T> {
        let admitted = match kind {
            Kind::Begin => self.admission.admitted().await,
            // What has begun ends by itself, and the fence covers it.
            Kind::Record => true,
        };
        self.way.alive().await;
        if !admitted || self.ended.load(Ordering::SeqCst) {
            return Err(StoreError::Ended { operation });
        }
        let (inner, name, claim) = (Arc::clone(&self.inner), self.way.name.clone(), self.inner.claim().clone());
        self.way.world.touch(&name, Touch::Asked { claim: claim.clone(), kind, operation });
        let of = Some(claim.clone());
        let arrived = async move { call(inner).await };
        over(&self.way, operation, of, arrived, move |world, done| {
            let (went, taken) = match done {
                Ok(Entered::Mine(done)) => (Went::Mine, taken(done)),
                Ok(Entered::Fenced(_)) => (Went::Fenced, Vec::new()),
                Ok(Entered::Halted(_)) => (Went::Halted, Vec::new()),
                Err(_) => (Went::Failed, Vec::new()),
            };
            match went {
                Went::Fenced => world.count("refused by the fence"),
                Went::Halted => world.count("refused by a halt"),
                Went::Mine | Went::Failed => {}
            }
            world.touch(&name, Touch::Did { claim, kind, operation, went, taken });
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
        self.pass(Kind::Record, "recover", move |inner| async move { inner.recover().await }, nothing).await
    }

    async fn give_up(&self, run: i64, after: i64, limit: u32) -> Fenced<GiveUpOutcome> {
        self.pass(Kind::Begin, "give_up", move |inner| async move { inner.give_up(run, after, limit).await }, nothing)
            .await
    }

    async fn pulse(&self) -> Fenced<Pulse> {
        self.pass(Kind::Begin, "pulse", move |inner| async move { inner.pulse().await }, nothing).await
    }

    async fn jobs(&self) -> Fenced<JobsView> {
        self.pass(Kind::Begin, "jobs", move |inner| async move { inner.jobs().await }, nothing).await
    }

    async fn change_job(&self, change: JobChange) -> Fenced<JobChangeOutcome> {
        if self.broken() == Break::JobChangesLost {
            return Ok(Entered::Mine(JobChangeOutcome::Changed(None)));
        }
        self.pass(Kind::Begin, "change_job", move |inner| async move { inner.change_job(change).await }, nothing).await
    }

    async fn take_over_job(&self, job: &JobName, from: &ElectionName) -> Fenced<TakeOverOutcome> {
        let (job, from) = (job.clone(), from.clone());
        self.pass(
            Kind::Begin,
            "take_over_job",
            move |inner| async move { inner.take_over_job(&job, &from).await },
            nothing,
        )
        .await
    }

    async fn record_ticks(&self, mut record: TicksRecord) -> Fenced<TicksOutcome> {
        if self.broken() == Break::MarkMovedFirst {
            record.ticks.clear();
        }
        self.pass(Kind::Begin, "record_ticks", move |inner| async move { inner.record_ticks(record).await }, nothing)
            .await
    }

    async fn recorded(&self, ticks: &[(i64, DateTime<Utc>)]) -> Fenced<BTreeSet<(i64, DateTime<Utc>)>> {
        let ticks = ticks.to_vec();
        self.pass(Kind::Begin, "recorded", move |inner| async move { inner.recorded(&ticks).await }, nothing).await
    }

    async fn open_runs(&self) -> Fenced<Vec<OpenRun>> {
        self.pass(Kind::Begin, "open_runs", move |inner| async move { inner.open_runs().await }, nothing).await
    }

    async fn begin_work(&self, run: i64) -> Fenced<()> {
        self.pass(Kind::Begin, "begin_work", move |inner| async move { inner.begin_work(run).await }, nothing).await
    }

    async fn plan_page(
        &self,
        run: &OpenRun,
        source: &PlanSource,
        after: Option<&str>,
        limit: u32,
    ) -> Fenced<PlanOutcome> {
        let (run, mut source, after) = (run.clone(), source.clone(), after.map(str::to_owned));
        if let (Break::MerchantSkipped, PlanSource::Ledger(ledger)) = (self.broken(), &mut source) {
            ledger.merchants = (1..5).map(|merchant| format!("m-{merchant}")).collect();
        }
        self.pass(
            Kind::Begin,
            "plan_page",
            move |inner| async move { inner.plan_page(&run, &source, after.as_deref(), limit).await },
            nothing,
        )
        .await
    }

    async fn settle(&self, run: &OpenRun, pick: UnitPick, effect: &Effect) -> Fenced<SettleOutcome> {
        if self.broken() == Break::BatchesLost {
            return Ok(Entered::Mine(SettleOutcome::Nothing));
        }
        if let UnitPick::Exactly(units) = &pick
            && let [unit] = units.as_slice()
        {
            self.way.world.touch(&self.way.name, Touch::Alone { unit: *unit });
        }
        let (run, effect) = (run.clone(), effect.clone());
        self.pass(Kind::Begin, "settle", move |inner| async move { inner.settle(&run, pick, &effect).await }, nothing)
            .await
    }

    async fn charge(&self, run: i64, charges: &[Charge]) -> Fenced<u64> {
        let units = charges.iter().map(|charge| charge.unit).collect();
        self.way.world.touch(&self.way.name, Touch::Charges { run, units });
        let charges = charges.to_vec();
        self.pass(Kind::Record, "charge", move |inner| async move { inner.charge(run, &charges).await }, nothing).await
    }

    async fn take_calls(&self, run: &OpenRun, limit: u32) -> Fenced<Vec<Call>> {
        let taken = |calls: &mut Vec<Call>| {
            calls.iter().map(|call| (call.instruction, call.idempotency_key.clone(), call.body.clone())).collect()
        };
        let run = run.clone();
        self.pass(Kind::Begin, "take_calls", move |inner| async move { inner.take_calls(&run, limit).await }, taken)
            .await
    }

    async fn record_calls(&self, run: i64, records: &[CallRecord]) -> Fenced<u64> {
        let records = records.to_vec();
        self.pass(
            Kind::Record,
            "record_calls",
            move |inner| async move { inner.record_calls(run, &records).await },
            nothing,
        )
        .await
    }

    async fn put_back(&self, run: i64, kept: &[(i64, u32)]) -> Fenced<u64> {
        let kept = kept.to_vec();
        self.pass(Kind::Record, "put_back", move |inner| async move { inner.put_back(run, &kept).await }, nothing).await
    }

    async fn finish_run(&self, run: i64) -> Fenced<FinishOutcome> {
        self.pass(Kind::Begin, "finish_run", move |inner| async move { inner.finish_run(run).await }, nothing).await
    }

    async fn payout_jobs(&self) -> Fenced<Vec<PayoutJob>> {
        self.pass(Kind::Begin, "payout_jobs", move |inner| async move { inner.payout_jobs().await }, nothing).await
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
        let take = take.clone();
        self.pass(Kind::Begin, "take_payouts", move |inner| async move { inner.take_payouts(&take).await }, taken).await
    }

    async fn record_payouts(&self, records: &PayoutRecords) -> Fenced<PayoutsRecorded> {
        if self.broken() == Break::RecordsLost {
            return Ok(Entered::Mine(PayoutsRecorded::default()));
        }
        let records = records.clone();
        self.pass(
            Kind::Record,
            "record_payouts",
            move |inner| async move { inner.record_payouts(&records).await },
            nothing,
        )
        .await
    }

    async fn put_back_payouts(&self, origin: &str, kept: &[(i64, u32)]) -> Fenced<u64> {
        let (origin, kept) = (origin.to_owned(), kept.to_vec());
        self.pass(
            Kind::Record,
            "put_back_payouts",
            move |inner| async move { inner.put_back_payouts(&origin, &kept).await },
            nothing,
        )
        .await
    }

    async fn receiver_way(&self, ask: &ReceiverAsk) -> Fenced<ReceiverWay> {
        let ask = ask.clone();
        self.pass(Kind::Begin, "receiver_way", move |inner| async move { inner.receiver_way(&ask).await }, nothing)
            .await
    }

    async fn heard(&self, heard: &Heard) -> Fenced<bool> {
        let heard = heard.clone();
        self.pass(Kind::Record, "heard", move |inner| async move { inner.heard(&heard).await }, nothing).await
    }

    async fn requests(&self) -> Fenced<Vec<PendingRequest>> {
        self.pass(Kind::Begin, "requests", move |inner| async move { inner.requests().await }, nothing).await
    }

    async fn execute(&self, request: Uuid, execution: Execution) -> Fenced<RequestState> {
        self.pass(Kind::Begin, "execute", move |inner| async move { inner.execute(request, execution).await }, nothing)
            .await
    }

    async fn lineage(&self) -> Fenced<Lineage> {
        self.pass(Kind::Record, "lineage", move |inner| async move { inner.lineage().await }, nothing).await
    }

    async fn release(&self) -> Fenced<()> {
        self.pass(Kind::Record, "release", move |inner| async move { inner.release().await }, nothing).await
    }

    /// Ends the sessions on the server, where it can be reached in time; what is on the way does not arrive then.
    async fn end(&self, budget: Duration) -> SessionsEnded {
        self.ended.store(true, Ordering::SeqCst);
        if self.broken() == Break::AsksAfterItsEnd {
            ask_on(self.way.clone(), self.inner.claim().clone());
        }
        let way = self.way.world.way(self.way.place, To::Store);
        let ended = async {
            let (Some(there), Some(back)) = (way.there, way.back) else { return std::future::pending().await };
            let (answer, answered) = oneshot::channel();
            let claim = self.inner.claim().clone();
            let landing: Landing = Box::new(move |world| {
                // The one that asked may be gone.
                let _heard = answer.send(world.end_sessions(&claim));
            });
            self.way.send(there, None, landing);
            let terminated = self.way.heard(answered).await;
            tokio::time::sleep(back).await;
            terminated
        };
        match tokio::time::timeout(budget, ended).await {
            Ok(terminated) => SessionsEnded { terminated, confirmed: true },
            Err(_elapsed) => SessionsEnded { terminated: 0, confirmed: false },
        }
    }
}
