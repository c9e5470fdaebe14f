//! Outside work: record, call, record.
//!
//! At most `batch.size` units are on the wire at once, and no more than their receiver has there. Each is committed as `sending`
//! under the fence; then the gate is passed and the halt read again ([`super::leave`]); then the call is made; then its outcome
//! recorded. Outcomes are recorded as they come, also while the election is halted and while the tenure drains.
//!
//! A call that was not given leave is put back as it was, at once where the tenure stops; so is what a take without an answer may
//! have left `sending`, which is all of the run that stands so and is in nobody's hands. A call that left, and did not answer
//! before the drain was over, is unknown. An abrupt end records nothing: promotion finds what was left `sending`.
//!
//! A receiver that is stopped ([`door`]) is sent one call per wait, or none until it is resumed, as for payouts.
//!
//! Invariant: a call is in hand from the answer of its take until its outcome is on record.

mod door;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};

pub(super) use self::door::Door;
use self::door::Said;
use super::backoff;
use super::contradiction::is_contradicted;
use super::fate::{counts_as, fate};
use super::leave::handed_over;
use super::observer::InFlight;
use super::scope::{Scope, Stop, Tenure};
use crate::clock;
use crate::domain::Moment;
use crate::domain::unit::AttemptOutcome;
use crate::settlement::http::StopReason;
use crate::settlement::{CallOutcome, Departure, Leave, OutsideHandler, caught};
use crate::store::{Call, CallFate, CallRecord, OpenRun, StoreError};
use crate::telemetry::Work;

/// Outcomes recorded in one transaction.
const RECORDED_AT_ONCE: usize = 1_000;

/// An answer waits so long for others before it is recorded: a commit takes longer, and answers of one take come close together.
const GATHER: Duration = Duration::from_millis(3);

/// While calls are on the wire and nothing else was due, the next look is after this.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long a few free places wait for more of them.
const PATIENCE: Duration = Duration::from_millis(100);

/// A call that has ended, with its record.
struct Answered {
    record: CallRecord,
    said: Said,
}

type Answers = FuturesUnordered<BoxFuture<'static, Option<Answered>>>;

/// Calls whose outcome is not on record yet: instruction and try.
type InHand = BTreeMap<i64, u32>;

/// Calls that are on the wire, and the receiver that they go to, where there is one.
struct Wire<'a> {
    tenure: &'a Tenure,
    run: &'a OpenRun,
    handler: &'a Arc<dyn OutsideHandler>,
    door: &'a mut Door,
    answers: Answers,
    in_hand: InHand,
}

/// Calls until nothing is due and every answer was recorded.
///
/// # Errors
/// [`Stop`], after the outcome of what had left was recorded, where the tenure still may.
pub(super) async fn drain(
    tenure: &Tenure,
    run: &OpenRun,
    handler: &Arc<dyn OutsideHandler>,
    door: &mut Door,
) -> Result<(), Stop> {
    let size = usize::try_from(run.definition.batch.size.max(1)).unwrap_or(usize::MAX);
    // Written down as on the wire are no more than the receiver has there: whatever else were, a death would leave in doubt.
    let most = handler.receiver().map(|receiver| receiver.rules().max_in_flight.max(1));
    let size = size.min(most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX));
    let mut wire = Wire { tenure, run, handler, door, answers: Answers::new(), in_hand: InHand::new() };
    let mut end: Option<Result<(), Stop>> = None;
    // A few free places wait for more of them, for a transaction per call would cost more than the call; but no longer than
    // that, for those that are on the wire may be slow.
    let mut patient = true;
    loop {
        let free = size.saturating_sub(wire.answers.len());
        if end.is_none() && free > 0 && (free >= size.div_ceil(4) || !patient) {
            patient = true;
            match wire.take(free).await {
                Ok(0) => end = Some(Ok(())),
                Ok(_) => {}
                Err(stop) => end = Some(Err(stop)),
            }
            continue;
        }
        let wait = if end.is_none() && free > 0 { PATIENCE } else { LOOK_AGAIN };
        let first = tokio::select! {
            biased;
            first = wire.answers.next() => first,
            // One slow call does not hold up the units that are due again meanwhile.
            () = tokio::time::sleep(wait), if end.is_none() || end == Some(Ok(())) => {
                (end, patient) = (None, false);
                continue;
            }
        };
        let Some(first) = first else { return end.unwrap_or(Ok(())) };
        let held_up = wire.take_in(first).await?;
        if end.is_none() && held_up {
            // Halted, or the halt could not be read, or the receiver is stopped: the run's next look takes them again, not this
            // loop at once.
            end = Some(Ok(()));
        }
    }
}

impl Wire<'_> {
    /// Takes up to `free` calls, and makes them. Answers how many.
    async fn take(&mut self, free: usize) -> Result<usize, Stop> {
        let room = match self.handler.receiver() {
            Some(receiver) => {
                let retry = &self.run.definition.retry;
                self.door.room(self.tenure, receiver, retry, free, self.answers.len()).await?
            }
            None => free,
        };
        if room == 0 {
            return Ok(0);
        }
        let (calls, asked_at) = take(self.tenure, self.run, room, &self.in_hand).await?;
        if let Some(receiver) = self.handler.receiver()
            && !calls.is_empty()
        {
            let goes = self.door.lets_go(self.tenure, receiver, &self.run.definition.retry).await;
            if goes != Ok(true) {
                let put_back = calls.iter().map(|call| of(call, CallFate::NotSent)).collect();
                record(self.tenure, self.run, put_back).await?;
                return goes.map(|_| 0);
            }
        }
        let taken = calls.len();
        for call in calls {
            self.in_hand.insert(call.instruction, call.attempt);
            self.answers.push(answer(self.tenure, self.handler, call, asked_at, self.run));
        }
        Ok(taken)
    }

    /// Records an answer with all others that are there or come within [`GATHER`], and what they say about the receiver. Answers whether nothing more is to be
    /// taken for now.
    async fn take_in(&mut self, first: Option<Answered>) -> Result<bool, Stop> {
        let mut ready = vec![first];
        let gathered = tokio::time::sleep(GATHER);
        tokio::pin!(gathered);
        while ready.len() < RECORDED_AT_ONCE {
            tokio::select! {
                biased;
                next = self.answers.next() => match next {
                    Some(next) => ready.push(next),
                    None => break,
                },
                () = &mut gathered => break,
            }
        }
        // A task without a record was dropped with the tenure; promotion finds its call.
        let ready: Vec<Answered> = ready.into_iter().flatten().collect();
        let said: Vec<Said> = ready.iter().map(|answered| answered.said.clone()).collect();
        let records: Vec<CallRecord> = ready.into_iter().map(|answered| answered.record).collect();
        let recorded: Vec<i64> = records.iter().map(|record| record.instruction).collect();
        let held_up = records.iter().any(|record| matches!(record.fate, CallFate::NotSent | CallFate::Stopped { .. }));
        record(self.tenure, self.run, records).await?;
        for instruction in recorded {
            self.in_hand.remove(&instruction);
        }
        if let Some(receiver) = self.handler.receiver() {
            self.door.hear(self.tenure, receiver, &self.run.definition.retry, &said).await?;
        }
        Ok(held_up)
    }
}

/// Takes up to `free` calls. Where the election was halted meanwhile all of them are put back; each is looked at once more
/// right before its first byte.
async fn take(tenure: &Tenure, run: &OpenRun, free: usize, in_hand: &InHand) -> Result<(Vec<Call>, Moment), Stop> {
    let limit = u32::try_from(free).unwrap_or(u32::MAX);
    let (calls, asked_at) = commit(tenure, run, limit, in_hand).await?;
    if calls.is_empty() {
        return Ok((calls, asked_at));
    }
    crate::point!("tenure.calls.before_gate");
    match tenure.begin("pulse", || tenure.store.pulse()).await {
        Ok(_) => Ok((calls, asked_at)),
        Err(stop) => {
            let put_back = calls.iter().map(|call| of(call, CallFate::NotSent)).collect();
            record(tenure, run, put_back).await?;
            Err(stop)
        }
    }
}

/// Commits up to `limit` calls as `sending`; answers them with a moment before.
async fn commit(tenure: &Tenure, run: &OpenRun, limit: u32, in_hand: &InHand) -> Result<(Vec<Call>, Moment), Stop> {
    let _permit = tenure.permit().await?;
    let mut failures = 0;
    loop {
        tenure.pass_gate().await?;
        let asked_at = clock::boottime();
        match tenure.enter("take_calls", tenure.store.take_calls(run, limit).await).await? {
            Ok(calls) => return Ok((calls, asked_at)),
            Err(error) if error.is_passing() => {
                failures += 1;
                if let StoreError::Unknown { .. } = error
                    && !crate::mutant!("calls.unknown-take-taken-for-failed")
                {
                    put_back(tenure, run, in_hand).await?;
                }
                tracing::warn!(claim = %tenure.claim, run = run.id, %error, "calls could not be taken; trying again");
                tenure.sleep(backoff::wait(failures, clock::random_u64())).await?;
            }
            Err(error) => return Err(Stop::Failed(error)),
        }
    }
}

/// Puts back what a take without an answer may have left `sending`: nobody makes it.
async fn put_back(tenure: &Tenure, run: &OpenRun, in_hand: &InHand) -> Result<(), Stop> {
    let kept: Vec<(i64, u32)> = in_hand.iter().map(|(instruction, attempt)| (*instruction, *attempt)).collect();
    match tenure.record("put_back", || tenure.store.put_back(run.id, &kept)).await {
        Ok(put_back) => {
            tracing::info!(claim = %tenure.claim, run = run.id, put_back, "calls of a take without an answer are put back");
            Ok(())
        }
        Err(Stop::Failed(error)) => {
            Err(left_on_the_wire(tenure, "calls that nobody makes could not be put back", &error))
        }
        Err(stop @ (Stop::Ending | Stop::Halted)) => Err(stop),
    }
}

/// Calls stand as `sending` under this term, and nobody of it would take them up again. Only a promotion may, so there has
/// to be one.
fn left_on_the_wire(tenure: &Tenure, what: &str, error: &StoreError) -> Stop {
    tenure.fault(&format!("{what}: {error}"));
    Stop::Ending
}

const fn of(call: &Call, fate: CallFate) -> CallRecord {
    CallRecord { instruction: call.instruction, attempt: call.attempt, fate }
}

/// Makes a call in a task of its own and answers its record; none where the task was dropped with the tenure.
fn answer(
    tenure: &Tenure,
    handler: &Arc<dyn OutsideHandler>,
    call: Call,
    asked_at: Moment,
    run: &OpenRun,
) -> BoxFuture<'static, Option<Answered>> {
    let task = tenure.spawn(make(tenure.clone(), Arc::clone(handler), call, asked_at, run.clone()));
    let tenure = tenure.clone();
    task.map(move |ended| {
        ended.unwrap_or_else(|error| {
            tenure.fault(&format!("the task of a call failed: {error}"));
            None
        })
    })
    .boxed()
}

/// Makes one call and says what is known of it.
async fn make(
    tenure: Tenure,
    handler: Arc<dyn OutsideHandler>,
    call: Call,
    asked_at: Moment,
    run: OpenRun,
) -> Answered {
    let _in_flight = InFlight::new(&tenure.deps.observer, 1);
    let began = clock::boottime();
    let scope: Arc<Scope> = Arc::clone(tenure.scope());
    let departure = Departure::new(scope as Arc<dyn Leave>);
    let outcome = tokio::select! {
        biased;
        outcome = caught(handler.call(&call, asked_at, &departure)) => match outcome {
            Ok(outcome) => outcome,
            Err(panic) if departure.has_departed() => CallOutcome::Unknown { error: format!("the handler panicked: {panic}") },
            Err(panic) => CallOutcome::Failed { error: format!("the handler panicked: {panic}"), permanent: false },
        },
        () = handed_over(&tenure, &departure) => {
            if departure.has_departed() {
                CallOutcome::Unknown { error: "no answer before leadership was handed over".to_owned() }
            } else {
                CallOutcome::NotSent
            }
        }
    };
    let outcome = match outcome {
        CallOutcome::Fenced { highest } if is_contradicted(&tenure, highest.get()).await => CallOutcome::Stopped {
            reason: StopReason::Fenced.as_str(),
            why: "it has seen a higher token than the highest that the fence knows".to_owned(),
        },
        other => other,
    };
    crate::point!("tenure.calls.after_call");
    if let CallOutcome::NotNow { error, .. } = &outcome {
        tracing::debug!(claim = %tenure.claim, run = run.id, error, "a call was put off");
    }
    let said = Said::of(&outcome);
    let (retry, random) = (&run.definition.retry, clock::random_u64());
    let (idempotent, left) = (handler.is_idempotent(), departure.has_departed());
    let record = of(&call, fate(outcome, retry, call.charged, call.attempt, idempotent, left, random));
    let work = Work::Call { attempt: call.attempt };
    tenure.traced(work, (&run.definition.name, run.id), began, word_of(&record.fate));
    Answered { record, said }
}

/// What came of a call, for its span; and whether that is a failure.
const fn word_of(fate: &CallFate) -> (&'static str, bool) {
    match fate {
        CallFate::Done => ("done", false),
        CallFate::Failed { .. } => ("failed", true),
        CallFate::Unknown { .. } => ("unknown", true),
        CallFate::NotSent => ("not_sent", false),
        CallFate::Stopped { .. } => ("stopped", true),
        CallFate::PutOff { .. } => ("put_off", true),
    }
}

/// Records what came of calls.
pub(super) async fn record(tenure: &Tenure, run: &OpenRun, records: Vec<CallRecord>) -> Result<(), Stop> {
    if records.is_empty() {
        return Ok(());
    }
    let recorded = match tenure.record("record_calls", || tenure.store.record_calls(run.id, &records)).await {
        Ok(recorded) => recorded,
        Err(Stop::Failed(error)) => {
            return Err(left_on_the_wire(tenure, "outcomes of calls could not be recorded", &error));
        }
        Err(stop @ (Stop::Ending | Stop::Halted)) => return Err(stop),
    };
    // Also where an unknown commit was repeated and had happened. What is not as expected is not `sending` for this try.
    if recorded < records.len() as u64 {
        tracing::warn!(claim = %tenure.claim, run = run.id, recorded, of = records.len(), "some calls were not as expected");
    }
    let observer = &tenure.deps.observer;
    for outcome in AttemptOutcome::ALL {
        let count = records.iter().filter(|record| counts_as(&record.fate) == Some(outcome)).count() as u64;
        if count > 0 {
            observer.attempts(outcome, count);
        }
    }
    observer.units_settled(records.iter().filter(|record| record.fate == CallFate::Done).count() as u64);
    Ok(())
}
