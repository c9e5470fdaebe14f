//! What a try came to: the product's verdict on what was seen, in the words of the port of calls, as a tenure records it. None of
//! it is modelled.

use std::time::Duration;

use bursar::domain::Term;
use bursar::domain::job::RetryDefinition;
use bursar::domain::outside::ReceiverDefinition;
use bursar::settlement::http::{Asked, Body, Expected, Response, Seen, Unsent, call_outcome, verdict};
use bursar::store::CallFate;
use bursar::tenure::fate::fate;
use chrono::DateTime;

use super::{Call, Paying, State};
use crate::receiver::Reply;
use crate::store::Fate;

/// What whoever sent it saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Saw {
    /// An answer.
    Reply(Reply),
    /// None.
    Silence,
    /// That nothing could be sent.
    NoConnection,
}

/// The instruction's stored bytes.
const BODY: &[u8] = br#"{"key":"k","amount_minor":"100","currency":"EUR"}"#;
/// An answer about another amount.
const OTHER: &[u8] = br#"{"key":"k","amount_minor":"999","currency":"EUR"}"#;

/// What it looks like on the wire. The token of whoever overtook is above the one that was sent.
fn seen(saw: Saw, term: u8) -> Seen {
    let answer = |status, body: &[u8]| {
        let fencing_highest = (status == 412).then(|| (u32::from(term) + 1).to_string());
        let body = Body::Whole(body.to_vec());
        Seen::Answer(Response { status, retry_after: None, date: None, fencing_highest, body })
    };
    match saw {
        Saw::NoConnection => Seen::Unsent(Unsent::NotConnected("no connection".to_owned())),
        Saw::Silence => Seen::Silence("no answer".to_owned()),
        Saw::Reply(Reply::Paid | Reply::Known) => answer(200, BODY),
        Saw::Reply(Reply::Disagrees) => answer(200, OTHER),
        Saw::Reply(Reply::Redirected) => answer(301, b""),
        Saw::Reply(Reply::Refused | Reply::StillRefused) => answer(422, b""),
        Saw::Reply(Reply::Undone) => answer(503, b""),
        Saw::Reply(Reply::Fenced) => answer(412, b""),
        Saw::Reply(Reply::NotNow) => answer(429, b""),
        Saw::Reply(Reply::Failing { .. }) => answer(500, b""),
    }
}

/// The receiver as its owner describes it.
pub fn receiver(idempotent: bool) -> ReceiverDefinition {
    ReceiverDefinition {
        url: "https://bank/".to_owned(),
        idempotent,
        key_valid_for: Duration::from_hours(20),
        refusals: [422].into(),
        max_refusals: 20,
        not_done: [503].into(),
        timeout: Duration::from_secs(10),
        secret_files: Vec::new(),
        tls_ca: None,
        lookup_url: None,
        max_per_second: None,
        max_in_flight: 16,
    }
}

impl Paying {
    /// What is recorded of a call, by what was seen of it and what its row says.
    pub(super) fn came_to(self, state: &State, call: Call, term: u8, saw: Saw) -> Fate {
        let row = state.store.rows[usize::from(call.instruction)];
        let idempotent = self.receiver.idempotent;
        let asked = Asked {
            expected: &Expected::of("k", BODY),
            term: Term::new(i64::from(term)).unwrap_or(Term::NONE),
            in_doubt: row.in_doubt,
            store_now: DateTime::UNIX_EPOCH,
        };
        let outcome = call_outcome(verdict(&seen(saw, term), &receiver(idempotent), asked));
        let backoff = Duration::from_millis(1);
        let retry = RetryDefinition { max_attempts: u32::from(self.tries), backoff_min: backoff, backoff_max: backoff };
        let left = saw != Saw::NoConnection;
        match fate(outcome, &retry, u32::from(row.charged), u32::from(call.attempt), idempotent, left, 7) {
            CallFate::Done => Fate::Done,
            CallFate::Failed { again_in, .. } => Fate::Failed { again: again_in.is_some() },
            CallFate::NotSent => Fate::NotSent,
            CallFate::Stopped { .. } => Fate::Stopped,
            CallFate::PutOff { .. } => Fate::PutOff,
            CallFate::Unknown { again_in, .. } => Fate::Unknown { again: again_in.is_some() },
        }
    }
}
