//! Receivers that stop, durably and for every leader; and those that refused the last of what they were sent.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::fence::Act;
use super::jobs::span;
use super::rows::{Receiver, Stop};
use super::state::{Done, MemoryState};
use crate::domain::Claim;
use crate::store::bounds::{bounded, wait};
use crate::store::{Actor, Heard, ReceiverAsk, ReceiverView, ReceiverWay, TOO_MANY_REFUSALS};

/// The most doublings of the wait between tries.
const MOST_DOUBLINGS: u32 = 20;

impl MemoryState {
    pub(super) fn way(&self, origin: &str, probe_now: bool, now: DateTime<Utc>) -> ReceiverWay {
        let Some(stop) = self.receivers.get(origin).and_then(|found| found.stop.as_ref()) else {
            return ReceiverWay::Open;
        };
        let reason = stop.reason.to_owned();
        if stop.needs_resume {
            return ReceiverWay::Closed { reason, next_in: None };
        }
        let left = wait((stop.next_probe_at - now).to_std().unwrap_or(Duration::ZERO));
        if left.is_zero() || probe_now {
            ReceiverWay::Probe(reason)
        } else {
            ReceiverWay::Closed { reason, next_in: Some(left) }
        }
    }

    /// Whether calls may go to a receiver.
    pub(super) fn receiver_way(&mut self, ask: &ReceiverAsk, now: DateTime<Utc>) -> Done<ReceiverWay> {
        let way = self.way(&ask.origin, ask.probe_now, now);
        if let ReceiverWay::Probe(_) = way
            && ask.tries
        {
            self.tried(&ask.origin, ask.probe_waits, now);
            return Done::Commit(way);
        }
        Done::RollBack(way)
    }

    /// One is tried now; the next one after a longer wait.
    pub(super) fn tried(&mut self, origin: &str, (first, longest): (Duration, Duration), now: DateTime<Utc>) {
        let stop = self.receivers.get_mut(origin).and_then(|found| found.stop.as_mut());
        let Some(stop) = stop else { return };
        let next = wait(first).saturating_mul(1 << stop.probes.min(MOST_DOUBLINGS)).min(wait(longest));
        stop.next_probe_at = now + span(next);
        stop.probes += 1;
    }

    /// Notes what answers say about a receiver. Answers whether they stopped it until an operator resumes it.
    pub(super) fn hear(&mut self, claim: &Claim, heard: &Heard, now: DateTime<Utc>) -> bool {
        let refused = heard.refused;
        let in_a_row =
            if heard.did || refused > 0 { self.answered(claim, &heard.origin, heard.did, refused) } else { 0 };
        let too_many = refused > 0 && in_a_row >= heard.max_refusals;
        let stop = match &heard.stop {
            _ if too_many => Some((TOO_MANY_REFUSALS, format!("{in_a_row} refusals in a row"))),
            Some((reason, detail)) => Some((*reason, bounded(detail))),
            None => None,
        };
        if let Some((reason, detail)) = stop {
            let next_probe_at = now + span(wait(heard.probe_after));
            let stop = Stop { since: now, reason, detail, needs_resume: too_many, next_probe_at, probes: 0 };
            self.stop(claim, &heard.origin, stop);
        }
        too_many
    }

    /// It answered as one that works: a stop that ends by itself is over. Answers its refusals in a row.
    fn answered(&mut self, claim: &Claim, origin: &str, paid: bool, refused: u32) -> u32 {
        let found = self.receivers.entry(origin.to_owned()).or_default();
        found.refusals = if paid { refused } else { found.refusals.saturating_add(refused) };
        found.stop = found.stop.take().filter(|stop| stop.needs_resume);
        found.term = Some(claim.term.get());
        found.refusals
    }

    /// One that is stopped already keeps when it is tried next; its reason is the newest, unless only an operator ends the
    /// stop.
    fn stop(&mut self, claim: &Claim, origin: &str, new: Stop) {
        let found = self.receivers.entry(origin.to_owned()).or_default();
        found.term = Some(claim.term.get());
        found.stop = Some(match found.stop.take() {
            None => new,
            Some(old) if old.needs_resume => old,
            Some(old) => Stop { since: old.since, next_probe_at: old.next_probe_at, probes: old.probes, ..new },
        });
    }

    pub(super) fn receivers_view(&self) -> Vec<ReceiverView> {
        let shown = self.receivers.iter().filter(|(_, found)| found.is_of_note());
        shown.map(|(origin, found)| found.view(origin)).collect()
    }

    pub(super) fn resume_receiver(
        &mut self,
        origin: &str,
        reason: &str,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> Done<bool> {
        let Some(found) = self.receivers.get_mut(origin).filter(|found| found.is_of_note()) else {
            return Done::RollBack(false);
        };
        (found.stop, found.refusals) = (None, 0);
        self.act(actor, Act::on_none("receivers resume", origin, reason), now);
        Done::Commit(true)
    }
}

impl Receiver {
    /// Stopped, or it refused the last of what it was sent.
    const fn is_of_note(&self) -> bool {
        self.stop.is_some() || self.refusals > 0
    }

    fn view(&self, origin: &str) -> ReceiverView {
        let stop = self.stop.as_ref();
        ReceiverView {
            origin: origin.to_owned(),
            stopped_at: stop.map(|stop| stop.since),
            reason: stop.map(|stop| stop.reason.to_owned()),
            detail: stop.map(|stop| stop.detail.clone()),
            refusals: self.refusals,
            needs_resume: stop.is_some_and(|stop| stop.needs_resume),
            next_probe_at: stop.map(|stop| stop.next_probe_at),
            term: self.term,
        }
    }
}
