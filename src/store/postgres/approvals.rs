//! Two pairs of eyes: whether they are asked for, requests, and what is made of them.
//!
//! Invariants: roles are the server's `session_user`, never a client's word. A request is locked before any gate. An approved
//! act is carried out in the transaction that approves it, through the function that carries it out without; a trigger asks
//! for that approval once more.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::acts::{self, Act};
use super::columns::unreadable;
use super::error::at;
use super::import::import_by_id;
use super::runs::LIST_ROWS;
use super::tx::Done;
use super::{call_acts, payout_acts, revert};
use crate::store::approvals::{FOUND_ON, found_import, judge};
use crate::store::{
    ActDone, Actor, ApprovalState, ApprovalView, DecideOutcome, Decision, DecisionView, FourEyesOutcome, GuardedAct,
    ReleaseOutcome, ResolveOutcome, RevertOutcome, StoreError, nothing_waits,
};

const OPERATION: &str = "approve";

/// Whether an act has been seen by two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eyes {
    /// By whoever asks: where two are needed it is filed instead.
    One,
    /// By another role too, in this transaction.
    Both,
}

/// Whether acts wait for another role.
pub(super) async fn are_on(connection: &mut PgConnection, operation: &'static str) -> Result<bool, StoreError> {
    let row = sqlx::query(include_str!("sql/four_eyes.sql")).fetch_one(connection).await.map_err(at(operation))?;
    row.try_get("four_eyes").map_err(at(operation))
}

/// Files a request, or finds the one that asks the same; answers its id. What is asked is allowed as things stand.
pub(super) async fn file(
    connection: &mut PgConnection,
    operation: &'static str,
    asks: &GuardedAct,
    found: &str,
    reason: &str,
    actor: &Actor,
) -> Result<i64, StoreError> {
    let broken = |error: serde_json::Error| StoreError::Broken { operation, detail: error.to_string() };
    let request = serde_json::to_value(asks).map_err(broken)?;
    let target = asks.target();
    let same: Option<i64> = sqlx::query_scalar(include_str!("sql/approval_same.sql"))
        .bind(asks.action())
        .bind(&target)
        .bind(&request)
        .bind(found)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(operation))?;
    if let Some(same) = same {
        return Ok(same);
    }
    let act = Act {
        action: asks.asking(),
        target: &target,
        reason: Some(reason),
        election: None,
        term: None,
        details: Some(serde_json::json!({ "request": request, "found": found })),
    };
    let act = acts::write(&mut *connection, operation, actor, act).await?;
    sqlx::query_scalar(include_str!("sql/approval_insert.sql"))
        .bind(asks.action())
        .bind(&target)
        .bind(&request)
        .bind(found)
        .bind(reason)
        .bind(actor.user.as_str())
        .bind(actor.host.as_str())
        .bind(act)
        .fetch_one(connection)
        .await
        .map_err(at(operation))
}

/// Switches two pairs of eyes on, or asks for their end, in an open transaction.
pub(super) async fn set_four_eyes(
    connection: &mut PgConnection,
    on: bool,
    reason: &str,
    actor: &Actor,
) -> Result<Done<FourEyesOutcome>, StoreError> {
    let operation = "four_eyes";
    match (are_on(&mut *connection, operation).await?, on) {
        (true, true) => Ok(Done::RollBack(FourEyesOutcome::WasOn)),
        (false, false) => Ok(Done::RollBack(FourEyesOutcome::Off)),
        (true, false) => {
            let request = file(connection, operation, &GuardedAct::EndFourEyes, FOUND_ON, reason, actor).await?;
            Ok(Done::Commit(FourEyesOutcome::Waits { request }))
        }
        (false, true) => {
            let act = switched("four eyes", reason);
            let act = acts::write(&mut *connection, operation, actor, act).await?;
            let turned = sqlx::query(include_str!("sql/four_eyes_on.sql"))
                .bind(act)
                .execute(connection)
                .await
                .map_err(at(operation))?;
            // Another process may have been faster.
            Ok(if turned.rows_affected() == 1 {
                Done::Commit(FourEyesOutcome::On)
            } else {
                Done::RollBack(FourEyesOutcome::WasOn)
            })
        }
    }
}

const fn switched<'a>(action: &'static str, reason: &'a str) -> Act<'a> {
    Act { action, target: "deployment", reason: Some(reason), election: None, term: None, details: None }
}

/// Requests, newest first.
pub(super) async fn approvals(
    connection: &mut PgConnection,
    one: Option<i64>,
    decided: bool,
    limit: u32,
) -> Result<Vec<ApprovalView>, StoreError> {
    let operation = "approvals";
    let rows = sqlx::query(include_str!("sql/approvals.sql"))
        .bind(one)
        .bind(decided)
        .bind(i64::from(limit.clamp(1, LIST_ROWS)))
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    rows.iter().map(view).collect::<Result<_, _>>().map_err(at(operation))
}

fn asks(row: &PgRow) -> Result<GuardedAct, sqlx::Error> {
    let request: serde_json::Value = row.try_get("request")?;
    // The text may hold a person's words: it is not shown.
    serde_json::from_value(request).map_err(|error| unreadable("request", "…", "a request of this release", error))
}

fn state(row: &PgRow) -> Result<ApprovalState, sqlx::Error> {
    let text: &str = row.try_get("state")?;
    ApprovalState::parse(text).ok_or_else(|| unreadable("state", text, "a state of a request", "it is not known"))
}

fn view(row: &PgRow) -> Result<ApprovalView, sqlx::Error> {
    let decided = match row.try_get::<Option<String>, _>("decided_role")? {
        None => None,
        Some(role) => Some(DecisionView {
            role,
            by: row.try_get("decided_by")?,
            at: row.try_get("decided_at")?,
            reason: row.try_get("decided_reason")?,
        }),
    };
    Ok(ApprovalView {
        id: row.try_get("id")?,
        asks: asks(row)?,
        found: row.try_get("found")?,
        reason: row.try_get("reason")?,
        state: state(row)?,
        role: row.try_get("role")?,
        by: row.try_get("by")?,
        at: row.try_get("at")?,
        decided,
    })
}

/// Approves or rejects a request, in an open transaction; what is approved is carried out in it.
pub(super) async fn decide(
    connection: &mut PgConnection,
    request: i64,
    decision: Decision,
    reason: Option<&str>,
    actor: &Actor,
) -> Result<Done<DecideOutcome>, StoreError> {
    let row = sqlx::query(include_str!("sql/approval_lock.sql"))
        .bind(request)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(row) = row else { return Ok(Done::RollBack(DecideOutcome::NotFound)) };
    let text = |column: &str| row.try_get::<String, _>(column).map_err(at(OPERATION));
    let (asked, decides) = (text("role")?, text("decides")?);
    let becomes = match judge(state(&row).map_err(at(OPERATION))?, &asked, &decides, decision) {
        Ok(becomes) => becomes,
        Err(outcome) => return Ok(Done::RollBack(outcome)),
    };
    let asks = asks(&row).map_err(at(OPERATION))?;
    let mut to_release = Vec::new();
    if becomes == ApprovalState::Approved {
        let was = text("found")?;
        let found;
        (found, to_release) = match look(&mut *connection, &asks).await? {
            Ok(looked) => looked,
            Err(why) => return Ok(Done::RollBack(DecideOutcome::Refused { why })),
        };
        if found != was {
            return Ok(Done::RollBack(DecideOutcome::Moved { asked: was, found }));
        }
    }
    write_down(&mut *connection, request, &asks, becomes, reason, actor).await?;
    match becomes {
        ApprovalState::Rejected => Ok(Done::Commit(DecideOutcome::Rejected)),
        ApprovalState::Withdrawn => Ok(Done::Commit(DecideOutcome::Withdrawn)),
        ApprovalState::Approved | ApprovalState::Waiting => {
            let done = carry_out(connection, &asks, &to_release, &text("reason")?, actor).await?;
            Ok(match done {
                Ok(did) => Done::Commit(DecideOutcome::Approved { asks, did }),
                Err(why) => Done::RollBack(DecideOutcome::Refused { why }),
            })
        }
    }
}

async fn write_down(
    connection: &mut PgConnection,
    request: i64,
    asks: &GuardedAct,
    becomes: ApprovalState,
    reason: Option<&str>,
    actor: &Actor,
) -> Result<(), StoreError> {
    let action = match becomes {
        ApprovalState::Approved | ApprovalState::Waiting => "approve",
        ApprovalState::Rejected => "reject",
        ApprovalState::Withdrawn => "withdraw",
    };
    let target = format!("request {request}: {} {}", asks.action(), asks.target());
    let act = Act { action, target: &target, reason, election: None, term: None, details: None };
    let act = acts::write(&mut *connection, OPERATION, actor, act).await?;
    let decided = sqlx::query(include_str!("sql/approval_decide.sql"))
        .bind(request)
        .bind(becomes.as_str())
        .bind(actor.user.as_str())
        .bind(actor.host.as_str())
        .bind(reason)
        .bind(act)
        .execute(connection)
        .await
        .map_err(at(OPERATION))?;
    if decided.rows_affected() == 1 {
        return Ok(());
    }
    Err(StoreError::Broken {
        operation: OPERATION,
        detail: format!("request {request} was not marked: nothing is done"),
    })
}

/// What an act would find now, everything locked that it goes by, and the payouts that a release lets go; or why it is not
/// allowed.
async fn look(
    connection: &mut PgConnection,
    asks: &GuardedAct,
) -> Result<Result<(String, Vec<String>), String>, StoreError> {
    let found = match asks {
        GuardedAct::ReleasePayouts { run, keys } => {
            return payout_acts::look_at_release(connection, *run, keys).await;
        }
        GuardedAct::ResolvePayout { key, resolution } => {
            payout_acts::look_at_payout(connection, key, resolution).await?
        }
        GuardedAct::ResolveCall { run, unit, key: _, word } => {
            call_acts::look_at_call(connection, *run, unit, word).await?
        }
        GuardedAct::RevertImport { import } => match revert::lock(&mut *connection, *import).await? {
            Ok(()) => look_at_import(connection, *import).await?,
            Err(RevertOutcome::Already { at }) => Err(format!("import {import} was taken back at {at}")),
            Err(RevertOutcome::NotFound | RevertOutcome::Reverted { .. } | RevertOutcome::Waits { .. }) => {
                Err(format!("there is no import {import}"))
            }
        },
        GuardedAct::EndFourEyes => {
            let on = are_on(connection, OPERATION).await?;
            if on { Ok(FOUND_ON.to_owned()) } else { Err("acts wait for nobody".to_owned()) }
        }
    };
    Ok(found.map(|found| (found, Vec::new())))
}

/// What is found of an import, its entries locked.
pub(super) async fn look_at_import(
    connection: &mut PgConnection,
    import: i64,
) -> Result<Result<String, String>, StoreError> {
    Ok(import_by_id(connection, import)
        .await?
        .map(|view| found_import(view.open, view.settled))
        .ok_or_else(|| format!("there is no import {import}")))
}

/// Does what was asked; or says why not, and then nothing of the transaction may stay.
async fn carry_out(
    connection: &mut PgConnection,
    asks: &GuardedAct,
    to_release: &[String],
    reason: &str,
    actor: &Actor,
) -> Result<Result<ActDone, String>, StoreError> {
    let gone = |what: &str| Err(format!("there is no {what} {}", asks.target()));
    Ok(match asks {
        GuardedAct::ResolvePayout { key, resolution } => {
            let done = payout_acts::resolve_payout(connection, key, resolution, reason, actor, Eyes::Both).await?;
            match done.into_inner() {
                ResolveOutcome::Resolved { was, now } => Ok(ActDone::Resolved { was, now }),
                ResolveOutcome::Refused { why, .. } => Err(why),
                ResolveOutcome::NotFound | ResolveOutcome::Waits { .. } => gone("payout"),
            }
        }
        GuardedAct::ResolveCall { run, unit, key: _, word } => {
            let done = call_acts::resolve(connection, (*run, unit), word, reason, actor, Eyes::Both).await?;
            match done.into_inner() {
                ResolveOutcome::Resolved { was, now } => Ok(ActDone::Resolved { was, now }),
                ResolveOutcome::Refused { why, .. } => Err(why),
                ResolveOutcome::NotFound | ResolveOutcome::Waits { .. } => gone("call"),
            }
        }
        // Those that were looked at, by name: what a batch has added to the run meanwhile nobody has approved.
        GuardedAct::ReleasePayouts { .. } if to_release.is_empty() => Ok(ActDone::Released { payouts: 0 }),
        GuardedAct::ReleasePayouts { run, .. } => {
            let done = payout_acts::release_payouts(connection, *run, to_release, reason, actor, Eyes::Both).await?;
            match done.into_inner() {
                ReleaseOutcome::Released { payouts } => Ok(ActDone::Released { payouts }),
                ReleaseOutcome::Unmatched { keys } => Err(nothing_waits(&keys)),
                ReleaseOutcome::NotFound | ReleaseOutcome::Waits { .. } => gone("run"),
            }
        }
        GuardedAct::RevertImport { import } => {
            let done = revert::revert_import(connection, *import, reason, actor, Eyes::Both).await?;
            match done.into_inner() {
                RevertOutcome::Reverted { withdrawn, adjusted } => Ok(ActDone::Reverted { withdrawn, adjusted }),
                RevertOutcome::Already { at } => Err(format!("it was taken back at {at}")),
                RevertOutcome::NotFound | RevertOutcome::Waits { .. } => gone("import"),
            }
        }
        GuardedAct::EndFourEyes => {
            let act = acts::write(&mut *connection, OPERATION, actor, switched("four eyes end", reason)).await?;
            sqlx::query(include_str!("sql/four_eyes_end.sql"))
                .bind(act)
                .execute(connection)
                .await
                .map_err(at(OPERATION))?;
            Ok(ActDone::FourEyesEnded)
        }
    })
}
