//! Receivers that stop, durably and for every leader: whether one may be sent to, and what its answers say about it. The rules are
//! the same for payouts and for the calls of the handler `http`.

use std::time::Duration;

use super::{PayoutFate, PayoutRecord, PayoutRecords};

/// A question whether a receiver may be sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverAsk {
    /// The receiver: scheme, host and port.
    pub origin: String,
    /// The waits between tries while it is stopped: the first, and the longest.
    pub probe_waits: (Duration, Duration),
    /// Tries one now, whatever the wait: a secret or authorities were read anew.
    pub probe_now: bool,
    /// Whether something is there that is tried if it may be: then the wait for the next one begins, and is longer.
    pub tries: bool,
}

/// Whether a receiver may be sent to now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiverWay {
    /// As many as are due.
    Open,
    /// It is stopped, for that reason; one may be tried.
    Probe(String),
    /// It is stopped.
    Closed {
        /// The reason on record.
        reason: String,
        /// The wait until one may be tried; `None`: an operator has to resume it.
        next_in: Option<Duration>,
    },
}

/// What answers said about a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The receiver.
    pub origin: String,
    /// Whether it did at least one of the things that it was asked for.
    pub did: bool,
    /// Refusals since the last thing that it did.
    pub refused: u32,
    /// It stops: the reason on record, and for a person.
    pub stop: Option<(&'static str, String)>,
    /// So many refusals in a row stop it until an operator resumes it.
    pub max_refusals: u32,
    /// The wait before one is tried where it stops now.
    pub probe_after: Duration,
}

impl Heard {
    /// Nothing yet.
    #[must_use]
    pub const fn nothing(origin: String, max_refusals: u32, probe_after: Duration) -> Self {
        Self { origin, did: false, refused: 0, stop: None, max_refusals, probe_after }
    }

    /// It did what it was asked for.
    pub const fn done(&mut self) {
        (self.did, self.refused) = (true, 0);
    }

    /// It said a final no.
    pub const fn refusal(&mut self) {
        self.refused = self.refused.saturating_add(1);
    }

    /// Whether it says nothing about the receiver.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        !self.did && self.refused == 0 && self.stop.is_none()
    }

    /// What payouts say about their receiver. Only tries that were recorded now count, so that a record that is repeated counts
    /// once; `counts` is given each with its place.
    pub(super) fn of_payouts(records: &PayoutRecords, counts: impl Fn(usize, &PayoutRecord) -> bool) -> Self {
        let mut heard = Self::nothing(records.origin.clone(), records.max_refusals, records.probe_after);
        let mut any = false;
        for (place, record) in records.records.iter().enumerate() {
            if !counts(place, record) {
                continue;
            }
            any = true;
            match record.fate {
                PayoutFate::Paid { .. } if !record.asked => heard.done(),
                PayoutFate::Rejected { .. } if !record.asked => heard.refusal(),
                PayoutFate::Paid { .. }
                | PayoutFate::Rejected { .. }
                | PayoutFate::Mismatch { .. }
                | PayoutFate::Unknown { .. }
                | PayoutFate::Back { .. } => {}
            }
        }
        heard.stop = records.stop.clone().filter(|_| any);
        heard
    }
}
