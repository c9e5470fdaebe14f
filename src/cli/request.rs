//! Requests: what only a leader may do is asked of it, and waited for, for a bounded time.

use std::pin::pin;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use uuid::Uuid;

use super::error::{CommandError, Exit};
use super::operator::actor;
use super::output::{Output, time};
use super::runs;
use crate::clock;
use crate::ingest::finer_than;
use crate::store::{RequestKind, RequestState, Store, StoreError, WithdrawOutcome};

/// How often the request is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long a leader is waited for, and what becomes of the request then.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct Waiting {
    /// How long to wait for the leader, at most 1h. A request that still waits then is withdrawn.
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = wait)]
    wait: Duration,
    /// Leave the request filed where the wait is over: the next leader that may executes it, whenever that is.
    #[arg(long)]
    leave: bool,
}

/// Files a request, waits for the leader, and shows the run. Where none has taken it in time, it is withdrawn, so that asking
/// again does nothing twice.
pub(super) async fn ask(
    output: Output,
    store: &dyn Store,
    kind: &RequestKind,
    reason: Option<&str>,
    waiting: Waiting,
) -> Result<Exit, CommandError> {
    let id = match store.request(kind, &actor(), reason).await {
        Ok(id) => id,
        // The port's word for a job or run that does not exist.
        Err(StoreError::Broken { detail, .. }) => return Err(CommandError::Refused(detail)),
        Err(unknown @ StoreError::Unknown { .. }) => {
            let look = "before you ask again, see in `bursar requests list` whether it was filed";
            return Err(CommandError::Away(format!("{unknown}; {look}")));
        }
        Err(other) => return Err(other.into()),
    };
    let output = output.done();
    let answered = match answer(store, id, waiting.wait).await {
        Ok(RequestState::Waiting) if !waiting.leave => give_up(store, id, waiting.wait).await,
        other => other,
    };
    match answered.map_err(|error| still_filed(id, error))? {
        done @ (RequestState::Done { .. } | RequestState::Opened { .. }) => {
            executed(output, store, kind, id, &done).await?;
            Ok(Exit::Done)
        }
        RequestState::Refused { why } => Err(CommandError::Refused(format!("the leader refused request {id}: {why}"))),
        RequestState::Waiting => {
            left(output, id)?;
            Ok(Exit::Done)
        }
    }
}

/// Shows what a request that was executed came to. It is done, whatever becomes of the store now: where the runs cannot be read any
/// more, what the leader answered is said.
async fn executed(
    output: Output,
    store: &dyn Store,
    kind: &RequestKind,
    id: Uuid,
    answer: &RequestState,
) -> Result<(), CommandError> {
    match show(output, store, kind, id, answer).await {
        Err(CommandError::Store(error)) => {
            output.warn(&format!("request {id} was executed, but what came of it cannot be shown: {error}"));
            if output.is_json() {
                output.json(&answer_json(id, answer)?)
            } else {
                output.line(&in_words(id, kind, answer))
            }
        }
        shown => shown,
    }
}

async fn show(
    output: Output,
    store: &dyn Store,
    kind: &RequestKind,
    id: Uuid,
    answer: &RequestState,
) -> Result<(), CommandError> {
    match answer {
        RequestState::Done { run, units } => {
            let shown = runs::find(store, *run).await?;
            if matches!(kind, RequestKind::RetryUnits { .. }) && !output.is_json() {
                output.line(&retried(*run, *units))?;
            }
            runs::tell(output, &shown)
        }
        RequestState::Opened { runs } => opened(output, store, id, runs).await,
        RequestState::Waiting | RequestState::Refused { .. } => Ok(()),
    }
}

fn retried(run: i64, units: u64) -> String {
    format!("{units} units of run {run} are tried again")
}

/// The answer of the leader alone, as the fields of the store and the request's id.
fn answer_json(id: Uuid, answer: &RequestState) -> Result<serde_json::Value, CommandError> {
    let mut value = serde_json::to_value(answer).map_err(|error| CommandError::Internal(error.into()))?;
    value["request"] = serde_json::json!(id);
    Ok(value)
}

fn in_words(id: Uuid, kind: &RequestKind, answer: &RequestState) -> String {
    let came_to = match (answer, kind) {
        (RequestState::Done { run, units }, RequestKind::RetryUnits { .. }) => retried(*run, *units),
        (RequestState::Done { run, .. }, RequestKind::Trigger { .. } | RequestKind::Backfill { .. }) => {
            format!("run {run} is opened")
        }
        (RequestState::Opened { runs }, _) => {
            let ids: Vec<String> = runs.iter().map(i64::to_string).collect();
            format!("{} runs are opened: {}", runs.len(), ids.join(", "))
        }
        (RequestState::Waiting | RequestState::Refused { .. }, _) => "it is answered".to_owned(),
    };
    format!("request {id} was executed: {came_to}; `bursar runs show RUN` shows how a run stands")
}

/// The wait is over: the request is withdrawn, unless a leader was first, whose answer it then is.
async fn give_up(store: &dyn Store, id: Uuid, wait: Duration) -> Result<RequestState, CommandError> {
    match store.withdraw_request(id, "no leader took it in time", &actor()).await? {
        WithdrawOutcome::Withdrawn => Err(CommandError::Away(format!(
            "no leader has taken request {id} within {wait:?}: it is withdrawn, nothing will happen. `bursar status` says who leads \
             and what is halted; with --leave a request stays filed"
        ))),
        WithdrawOutcome::Answered(state) => Ok(state),
        WithdrawOutcome::NotFound => Err(gone(id)),
    }
}

/// An error after which nobody knows whether the request still waits says how to find out.
fn still_filed(id: Uuid, error: CommandError) -> CommandError {
    match error {
        CommandError::Store(error) => {
            let act = "before you ask again, see in `bursar requests list` whether it waits, and withdraw it";
            CommandError::Away(format!("{error}; request {id} was filed: {act}"))
        }
        other => other,
    }
}

fn left(output: Output, id: Uuid) -> Result<(), CommandError> {
    if output.is_json() {
        return output.json(&serde_json::json!({ "request": id, "state": "waiting" }));
    }
    output.line(&format!(
        "request {id} stays filed: the next leader of an election that is not halted executes it; until then \
         `bursar requests withdraw {id}` takes it back"
    ))
}

fn gone(id: Uuid) -> CommandError {
    CommandError::Internal(anyhow::anyhow!("request {id} is not in the store any more"))
}

/// The runs of a backfill, as they are now.
async fn opened(output: Output, store: &dyn Store, id: Uuid, runs: &[i64]) -> Result<(), CommandError> {
    let mut shown = Vec::with_capacity(runs.len());
    for run in runs {
        if let Some(view) = store.run_by_id(*run).await? {
            shown.push(view.summary);
        }
    }
    if output.is_json() {
        return output.json(&serde_json::json!({ "request": id, "runs": shown }));
    }
    output
        .line(&format!("{} runs are opened; they are worked on one after the other, the oldest first", runs.len()))?;
    runs::list(output, "", &shown)
}

/// Looks until the request is answered, the time is over, or somebody presses Ctrl-C; a store that is away for a moment is asked
/// again.
async fn answer(store: &dyn Store, id: Uuid, wait: Duration) -> Result<RequestState, CommandError> {
    let until = clock::boottime() + wait;
    let mut interrupted = pin!(tokio::signal::ctrl_c());
    loop {
        match store.request_state(id).await {
            Ok(Some(
                done @ (RequestState::Done { .. } | RequestState::Opened { .. } | RequestState::Refused { .. }),
            )) => return Ok(done),
            Ok(Some(RequestState::Waiting)) => {}
            Ok(None) => return Err(gone(id)),
            Err(error) if error.is_passing() && clock::boottime() < until => {}
            Err(error) => return Err(error.into()),
        }
        if clock::boottime() >= until {
            return Ok(RequestState::Waiting);
        }
        tokio::select! {
            _asked = &mut interrupted => return Ok(RequestState::Waiting),
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Reads a time such as `2027-01-31T17:05:00Z`. A leap second is refused: no tick, no cutoff and no entry is at one.
pub(super) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    let expected = "expected a time in RFC 3339 with its offset such as 2027-01-31T17:05:00Z";
    let time = DateTime::parse_from_rfc3339(text).map_err(|error| format!("{error}; {expected}"))?.to_utc();
    // chrono's way to say second 60.
    if time.timestamp_subsec_nanos() >= 1_000_000_000 {
        return Err(format!("a leap second is no time of a schedule; {expected}"));
    }
    Ok(time)
}

/// Reads the nominal time of a run: ticks are whole seconds.
pub(super) fn tick(text: &str) -> Result<DateTime<Utc>, String> {
    let tick = instant(text)?;
    if finer_than(text, 0) {
        return Err("a tick is a whole second; expected a time such as 2027-01-31T17:05:00Z".to_owned());
    }
    Ok(tick)
}

/// Ticks before this are taken for a slip of the keyboard.
const OLDEST_DAYS: i64 = 400;
/// Nothing later is asked of a leader; it refuses what lies in the future of the store's clock at all.
const LATEST_DAYS: i64 = 1;

/// Refuses a tick that is too far from the store's time to be meant; `force` lets old ones pass.
pub(super) fn near(what: &str, tick: DateTime<Utc>, now: DateTime<Utc>, force: bool) -> Result<(), CommandError> {
    if tick > now + TimeDelta::days(LATEST_DAYS) {
        let why = format!("the {what} {} lies more than {LATEST_DAYS} day after the store's time", time(tick));
        return Err(CommandError::Refused(format!("{why} {}; nothing was asked", time(now))));
    }
    if tick < now - TimeDelta::days(OLDEST_DAYS) && !force {
        let why = format!("the {what} {} lies more than {OLDEST_DAYS} days before the store's time", time(tick));
        return Err(CommandError::Refused(format!("{why} {}; --force takes it all the same", time(now))));
    }
    Ok(())
}

/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// Reads a bounded wait such as `30s`.
pub(super) fn wait(text: &str) -> Result<Duration, String> {
    let wait = humantime::parse_duration(text).map_err(|error| format!("{error}; expected for example 30s"))?;
    if wait <= LONGEST_WAIT { Ok(wait) } else { Err("at most 1h".to_owned()) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;
    use crate::domain::JobName;
    use crate::store::memory::{Fault, MemoryStore};

    #[tokio::test]
    async fn a_request_that_was_executed_is_said_to_be_where_the_store_goes_away_before_it_can_be_shown() {
        let store = MemoryStore::new(Arc::new(|| DateTime::UNIX_EPOCH), Uuid::nil());
        store.set_faults(Some(Arc::new(|_| Some(Fault::Unreachable))));
        let trigger = RequestKind::Trigger { job: JobName::new("daily").expect("a name"), tick: None, cutoff: None };
        let retry = RequestKind::RetryUnits { run: 7, keys: BTreeSet::new() };
        let id = Uuid::from_u128(5);
        let output = Output::new(false).done();
        for (kind, answer, says) in [
            (&trigger, RequestState::Done { run: 7, units: 0 }, "executed: run 7 is opened; "),
            (&retry, RequestState::Done { run: 7, units: 3 }, "executed: 3 units of run 7 are tried again; "),
            (&trigger, RequestState::Opened { runs: vec![7, 8] }, "executed: 2 runs are opened: 7, 8; "),
        ] {
            let shown = show(output, &store, kind, id, &answer).await;
            assert!(matches!(shown, Err(CommandError::Store(StoreError::Unreachable { .. }))), "{shown:?}");
            assert!(executed(output, &store, kind, id, &answer).await.is_ok(), "it is done");
            let words = in_words(id, kind, &answer);
            assert!(words.contains(says) && words.contains(&id.to_string()), "{words}");
        }
        let json = answer_json(id, &RequestState::Done { run: 7, units: 3 }).expect("values");
        assert_eq!(json, serde_json::json!({ "request": id, "state": "done", "run": 7, "units": 3 }));
    }

    #[test]
    fn a_tick_is_a_whole_second_that_is_there_and_not_far_off() {
        for (text, says) in [
            ("2026-11-30T23:59:60Z", "leap second"),
            ("2026-12-01T00:59:60+01:00", "leap second"),
            ("2026-11-30T17:05:00.25Z", "whole second"),
            ("2026-11-30T17:05:00.0000000009Z", "whole second"),
            ("yesterday", "such as 2027-01-31T17:05:00Z"),
        ] {
            assert!(tick(text).is_err_and(|why| why.contains(says)), "{text}");
        }
        let now = tick("2026-12-01T00:00:00Z").expect("a tick");
        let at = |text: &str| tick(text).expect("a tick");
        for (text, force, fits) in [
            ("0001-01-01T00:00:00Z", false, false),
            ("0001-01-01T00:00:00Z", true, true),
            ("2025-10-27T00:00:00Z", false, true),
            ("2025-10-26T23:59:59Z", false, false),
            ("2026-12-02T00:00:00Z", false, true),
            ("2026-12-02T00:00:01Z", true, false),
        ] {
            assert_eq!(near("tick", at(text), now, force).is_ok(), fits, "{text} {force}");
        }
    }
}
