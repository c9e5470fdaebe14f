//! What a try came to: from what was seen to a verdict. Pure; the shell decides nothing.
//!
//! | seen | idempotent | not idempotent |
//! |---|---|---|
//! | no byte written; 425, 429, `not_done` | undone | undone |
//! | a certificate that is not right | stop | stop |
//! | 2xx, echo agrees or is absent | paid | paid |
//! | 2xx, echo disagrees, error page, encoded or too long | mismatch | mismatch |
//! | 2xx, body cut short | unknown | unknown |
//! | a status in `refusals` | rejected; in doubt before: held | the same |
//! | 401, 403 | stop | stop |
//! | 400, 404, 3xx | stop | unknown |
//! | 412 with a higher `Fencing-Highest` | fenced | fenced |
//! | 409, 5xx | later, in doubt | unknown |
//! | anything else, no answer | unknown | unknown |

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::echo::{Echo, Expected, echo};
use super::retry_after::retry_after;
use crate::domain::Term;
use crate::domain::outside::ReceiverDefinition;

/// What was seen of one try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// No byte of the request was handed to the network.
    Unsent(Unsent),
    /// At least one byte was, and there is no answer: why.
    Silence(String),
    /// The head of an answer, and what there was of its body.
    Answer(Response),
}

/// Why no byte was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsent {
    /// Leave was not given.
    NoLeave,
    /// The time by which it had to leave was over.
    TooLate,
    /// No connection, or it was lost before the first byte.
    NotConnected(String),
    /// The other side is not who it should be, or does not speak TLS.
    Untrusted(String),
    /// A secret could not be read.
    Unsigned(String),
    /// What was to be sent cannot be put into a request.
    Unfit(String),
    /// The receiver has asked for a wait, which is not over.
    NotYet(Duration),
}

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// `Retry-After`, where there is exactly one.
    pub retry_after: Option<String>,
    /// `Date`, where there is exactly one.
    pub date: Option<String>,
    /// `Fencing-Highest`, where there is exactly one.
    pub fencing_highest: Option<String>,
    /// The body.
    pub body: Body,
}

/// What there was of a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Body {
    /// All of it, and it was there to its end.
    Whole(Vec<u8>),
    /// It broke off.
    #[default]
    Broken,
    /// It is longer than is read.
    TooLong,
    /// It has a `Content-Encoding`: nothing is unpacked.
    Encoded,
}

/// What else a verdict depends on.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What an echo has to agree with.
    pub expected: &'a Expected,
    /// The token that was sent.
    pub term: Term,
    /// Whether any earlier try of this key is in doubt.
    pub in_doubt: bool,
    /// The store's time.
    pub store_now: DateTime<Utc>,
}

/// Why the sending to a receiver stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// 400.
    BadRequest,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 404.
    NotFound,
    /// 3xx.
    Redirect,
    /// TLS could not be agreed on, or the certificate is not right.
    Tls,
    /// Refusals in a row, counted by the store.
    Refusals,
    /// A higher token than the fence has was seen by the receiver, found by the tenure.
    Fenced,
}

impl StopReason {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::BadRequest,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::Redirect,
        Self::Tls,
        Self::Refusals,
        Self::Fenced,
    ];

    /// The name in the store and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Redirect => "redirect",
            Self::Tls => "tls",
            Self::Refusals => "refusals",
            Self::Fenced => "fenced",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

/// What a try came to. `why` is for a person: statuses and causes, never what a body says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The payment was made.
    Paid {
        /// The receiver's own name for it.
        reference: Option<String>,
    },
    /// A success that does not agree with what was sent: held (`mismatch`), in doubt.
    Mismatch {
        /// In what.
        why: String,
    },
    /// A final no, and no earlier try can have had an effect: the payout leg is reversed.
    Rejected {
        /// The status.
        status: u16,
    },
    /// A no after a try that may have had its effect: held (`unknown`), nothing is reversed.
    RefusedInDoubt {
        /// The status.
        status: u16,
    },
    /// Not now. It may have had its effect: in doubt. Of an idempotent receiver only.
    Later {
        /// What the receiver asked for.
        after: Option<Duration>,
        /// For a person.
        why: String,
    },
    /// It may have had its effect: in doubt. Sent again only where the receiver is idempotent.
    Unknown {
        /// For a person.
        why: String,
    },
    /// Proved that nothing was done: the instruction is as before the try, and may be sent again.
    Undone {
        /// Whether a byte left.
        left: bool,
        /// What the receiver asked for.
        after: Option<Duration>,
        /// For a person.
        why: String,
        /// Whether it may be this instruction's own doing (a status in `not_done`): else it says nothing about it.
        of_unit: bool,
    },
    /// The sending to this receiver stops; the instruction is as before the try.
    StopReceiver {
        /// The reason on record.
        reason: StopReason,
        /// For a person.
        why: String,
    },
    /// Nothing was done, since the receiver has seen a higher token: read the fence again. The instruction is as before.
    Fenced {
        /// What it has seen.
        highest: Term,
    },
    /// No leave, or too late: nothing left, no attempt. The instruction is as before.
    NotSent,
}

impl Verdict {
    /// Whether the try itself is proved to have had no effect, or is taken for it by the rules above.
    #[must_use]
    pub const fn is_as_before(&self) -> bool {
        match self {
            Self::Undone { .. } | Self::StopReceiver { .. } | Self::Fenced { .. } | Self::NotSent => true,
            Self::Paid { .. }
            | Self::Mismatch { .. }
            | Self::Rejected { .. }
            | Self::RefusedInDoubt { .. }
            | Self::Later { .. }
            | Self::Unknown { .. } => false,
        }
    }

    /// Whether the instruction is in doubt from now on, for good.
    #[must_use]
    pub const fn leaves_doubt(&self) -> bool {
        match self {
            Self::Mismatch { .. } | Self::Later { .. } | Self::Unknown { .. } => true,
            Self::Paid { .. }
            | Self::Rejected { .. }
            | Self::RefusedInDoubt { .. }
            | Self::Undone { .. }
            | Self::StopReceiver { .. }
            | Self::Fenced { .. }
            | Self::NotSent => false,
        }
    }

    /// Whether the same instruction may be handed to the network again, as far as this try is concerned.
    #[must_use]
    pub const fn may_be_sent_again(&self, idempotent: bool) -> bool {
        match self {
            Self::Undone { .. } | Self::StopReceiver { .. } | Self::Fenced { .. } | Self::NotSent => true,
            Self::Later { .. } | Self::Unknown { .. } => idempotent,
            Self::Paid { .. } | Self::Mismatch { .. } | Self::Rejected { .. } | Self::RefusedInDoubt { .. } => false,
        }
    }

    /// The label in metrics: a small closed set.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Paid { .. } => "paid",
            Self::Mismatch { .. } => "mismatch",
            Self::Rejected { .. } => "rejected",
            Self::RefusedInDoubt { .. } => "refused_in_doubt",
            Self::Later { .. } => "later",
            Self::Unknown { .. } => "unknown",
            Self::Undone { .. } => "undone",
            Self::StopReceiver { .. } => "stopped",
            Self::Fenced { .. } => "fenced",
            Self::NotSent => "not_sent",
        }
    }
}

/// The verdict on one try.
#[must_use]
pub fn verdict(seen: &Seen, rules: &ReceiverDefinition, asked: Asked<'_>) -> Verdict {
    match seen {
        Seen::Unsent(unsent) => unsent_verdict(unsent),
        Seen::Silence(why) => Verdict::Unknown { why: why.clone() },
        Seen::Answer(response) => answered(response, rules, asked),
    }
}

fn unsent_verdict(unsent: &Unsent) -> Verdict {
    match unsent {
        Unsent::NoLeave | Unsent::TooLate => Verdict::NotSent,
        Unsent::NotConnected(why) | Unsent::Unsigned(why) | Unsent::Unfit(why) => {
            Verdict::Undone { left: false, after: None, why: why.clone(), of_unit: false }
        }
        Unsent::NotYet(after) => Verdict::Undone {
            left: false,
            after: Some(*after),
            why: "the receiver asked for a wait, which is not over".to_owned(),
            of_unit: false,
        },
        Unsent::Untrusted(why) => Verdict::StopReceiver { reason: StopReason::Tls, why: why.clone() },
    }
}

fn answered(response: &Response, rules: &ReceiverDefinition, asked: Asked<'_>) -> Verdict {
    let status = response.status;
    let why = || format!("answered {status}");
    let after = || asked_for(response, asked.store_now);
    if (200..=299).contains(&status) || ((300..400).contains(&status) && crate::mutant!("http.redirect-taken-for-done"))
    {
        return success(response, asked.expected);
    }
    if status == 412
        && let Some(highest) = higher(response.fencing_highest.as_deref(), asked.term)
    {
        return Verdict::Fenced { highest };
    }
    // What the receiver's owner lists goes before what a status means elsewhere.
    if rules.refusals.contains(&status) {
        let in_doubt = asked.in_doubt && !crate::mutant!("http.rejected-after-an-unknown-try");
        return if in_doubt { Verdict::RefusedInDoubt { status } } else { Verdict::Rejected { status } };
    }
    let not_now = matches!(status, 425 | 429);
    let undone = rules.not_done.contains(&status) || not_now;
    if undone || (status >= 500 && crate::mutant!("http.5xx-taken-for-undone")) {
        return Verdict::Undone { left: true, after: after(), why: why(), of_unit: !not_now };
    }
    match (stops(status), rules.idempotent) {
        (Some(reason @ (StopReason::Unauthorized | StopReason::Forbidden)), _) | (Some(reason), true) => {
            Verdict::StopReceiver { reason, why: why() }
        }
        (None, true) if status == 409 || (500..=599).contains(&status) => Verdict::Later { after: after(), why: why() },
        (Some(_) | None, _) => Verdict::Unknown { why: why() },
    }
}

/// The wait that an answer asks for.
fn asked_for(response: &Response, store_now: DateTime<Utc>) -> Option<Duration> {
    let value = response.retry_after.as_deref()?;
    retry_after(value, response.date.as_deref(), store_now)
}

/// How long nothing at all is to be sent to a receiver that was seen to answer so: 429 and 503 are about the receiver, whatever
/// they were the answer to.
#[must_use]
pub fn quiet_for(seen: &Seen, store_now: DateTime<Utc>) -> Option<Duration> {
    match seen {
        Seen::Answer(response) if matches!(response.status, 429 | 503) => asked_for(response, store_now),
        Seen::Answer(_) | Seen::Unsent(_) | Seen::Silence(_) => None,
    }
}

fn success(response: &Response, expected: &Expected) -> Verdict {
    let status = response.status;
    match &response.body {
        Body::Whole(body) => match echo(body, expected) {
            Echo::Absent { reference } | Echo::Agrees { reference, .. } => Verdict::Paid { reference },
            Echo::Disagrees(_) if crate::mutant!("http.echo-not-compared") => Verdict::Paid { reference: None },
            Echo::Disagrees(what) => Verdict::Mismatch { why: format!("answered {status}, but {what}") },
        },
        Body::Broken => Verdict::Unknown { why: format!("answered {status}, and its body broke off") },
        Body::TooLong => {
            Verdict::Mismatch { why: format!("answered {status} with a body that is too long to be read") }
        }
        Body::Encoded => {
            Verdict::Mismatch { why: format!("answered {status} with an encoded body, which was not asked for") }
        }
    }
}

/// What a status says about the receiver rather than about the instruction.
const fn stops(status: u16) -> Option<StopReason> {
    match status {
        300..=399 => Some(StopReason::Redirect),
        400 => Some(StopReason::BadRequest),
        401 => Some(StopReason::Unauthorized),
        403 => Some(StopReason::Forbidden),
        404 => Some(StopReason::NotFound),
        _ => None,
    }
}

/// The token of a `Fencing-Highest` that is a reason to refuse ours. One that is not higher contradicts itself, and says
/// nothing about what was done.
fn higher(value: Option<&str>, ours: Term) -> Option<Term> {
    let value = value?.trim();
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    value.parse().ok().and_then(Term::new).filter(|highest| *highest > ours)
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
