//! What the port tells of texts that others have a hand in: of an error its class, of an operator's act its reason where the act
//! is on elections, replicas, jobs or receivers.
//!
//! Why: whoever reaches the port is trusted with keys and counts. What a program wrote to its standard error, what a job's
//! statement raised, and why somebody holds a merchant can name merchants and amounts. The whole texts are for those who have a
//! role in the store: `bursar units list`, `bursar runs show`, `bursar history`.
//!
//! Invariant: of an error only words of this file, a number and a SQLSTATE come out, whatever goes in.

use std::borrow::Cow;

use crate::domain::run::RunState;
use crate::store::{ActView, RunSummary};

/// How bursar begins what it says of a failure. Where one ends with a blank, a number follows, which is told too.
const OPENINGS: [&str; 18] = [
    "exit ",
    "ended by signal ",
    "killed at its time-out",
    "killed at the lease's deadline",
    "killed when its leader stopped leading",
    "its supervisor ended without a report",
    "not begun",
    "the handler panicked",
    "answered ",
    "refused: answered ",
    "no answer",
    "no connection",
    "the receiver may have forgotten its key",
    "the query for units failed",
    "the query for units",
    "the transaction computed for longer than its statement time-out",
    "a number leaves the range of 64 bits",
    "a constraint is broken",
];

/// What is told of an error of which nothing is known.
const AN_ERROR: &str = "an error";

/// Acts whose reasons are about bursar itself. Those of all others are about money, and may say whose.
const ON_BURSAR: [&str; 10] =
    ["halt", "resume", "pause", "unpause", "cordon", "uncordon", "transfer", "trigger", "backfill", "receivers resume"];

/// The class of an error: how bursar itself says that it came, and the SQLSTATE behind it.
pub(super) fn class_of(error: &str) -> String {
    let opened = OPENINGS.into_iter().find_map(|opening| {
        let rest = error.strip_prefix(opening)?;
        let digits = rest.bytes().take_while(|byte| opening.ends_with(' ') && byte.is_ascii_digit()).count();
        Some(format!("{opening}{}", &rest[..digits]).trim_end().to_owned())
    });
    let died = || {
        let (count, _) = error.split_once(" leaders died over this run")?;
        count.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("{count} leaders died over this run"))
    };
    let said = opened.or_else(died).unwrap_or_else(|| AN_ERROR.to_owned());
    match sqlstate(error) {
        Some(state) => format!("{said} (SQLSTATE {state})"),
        None => said,
    }
}

/// The SQLSTATE that the store puts behind a statement's words.
fn sqlstate(error: &str) -> Option<&str> {
    let (_, state) = error.strip_suffix(')')?.rsplit_once('(')?;
    (state.len() == 5 && state.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())).then_some(state)
}

/// Why a run has no work. Of one that was set aside that is an error.
#[must_use]
pub fn why_of(run: &RunSummary) -> Option<Cow<'_, str>> {
    let why = run.why.as_deref()?;
    Some(match run.state {
        RunState::CompleteSetAside => Cow::Owned(class_of(why)),
        RunState::Planning
        | RunState::Open
        | RunState::Complete
        | RunState::Skipped
        | RunState::Coalesced
        | RunState::Missed => Cow::Borrowed(why),
    })
}

/// Why an operator did something, where that is for this port.
pub(super) fn reason_of(act: &ActView) -> Option<&str> {
    act.reason.as_deref().filter(|_| ON_BURSAR.contains(&act.action.as_str()))
}

#[cfg(test)]
mod tests {
    use super::class_of;

    #[test]
    fn of_an_error_only_its_class_is_told() {
        for (error, told) in [
            ("exit 3: nothing was done: no account for acme, 12.00", "exit 3"),
            ("ended by signal 9: acme", "ended by signal 9"),
            ("answered 422", "answered 422"),
            ("answered 200, but amount is 12.00", "answered 200"),
            ("no answer within 10s", "no answer"),
            ("account acme is locked (P0001)", "an error (SQLSTATE P0001)"),
            ("the query for units failed: acme owes 12.00 (22012)", "the query for units failed (SQLSTATE 22012)"),
            ("the query for units gave the key \"EUR:acme\" more than once; expected each once", "the query for units"),
            ("3 leaders died over this run without one of its units ending", "3 leaders died over this run"),
            ("acme leaders died over this run", "an error"),
            ("it went wrong (acme1)", "an error"),
            ("exit acme", "exit"),
            ("é", "an error"),
            ("", "an error"),
        ] {
            assert_eq!(class_of(error), told, "{error}");
        }
    }
}
