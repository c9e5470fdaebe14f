//! The handler `http`: a request per unit, by the same rules as a payout.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::answer::Verdict;
use super::receiver::{Receiver, Request, StoreTime};
use crate::clock;
use crate::domain::Moment;
use crate::settlement::{CallOutcome, Departure, Fence, OutsideHandler};
use crate::store::Call;

/// Asks for the store's time, as it is known now; `None` while it is not.
pub type AskStoreTime = Arc<dyn Fn() -> Option<StoreTime> + Send + Sync>;

/// Sends a unit's stored bytes to a receiver.
pub struct HttpHandler {
    receiver: Arc<Receiver>,
    fence: Fence,
    store_time: AskStoreTime,
}

impl HttpHandler {
    /// For one tenure.
    #[must_use]
    pub fn new(receiver: Arc<Receiver>, fence: Fence, store_time: AskStoreTime) -> Self {
        Self { receiver, fence, store_time }
    }

    /// The last moment for a first byte: while the receiver surely knows the key. `None` where it has passed. The age is that
    /// which the call had when it was taken.
    fn not_after(&self, age: Duration, taken_at: Moment) -> Option<Moment> {
        let rules = self.receiver.rules();
        let left = rules.key_valid_for.checked_sub(rules.timeout.saturating_mul(2))?.checked_sub(age)?;
        Some(taken_at + left).filter(|last| clock::boottime() < *last)
    }
}

#[async_trait]
impl OutsideHandler for HttpHandler {
    fn is_idempotent(&self) -> bool {
        self.receiver.rules().idempotent
    }

    fn receiver(&self) -> Option<&Receiver> {
        Some(&self.receiver)
    }

    async fn call(&self, call: &Call, taken_at: Moment, departure: &Departure) -> CallOutcome {
        let Some(store_time) = (self.store_time)() else {
            return CallOutcome::NotNow { error: "the store's time is not known yet".to_owned(), after: None };
        };
        let Some(not_after) = self.not_after(call.age, taken_at) else {
            let error = "the receiver may have forgotten its key: it is not sent again".to_owned();
            // Where it is in doubt, that is for a person; else the unit is retried under another key.
            return CallOutcome::Failed { error, permanent: true };
        };
        let request = Request {
            key: &call.idempotency_key,
            body: &call.body,
            fence: &self.fence,
            in_doubt: call.in_doubt,
            store_time,
            not_after: Some(not_after),
        };
        call_outcome(self.receiver.send(&request, departure).await)
    }
}

/// A verdict in the words of the port of calls.
#[must_use]
pub fn call_outcome(verdict: Verdict) -> CallOutcome {
    match verdict {
        Verdict::Paid { .. } => CallOutcome::Done,
        Verdict::Rejected { status } => CallOutcome::Refused { error: format!("refused: answered {status}") },
        Verdict::RefusedInDoubt { status } => {
            CallOutcome::Refused { error: format!("answered {status} after a try that may have had its effect") }
        }
        Verdict::Mismatch { why: error } => CallOutcome::Mismatch { error },
        Verdict::Later { after: Some(after), why: error } => CallOutcome::PutOff { error, after, in_doubt: true },
        Verdict::Later { after: None, why: error } | Verdict::Unknown { why: error } => CallOutcome::Unknown { error },
        Verdict::Undone { after, why: error, of_unit: false, left: _ } => CallOutcome::NotNow { error, after },
        Verdict::Undone { after: Some(after), why: error, .. } => CallOutcome::PutOff { error, after, in_doubt: false },
        Verdict::Undone { after: None, why: error, .. } => CallOutcome::Failed { error, permanent: false },
        Verdict::StopReceiver { reason, why } => CallOutcome::Stopped { reason: reason.as_str(), why },
        Verdict::Fenced { highest } => CallOutcome::Fenced { highest },
        Verdict::NotSent => CallOutcome::NotSent,
    }
}
