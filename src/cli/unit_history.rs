//! A unit's whole history, for a person.

use super::error::CommandError;
use super::output::{Output, dash, or_dash, time, time_or};
use super::units::last_error;
use crate::store::{ActView, UnitEntries, UnitHistory, UnitPosting, UnitRequest, UnitTry};

/// Everything that is kept of one unit.
pub(super) fn show(output: Output, history: &UnitHistory) -> Result<(), CommandError> {
    let unit = &history.unit;
    let batch = history.batch.map_or_else(dash, |batch| {
        format!("{} under term {}, committed {}", batch.id, batch.term, time(batch.committed_at))
    });
    let lines = [
        ("unit", unit.id.to_string()),
        ("run", unit.run.to_string()),
        ("key", unit.key.clone()),
        ("state", unit.state.as_str().to_owned()),
        ("net", or_dash(unit.net.as_deref())),
        ("attempts", unit.attempts.to_string()),
        ("generation", history.generation.to_string()),
        ("not before", time_or(unit.next_attempt_at)),
        ("last error", or_dash(last_error(unit))),
        ("ended", time_or(unit.ended_at)),
        ("under term", unit.term.map_or_else(dash, |term| term.to_string())),
        ("batch", batch),
    ];
    let lines: Vec<String> = lines.iter().map(|(what, text)| format!("{what:<12}{text}")).collect();
    output.line(&lines.join("\n"))?;
    table(output, "\nENTRIES", &["source", "entries", "amount", "fee"], &history.entries, entries)?;
    let columns = ["journal", "generation", "term", "debit", "credit", "amount"];
    table(output, "\nPOSTED", &columns, &history.postings, posting)?;
    let columns =
        ["key", "kind", "state", "tries", "in doubt", "first sent", "not before", "final", "reference", "last error"];
    table(output, "\nREQUESTS", &columns, &history.requests, request)?;
    let tries: Vec<TryOf> = history.requests.iter().flat_map(of_request).collect();
    table(output, "\nTRIES", &TRIES, &tries, a_try)?;
    table(output, "\nOPERATORS' ACTS", &["at", "what", "on", "by", "role", "why"], &history.acts, act)
}

/// Columns of tries.
const TRIES: [&str; 9] = ["key", "try", "what", "term", "began", "ended", "outcome", "receiver", "detail"];

/// A try, of the request with that key; and whether there was one after it.
struct TryOf<'a> {
    key: &'a str,
    made: &'a UnitTry,
    is_last: bool,
}

fn of_request(request: &UnitRequest) -> impl Iterator<Item = TryOf<'_>> {
    let last = request.tries.last().map(|made| made.attempt);
    request.tries.iter().map(move |made| TryOf { key: &request.key, made, is_last: last == Some(made.attempt) })
}

/// The tries of one request.
pub(super) fn tries(output: Output, request: &UnitRequest) -> Result<(), CommandError> {
    let tries: Vec<TryOf> = of_request(request).collect();
    table(output, "\nTRIES", &TRIES, &tries, a_try)
}

fn a_try(TryOf { key, made, is_last }: &TryOf) -> Vec<String> {
    // A look-up is left as it is by the end of its leader, and asked for again.
    let open = if *is_last && !made.asked { "on the wire" } else { "no answer on record" };
    vec![
        (*key).to_owned(),
        made.attempt.to_string(),
        if made.asked { "look-up" } else { "request" }.to_owned(),
        made.term.to_string(),
        time(made.began_at),
        time_or(made.ended_at),
        made.outcome.clone().unwrap_or_else(|| open.to_owned()),
        or_dash(made.receiver.as_deref()),
        or_dash(made.detail.as_deref()),
    ]
}

fn table<T>(
    output: Output,
    heading: &str,
    columns: &[&str],
    rows: &[T],
    row: fn(&T) -> Vec<String>,
) -> Result<(), CommandError> {
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    output.table(heading, "none", columns, &rows)
}

fn entries(bound: &UnitEntries) -> Vec<String> {
    let carries = if bound.carries { " (carries)" } else { "" };
    vec![format!("{}{carries}", bound.source), bound.entries.to_string(), bound.amount.clone(), bound.fee.clone()]
}

fn posting(posting: &UnitPosting) -> Vec<String> {
    vec![
        posting.journal.clone(),
        posting.generation.to_string(),
        posting.term.to_string(),
        posting.debit.clone(),
        posting.credit.clone(),
        format!("{} {}", posting.amount, posting.currency),
    ]
}

fn request(request: &UnitRequest) -> Vec<String> {
    let state = request.state.as_str();
    vec![
        request.key.clone(),
        request.kind.clone(),
        request.reason.as_ref().map_or_else(|| state.to_owned(), |reason| format!("{state} ({reason})")),
        request.attempts.to_string(),
        if request.in_doubt { "yes" } else { "no" }.to_owned(),
        time_or(request.first_sent_at),
        time_or(request.next_attempt_at),
        time_or(request.final_at),
        or_dash(request.reference.as_deref()),
        or_dash(request.last_error.as_deref()),
    ]
}

fn act(act: &ActView) -> Vec<String> {
    vec![
        time(act.at),
        act.action.clone(),
        act.target.clone(),
        act.by.clone(),
        act.role.clone(),
        or_dash(act.reason.as_deref()),
    ]
}
