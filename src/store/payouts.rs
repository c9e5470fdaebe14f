//! What a tenure hands to the store and gets from it for payouts: who takes for which receiver, what is taken, what came of
//! it; and what operators see and do.
//!
//! The rules that every adapter keeps, in its own statements:
//!
//! | state | how it is left |
//! |---|---|
//! | `pending` | never in doubt: taken to `sending`; held (`merchant`, `over_limit`, `approval`) |
//! | `unknown` | in doubt: taken to `sending` where the receiver is idempotent, was the same and still knows the key; looked up where it can be asked; else held (`unknown`) |
//! | `sending` | by the record of its own try under its own term ([`PayoutFate`]); by a promotion to `unknown` or held |
//! | `held` | by a person |
//! | `paid` | by a person, to `returned` |
//!
//! - The number of a try grows with each take, also where no byte left, and every record names the try.
//! - A key's validity counts from the take of the first try that left, also where that was proved undone: the receiver has
//!   seen the key. Where no byte of any try left, it has not begun. Once it is over, nothing is sent any more.
//! - A payout goes the way of the definition that its run was opened with: what that left in the store for others to take is sent
//!   only after a person has released it by name, and is held (`approval`) until then.
//! - A receiver is the same while its whole address is; what is in doubt goes to no other.
//! - A doubt is never reset, and nothing in doubt is reversed but by a person's word.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::instruction::InstructionState;
use crate::domain::job::JobDefinition;
use crate::domain::money::Currency;

/// A job with payouts that may have to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutJob {
    /// The job.
    pub id: i64,
    /// Its definition in force; the last one of a job that was removed.
    pub definition: JobDefinition,
}

/// What the store must know of a job's receiver to say which of its payouts may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutTerms {
    /// The job.
    pub job: i64,
    /// Its receiver's whole address.
    pub url: String,
    /// Whether a second request with the same key has no second effect.
    pub idempotent: bool,
    /// Whether the receiver can be asked what became of a key.
    pub looks_up: bool,
    /// How long it remembers a key.
    pub key_valid_for: Duration,
    /// The longest wait for one answer.
    pub timeout: Duration,
    /// Above it a payout that was never tried is held, minor units.
    pub maximum: BTreeMap<Currency, i64>,
}

/// A take of payouts for one receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutTake {
    /// The receiver: scheme, host and port.
    pub origin: String,
    /// The jobs that send to it. Earlier ones go first where not all fits.
    pub jobs: Vec<PayoutTerms>,
    /// At most so many, 1 to 1,000.
    pub limit: u32,
    /// The waits between tries while the receiver is stopped: the first, and the longest.
    pub probe_waits: (Duration, Duration),
    /// Tries one now, whatever the wait: a secret or authorities were read anew.
    pub probe_now: bool,
}

/// What a take came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PayoutsTaken {
    /// Those to be sent or looked up, in the order of ids.
    pub payouts: Vec<Payout>,
    /// How many were held for a person instead.
    pub held: u64,
    /// Why the receiver is stopped; one payout is taken per wait then, or none.
    pub stopped: Option<String>,
    /// Nothing else is due before this: the first wait, or the receiver's next try. `None`: nothing waits for a time.
    pub next_in: Option<Duration>,
    /// As many as were asked for were looked at: more may be due.
    pub full: bool,
}

/// One payout in hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payout {
    /// The instruction.
    pub instruction: i64,
    /// Its job.
    pub job: i64,
    /// Its run.
    pub run: i64,
    /// The batch that wrote it, where that is on record.
    pub batch: Option<i64>,
    /// The same at every try.
    pub idempotency_key: String,
    /// The stored bytes.
    pub body: Vec<u8>,
    /// Which try this is, from 1; compared when it is recorded.
    pub attempt: u32,
    /// Whether an earlier try's outcome is unknown.
    pub in_doubt: bool,
    /// Whether an earlier try left, so that the key's validity had begun before this one.
    pub left_before: bool,
    /// What is to be done.
    pub errand: Errand,
    /// The first byte must leave within this, from the store's answer on. Zero where it was too late already.
    pub leaves_within: Duration,
    /// The store's time at the take.
    pub taken_at: DateTime<Utc>,
}

/// What a payout was taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errand {
    /// It stands `sending` under this term.
    Send,
    /// It stands `sending` under this term and is in doubt at a receiver that can be asked: asked first, then sent.
    AskThenSend,
    /// It stays `unknown`: it may only be asked for. `last` where the key is no longer valid: what is not found now is held.
    Ask {
        /// Whether this is the last time.
        last: bool,
    },
}

/// What came of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayoutFate {
    /// Paid: payout clearing to bank.
    Paid {
        /// The receiver's own name for it.
        reference: Option<String>,
    },
    /// The receiver has something else under the key: held (`mismatch`), in doubt.
    Mismatch {
        /// For a person.
        error: String,
    },
    /// A final no: the net comes back as a carry. Where any try is in doubt: held (`unknown`), nothing is reversed.
    Rejected {
        /// For a person.
        error: String,
    },
    /// It may have had its effect: in doubt for good. `None`: held (`unknown`).
    Unknown {
        /// For a person.
        error: String,
        /// When it is taken again.
        again_in: Option<Duration>,
    },
    /// Proved undone, or no byte left: as it was before the try.
    Back {
        /// Whether this try or an earlier one left: then the key's validity goes on counting.
        left: bool,
        /// For a person, where there is something to say.
        error: Option<String>,
        /// When it is taken again; `None`: at once.
        again_in: Option<Duration>,
    },
}

/// A try with what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutRecord {
    /// The instruction.
    pub instruction: i64,
    /// The try that is recorded; compared.
    pub attempt: u32,
    /// Whether it was only asked for ([`Errand::Ask`]).
    pub asked: bool,
    /// What came of it.
    pub fate: PayoutFate,
}

/// What came of several tries at one receiver, in the order of their answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutRecords {
    /// The receiver.
    pub origin: String,
    /// The tries.
    pub records: Vec<PayoutRecord>,
    /// The receiver stops: the reason on record, and for a person.
    pub stop: Option<(&'static str, String)>,
    /// So many refusals in a row stop it until an operator resumes it.
    pub max_refusals: u32,
    /// The wait before one is tried at a receiver that stops now.
    pub probe_after: Duration,
}

/// What recording came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PayoutsRecorded {
    /// The state that each was found in afterwards; tries that were no longer as expected are missing.
    pub states: Vec<(i64, InstructionState)>,
    /// Whether this stopped the receiver until an operator resumes it.
    pub needs_resume: bool,
}

/// What is said of a payout that is held since others may have taken it.
pub(super) const LEFT_IN_STORE: &str = "written while its job left payouts in the store: somebody may have taken it";

/// The reason on record of a receiver that refused too often.
pub const TOO_MANY_REFUSALS: &str = "refusals";

/// Which payouts are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PayoutFilter {
    /// Of this run.
    pub run: Option<i64>,
    /// In this state.
    pub state: Option<InstructionState>,
    /// To this merchant.
    pub merchant: Option<String>,
    /// With this key.
    pub key: Option<String>,
    /// Above this id.
    pub above: Option<i64>,
    /// At most, 1 to 10,000.
    pub limit: u32,
}

/// One payout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayoutView {
    /// Identity.
    pub id: i64,
    /// The idempotency key.
    pub key: String,
    /// Its run.
    pub run: i64,
    /// Its job.
    pub job: String,
    /// The election that it belongs to.
    pub election: String,
    /// Who is paid.
    pub merchant: String,
    /// Major units as text.
    pub amount: String,
    /// ISO 4217.
    pub currency: String,
    /// The day on which the money counts.
    pub value_date: Option<NaiveDate>,
    /// Its state.
    pub state: InstructionState,
    /// Why it is held.
    pub reason: Option<String>,
    /// `auto`, `waiting` or `released`.
    pub release: String,
    /// Tries, also those of which no byte left.
    pub attempts: u32,
    /// Whether any try's outcome was unknown.
    pub in_doubt: bool,
    /// The first try that left.
    pub first_sent_at: Option<DateTime<Utc>>,
    /// The receiver forgets the key then.
    pub key_valid_until: Option<DateTime<Utc>>,
    /// Not before.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// The receiver that it was last handed to.
    pub receiver: Option<String>,
    /// The receiver's, or an operator's, own name for it.
    pub reference: Option<String>,
    /// The bank's name for the return of what was paid.
    pub return_reference: Option<String>,
    /// The last error.
    pub last_error: Option<String>,
    /// The term that wrote it.
    pub term: i64,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// When it became final.
    pub final_at: Option<DateTime<Utc>>,
    /// The stored bytes, as text.
    pub body: String,
}

/// A receiver that is stopped, or refused the last of what it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverView {
    /// Scheme, host and port.
    pub origin: String,
    /// Since when it is stopped.
    pub stopped_at: Option<DateTime<Utc>>,
    /// Why.
    pub reason: Option<String>,
    /// For a person.
    pub detail: Option<String>,
    /// Refusals in a row.
    pub refusals: u32,
    /// Whether only `receivers resume` ends it.
    pub needs_resume: bool,
    /// When one payout is tried.
    pub next_probe_at: Option<DateTime<Utc>>,
    /// The term that last noted something.
    pub term: Option<i64>,
}
