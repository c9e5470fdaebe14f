//! Payouts: on the wire under one term, recorded once with what follows, held where they may not leave, in doubt for good;
//! receivers that stop; what operators say.
//!
//! A key that is no longer valid needs no waiting here: with a validity of less than twice the time-out it is too late from
//! the start.

pub mod doubts;
pub mod holds;
pub mod leaving;
pub mod receivers;
pub mod records;
pub mod words;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bursar::domain::Claim;
use bursar::domain::entry::NewEntry;
use bursar::domain::instruction::InstructionState;
use bursar::domain::job::{HandlerDefinition, LedgerDefinition};
use bursar::store::{
    Errand, JobChangeOutcome, JobRow, OpenRun, Payout, PayoutFate, PayoutFilter, PayoutRecord, PayoutRecords,
    PayoutTake, PayoutTerms, PayoutView, PayoutsRecorded, PayoutsTaken, Recovery, TenureStore,
};

use super::bench::{Bench, SOON, capture, change, claim, definition, everything, mine};
use crate::support::eventually;

/// The longest that a case waits for a wait of a millisecond to be over.
const WAITED: Duration = Duration::from_secs(5);
/// The receiver of these cases.
pub const BANK: &str = "https://bank.test";
/// The state of a payout, why it is held, whether it is in doubt.
pub type Shown = (InstructionState, Option<String>, bool);

/// A leader with a job and its settled payouts.
pub struct Till<'a> {
    pub bench: &'a Bench,
    pub leads: Arc<dyn TenureStore>,
    pub job: JobRow,
    pub run: OpenRun,
}

/// Entries of 10.00 EUR for so many merchants, m0 and on.
pub fn merchants(count: usize) -> Vec<NewEntry> {
    (0..count).map(|n| capture(&format!("e{n}"), &format!("m{n}"), "EUR", "10.00")).collect()
}

pub fn paid() -> PayoutFate {
    PayoutFate::Paid { reference: Some("R-1".to_owned()) }
}

pub fn rejected() -> PayoutFate {
    PayoutFate::Rejected { error: "answered 422".to_owned() }
}

pub fn mismatch() -> PayoutFate {
    PayoutFate::Mismatch { error: "another amount".to_owned() }
}

pub fn unknown(again_in: Option<Duration>) -> PayoutFate {
    PayoutFate::Unknown { error: "no answer".to_owned(), again_in }
}

pub fn back() -> PayoutFate {
    PayoutFate::Back { left: false, error: None, again_in: None }
}

/// What came of a payout in hand.
pub fn of(payout: &Payout, fate: PayoutFate) -> PayoutRecord {
    let asked = match payout.errand {
        Errand::Ask { .. } => true,
        Errand::Send | Errand::AskThenSend => false,
    };
    PayoutRecord { instruction: payout.instruction, attempt: payout.attempt, asked, fate }
}

pub fn records(records: Vec<PayoutRecord>) -> PayoutRecords {
    let origin = BANK.to_owned();
    PayoutRecords { origin, records, stop: None, max_refusals: 20, probe_after: Duration::from_hours(1) }
}

pub fn held(reason: &str, in_doubt: bool) -> Shown {
    (InstructionState::Held, Some(reason.to_owned()), in_doubt)
}

impl<'a> Till<'a> {
    /// With a payout of 10.00 EUR to each of so many merchants.
    pub async fn open(bench: &'a Bench, count: usize) -> Self {
        Self::of(bench, everything(), merchants(count)).await
    }

    /// With what a job of that definition makes of these entries.
    pub async fn of(bench: &'a Bench, ledger: LedgerDefinition, entries: Vec<NewEntry>) -> Self {
        let leads = bench.lead(1).await;
        let job = bench.job(leads.as_ref(), definition("daily", HandlerDefinition::Ledger(ledger))).await;
        bench.import("adyen", entries).await;
        let run = bench.settled(leads.as_ref(), &job).await;
        Self { bench, leads, job, run }
    }

    /// The job's ledger is another one from now on.
    pub async fn edit(&mut self, ledger: LedgerDefinition) {
        let mut edit = change(&self.job);
        edit.definition = Some(definition("daily", HandlerDefinition::Ledger(ledger)));
        match mine(self.leads.change_job(edit).await) {
            JobChangeOutcome::Changed(Some(row)) => self.job = *row,
            other => panic!("the row is as it was read: {other:?}"),
        }
    }

    /// The leader dies and the next one recovers.
    pub async fn succeed(&mut self) -> Recovery {
        let next = Claim { election: self.leads.claim().election.clone(), ..claim(self.leads.claim().term.get() + 1) };
        self.leads = self.bench.lead_of(&next).await;
        mine(self.leads.recover().await)
    }

    /// What the job's receiver is said to be.
    pub fn terms(&self, idempotent: bool) -> PayoutTerms {
        terms(&self.job, idempotent)
    }

    /// The same, which can be asked.
    pub fn asks(&self, idempotent: bool) -> PayoutTerms {
        PayoutTerms { looks_up: true, ..self.terms(idempotent) }
    }

    /// Takes up to nine.
    pub async fn take(&self, terms: PayoutTerms) -> PayoutsTaken {
        self.take_as(order(terms)).await
    }

    pub async fn take_as(&self, order: PayoutTake) -> PayoutsTaken {
        mine(self.leads.take_payouts(&order).await)
    }

    /// Takes the one that is due.
    pub async fn take_one(&self, terms: PayoutTerms) -> Payout {
        let mut taken = self.take(terms).await.payouts;
        assert_eq!(taken.len(), 1, "one is due: {taken:#?}");
        taken.remove(0)
    }

    /// The same, once its wait is over; whatever is held instead is an error.
    pub async fn take_again(&self, terms: &PayoutTerms) -> Payout {
        eventually(WAITED, "one payout leaves", async || {
            let mut taken = self.take(terms.clone()).await;
            assert!(taken.payouts.len() < 2 && taken.held == 0, "one is due: {taken:#?}");
            taken.payouts.pop()
        })
        .await
    }

    /// Takes until the one that waits is held instead of leaving.
    pub async fn is_held_instead(&self, order: &PayoutTake) {
        eventually(WAITED, "one payout is held", async || {
            let taken = self.take_as(order.clone()).await;
            assert!(taken.payouts.is_empty() && taken.held < 2, "it may not leave: {taken:#?}");
            (taken.held == 1).then_some(())
        })
        .await;
    }

    /// Records what came of one; answers the state afterwards.
    pub async fn record(&self, payout: &Payout, fate: PayoutFate) -> Option<InstructionState> {
        let told = self.record_all(&records(vec![of(payout, fate)])).await;
        match told.states.as_slice() {
            [] => None,
            [(id, state)] if *id == payout.instruction => Some(*state),
            others => panic!("one was recorded: {others:?}"),
        }
    }

    pub async fn record_all(&self, records: &PayoutRecords) -> PayoutsRecorded {
        mine(self.leads.record_payouts(records).await)
    }

    /// Takes the one that is due and leaves it in doubt.
    pub async fn doubt_one(&self, terms: PayoutTerms) -> Payout {
        let payout = self.take_one(terms).await;
        assert_eq!(self.record(&payout, unknown(SOON)).await, Some(InstructionState::Unknown));
        payout
    }

    /// All payouts, in the order of ids.
    pub async fn payouts(&self) -> Vec<PayoutView> {
        self.listed(PayoutFilter::default()).await
    }

    pub async fn listed(&self, filter: PayoutFilter) -> Vec<PayoutView> {
        let filter = PayoutFilter { limit: filter.limit.max(1000), ..filter };
        self.bench.store.payouts(&filter).await.expect("an answer")
    }

    pub async fn view(&self, key: &str) -> PayoutView {
        let mut found = self.listed(PayoutFilter { key: Some(key.to_owned()), ..PayoutFilter::default() }).await;
        assert_eq!(found.len(), 1, "one payout {key}");
        found.remove(0)
    }

    pub async fn shown(&self, payout: &Payout) -> Shown {
        let view = self.view(&payout.idempotency_key).await;
        (view.state, view.reason, view.in_doubt)
    }

    /// What bursar still owes, per the audit, in EUR; a clean one.
    pub async fn open_money(&self) -> String {
        self.bench.audit_is_clean().await;
        let open = self.bench.store.audit().await.expect("an answer").open;
        open.get("EUR").cloned().unwrap_or_else(|| "0.00".to_owned())
    }

    /// Everything that the port shows of money and receivers.
    pub async fn picture(&self) -> String {
        let store = &self.bench.store;
        let (payouts, receivers) = (self.payouts().await, store.receivers().await.expect("an answer"));
        let holds = store.merchant_holds().await.expect("an answer");
        let parts: [&dyn Debug; 4] = [&self.bench.picture().await, &payouts, &receivers, &holds];
        format!("{parts:#?}")
    }
}

/// What a job's receiver is said to be.
pub fn terms(job: &JobRow, idempotent: bool) -> PayoutTerms {
    PayoutTerms {
        job: job.id,
        url: format!("{BANK}/payouts"),
        idempotent,
        looks_up: false,
        key_valid_for: Duration::from_hours(20),
        timeout: Duration::from_secs(10),
        maximum: BTreeMap::new(),
    }
}

/// A take for the receiver of these cases.
pub fn order(terms: PayoutTerms) -> PayoutTake {
    PayoutTake {
        origin: BANK.to_owned(),
        jobs: vec![terms],
        limit: 9,
        probe_waits: (Duration::from_hours(1), Duration::from_hours(3)),
        probe_now: false,
    }
}

/// The same, for another receiver.
pub fn elsewhere(terms: PayoutTerms) -> PayoutTake {
    PayoutTake { origin: "https://other.test".to_owned(), ..order(terms) }
}
