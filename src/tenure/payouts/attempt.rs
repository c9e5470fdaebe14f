//! One try at a payout: leave, the request or the question what became of an earlier one, and what is known of it then.
//!
//! Invariant: a try that was not given leave is put back; one that was, and has no answer when the drain is over, is unknown.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::super::contradiction::is_contradicted;
use super::super::leave::handed_over;
use super::super::scope::{Scope, Tenure};
use super::fates::{Came, Ground, Outcome, came};
use crate::clock;
use crate::domain::job::RetryDefinition;
use crate::domain::money::Currency;
use crate::domain::{JobName, Moment};
use crate::settlement::http::{LookUp, Receiver, Request, StoreTime, Verdict};
use crate::settlement::{Departure, Fence, Leave, NotSent, caught};
use crate::store::{Errand, Payout, PayoutRecord};
use crate::telemetry::Work;

/// A job that sends to the lane's receiver.
#[derive(Clone)]
pub(super) struct LaneJob {
    pub(super) id: i64,
    pub(super) name: JobName,
    pub(super) receiver: Arc<Receiver>,
    pub(super) maximum: BTreeMap<Currency, i64>,
    pub(super) retry: RetryDefinition,
}

/// A try that has ended, with its record.
pub(super) struct Answered {
    /// The job by whose rules it was tried.
    pub(super) job: LaneJob,
    pub(super) record: PayoutRecord,
    pub(super) stop: Option<(&'static str, String)>,
    pub(super) outcome: &'static str,
}

/// Leave as the tenure gives it, with a place right before the first byte that tests can stop at.
struct PayoutLeave(Arc<Scope>);

#[async_trait]
impl Leave for PayoutLeave {
    async fn leave(&self) -> Result<(), NotSent> {
        self.0.leave().await?;
        crate::point!("tenure.payouts.before_first_byte");
        Ok(())
    }
}

/// Makes one try and says what is known of it.
pub(super) async fn make(
    tenure: Tenure,
    fence: Arc<Fence>,
    job: LaneJob,
    payout: Payout,
    asked_at: Moment,
) -> Answered {
    let began = clock::boottime();
    let departure = Departure::new(Arc::new(PayoutLeave(Arc::clone(tenure.scope()))));
    let outcome = {
        let trying = caught(attempt(&fence, &job.receiver, &payout, &departure, asked_at));
        tokio::pin!(trying);
        tokio::select! {
            biased;
            outcome = &mut trying => outcome,
            () = handed_over(&tenure, &departure) => {
                Ok(Outcome::Cut { departed: departure.has_departed(), why: "no answer before leadership was handed over" })
            }
        }
    };
    let outcome = outcome.unwrap_or_else(|panic| {
        tracing::error!(claim = %tenure.claim, key = payout.idempotency_key, panic, "sending a payout panicked");
        Outcome::Cut { departed: departure.has_departed(), why: "sending it panicked" }
    });
    let outcome = match outcome {
        Outcome::Sent(Verdict::Fenced { highest }) if is_contradicted(&tenure, highest.get()).await => {
            Outcome::Contradicted
        }
        other => other,
    };
    let rules = job.receiver.rules();
    let ground = Ground {
        errand: payout.errand,
        clears: rules.idempotent || rules.lookup_url.is_some(),
        wait: job.retry.backoff(payout.attempt, clock::random_u64()),
        left_before: payout.left_before,
    };
    let Came { fate, stop, outcome } = came(outcome, ground);
    let asked = match payout.errand {
        Errand::Ask { .. } => true,
        Errand::Send | Errand::AskThenSend => false,
    };
    tracing::debug!(claim = %tenure.claim, key = payout.idempotency_key, attempt = payout.attempt, outcome, "a payout was tried");
    let work = Work::Payout { batch: payout.batch, attempt: payout.attempt };
    tenure.traced(work, (&job.name, payout.run), began, (outcome, !matches!(outcome, "paid" | "not_sent")));
    let record = PayoutRecord { instruction: payout.instruction, attempt: payout.attempt, asked, fate };
    Answered { job, record, stop, outcome }
}

/// It was not asked: leave was refused, or its receiver had asked for a wait. Whatever else kept a question from being asked says as
/// little as no answer.
const fn not_asked() -> Outcome {
    Outcome::Cut { departed: false, why: "it was not asked" }
}

async fn attempt(
    fence: &Fence,
    receiver: &Receiver,
    payout: &Payout,
    departure: &Departure,
    asked_at: Moment,
) -> Outcome {
    let request = Request {
        key: &payout.idempotency_key,
        body: &payout.body,
        fence,
        in_doubt: payout.in_doubt,
        store_time: StoreTime { store: payout.taken_at, at: asked_at },
        // Counted from before the store was asked, so never later than the store counts it.
        not_after: Some(asked_at + payout.leaves_within),
    };
    match payout.errand {
        Errand::Send => {}
        Errand::AskThenSend => match receiver.look_up(&request, departure).await {
            Some(found @ (LookUp::Paid { .. } | LookUp::Mismatch { .. })) => return Outcome::Asked(found),
            Some(LookUp::NoLeave) => return not_asked(),
            Some(LookUp::Nothing { .. }) | None => {}
        },
        Errand::Ask { .. } => {
            let asking = Request { not_after: None, ..request };
            return match receiver.look_up(&asking, departure).await {
                Some(LookUp::NoLeave) => not_asked(),
                Some(found) => Outcome::Asked(found),
                None => Outcome::Asked(LookUp::Nothing { why: "it cannot be looked up any more".to_owned() }),
            };
        }
    }
    Outcome::Sent(receiver.send(&request, departure).await)
}
