//! The ledger: which merchants a run has work for, and the effect of one batch. What is bound is netted by [`net`]; everything
//! is worked out before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::rows::{Entry, Instruction, Journal, JournalKind, Released, Unit};
use super::settle::{failed, none_is_held};
use super::state::{Done, MemoryState};
use crate::domain::Claim;
use crate::domain::entry::{EntryKind, NewEntry, OWN_SOURCE, unit_key};
use crate::domain::instruction::{InstructionKind, InstructionState};
use crate::domain::job::{LedgerDefinition, Release};
use crate::domain::money::Currency;
use crate::domain::netting::{BoundSums, Posting, Verdict, net};
use crate::domain::payout::PayoutBody;
use crate::domain::unit::UnitState;
use crate::store::{BatchCounts, BatchError, OpenRun, SettleOutcome, StoreError, UnitPick};

/// Why an instruction above the job's maximum is held.
const OVER_LIMIT: &str = "over_limit";

/// A unit with what it bound and what that comes to.
struct Netted<'a> {
    unit: &'a Unit,
    currency: Currency,
    merchant: &'a str,
    bound: Vec<i64>,
    latest: Option<DateTime<Utc>>,
    verdict: Verdict,
}

impl MemoryState {
    /// The open entries that a run may bind; none of a merchant on hold.
    fn open_entries<'a>(
        &'a self,
        run: &'a OpenRun,
        definition: &'a LedgerDefinition,
    ) -> impl Iterator<Item = &'a Entry> {
        self.entries.values().filter(move |entry| {
            entry.new.available_at < run.cutoff_at && self.may_take(entry, Some(run.job_id), definition)
        })
    }

    /// The (currency, merchant) pairs that a run has work for, in byte order of their keys.
    pub(super) fn pairs(
        &self,
        run: &OpenRun,
        definition: &LedgerDefinition,
    ) -> Vec<(String, Option<(Currency, String)>)> {
        let mut open: BTreeMap<(&str, &str), Vec<&Entry>> = BTreeMap::new();
        for entry in self.open_entries(run, definition) {
            open.entry((entry.new.currency.code(), entry.new.merchant.as_str())).or_default().push(entry);
        }
        let has_work = |entries: &[&Entry]| match entries {
            // It would only be carried once more.
            [carry] if carry.new.kind == EntryKind::Carry => {
                carry.new.amount >= definition.minimum_payout.get(&carry.new.currency).copied().unwrap_or(0)
            }
            _ => true,
        };
        open.into_values()
            .filter(|entries| has_work(entries))
            .filter_map(|entries| entries.first().map(|entry| (entry.new.currency, entry.new.merchant.clone())))
            .map(|(currency, merchant)| (unit_key(currency, &merchant), Some((currency, merchant))))
            .collect()
    }

    /// Binds, nets and records one batch.
    pub(super) fn settle_ledger(
        &mut self,
        claim: &Claim,
        run: &OpenRun,
        pick: &UnitPick,
        definition: &LedgerDefinition,
        held: &BTreeSet<i64>,
        now: DateTime<Utc>,
    ) -> Result<Done<SettleOutcome>, StoreError> {
        let units = self.picked(claim, run.id, pick, held, now);
        none_is_held(held, &units)?;
        let Some(last) = units.last() else { return Ok(Done::RollBack(SettleOutcome::Nothing)) };
        let mut counts = BatchCounts { last_unit: last.id, taken: units.len() as u64, ..BatchCounts::default() };
        let mut netted = Vec::with_capacity(units.len());
        for unit in &units {
            let one = match self.net_unit(run, definition, unit) {
                Ok(one) => one,
                Err(error) => return Ok(failed(&units, error)),
            };
            match &one.verdict {
                Verdict::Empty => counts.empty += 1,
                Verdict::Carried { .. } => counts.carried += 1,
                Verdict::Settled { net, .. } => {
                    counts.settled += 1;
                    counts.instructions += u64::from(*net > 0);
                }
                Verdict::OutOfRange => return Ok(failed(&units, out_of_range())),
            }
            netted.push(one);
        }
        let batch = self.add_batch(claim, run.id, &counts, now);
        for one in netted {
            self.write(claim, run, definition, batch, &one, now);
        }
        Ok(Done::Commit(SettleOutcome::Settled(BatchCounts { batch, ..counts })))
    }

    /// What a unit binds, and what that comes to.
    fn net_unit<'a>(
        &self,
        run: &OpenRun,
        definition: &LedgerDefinition,
        unit: &'a Unit,
    ) -> Result<Netted<'a>, BatchError> {
        let Some((currency, merchant)) = &unit.ledger else {
            let message = "the unit has no merchant and currency: it is none of the ledger's".to_owned();
            return Err(BatchError { message, permanent: true });
        };
        let (mut sums, mut bound, mut latest) = (BoundSums::default(), Vec::new(), None::<DateTime<Utc>>);
        let mut amounts: BTreeMap<&str, i128> = BTreeMap::new();
        let mine = |entry: &&Entry| entry.new.currency == *currency && entry.new.merchant == *merchant;
        for entry in self.open_entries(run, definition).filter(mine) {
            bound.push(entry.id);
            sums.entries += 1;
            sums.fees += i128::from(entry.new.fee);
            latest = latest.max(Some(entry.new.available_at));
            match entry.new.kind {
                EntryKind::Carry => sums.carried_in += i128::from(entry.new.amount),
                EntryKind::Capture
                | EntryKind::Refund
                | EntryKind::Chargeback
                | EntryKind::ChargebackReversal
                | EntryKind::Fee
                | EntryKind::Adjustment => *amounts.entry(&entry.source).or_default() += i128::from(entry.new.amount),
            }
        }
        sums.amounts = amounts.into_iter().map(|(source, amount)| (source.to_owned(), amount)).collect();
        let minimum = definition.minimum_payout.get(currency).copied().unwrap_or(0);
        let verdict = net(&run.definition.name, merchant, *currency, &sums, minimum);
        Ok(Netted { unit, currency: *currency, merchant, bound, latest, verdict })
    }

    /// Writes all that follows from one unit.
    fn write(
        &mut self,
        claim: &Claim,
        run: &OpenRun,
        definition: &LedgerDefinition,
        batch: i64,
        one: &Netted<'_>,
        now: DateTime<Utc>,
    ) {
        let bound: BTreeSet<i64> = one.bound.iter().copied().collect();
        for entry in self.entries.values_mut().filter(|entry| bound.contains(&entry.id)) {
            entry.unit_id = Some(one.unit.id);
        }
        let state = one.verdict.state();
        let (net, postings) = match &one.verdict {
            Verdict::Settled { net, postings } | Verdict::Carried { net, postings } => (Some(*net), postings.clone()),
            Verdict::Empty | Verdict::OutOfRange => (None, Vec::new()),
        };
        let (xact, term) = (self.xact(), claim.term.get());
        if let Some(unit) = self.units.get_mut(&one.unit.id) {
            unit.net = net;
            unit.end(state, Some(batch), term, xact, now);
        }
        let Some(net) = net else { return };
        self.post(claim, one.unit, one.currency, postings);
        if state == UnitState::Carried {
            self.carry(run, one, net, now);
        } else if net > 0 {
            self.instruct(claim, run, definition, one, net, now);
        }
    }

    fn post(&mut self, claim: &Claim, unit: &Unit, currency: Currency, postings: Vec<Posting>) {
        let xact = self.xact();
        self.journals.push(Journal {
            unit_id: unit.id,
            generation: unit.generation,
            kind: JournalKind::Settle,
            election: claim.election.clone(),
            term: claim.term.get(),
            currency,
            postings,
            xact,
        });
    }

    fn carry(&mut self, run: &OpenRun, one: &Netted<'_>, net: i64, now: DateTime<Utc>) {
        let new = NewEntry {
            id: format!("carry:{}:{}", one.unit.id, one.unit.generation),
            merchant: one.merchant.to_owned(),
            currency: one.currency,
            kind: EntryKind::Carry,
            amount: net,
            fee: 0,
            occurred_at: now,
            available_at: one.latest.unwrap_or(run.cutoff_at),
            reference: None,
        };
        self.add_entry(OWN_SOURCE, new, None, Some(run.job_id));
    }

    /// Adds an entry.
    pub(super) fn add_entry(&mut self, source: &str, new: NewEntry, import_id: Option<i64>, job_id: Option<i64>) {
        let id = self.next_id();
        let source = source.to_owned();
        let entry = Entry { id, source, new, import_id, job_id, unit_id: None, withdrawn_at: None, reverted_at: None };
        self.entries.insert(id, entry);
    }

    fn instruct(
        &mut self,
        claim: &Claim,
        run: &OpenRun,
        definition: &LedgerDefinition,
        one: &Netted<'_>,
        net: i64,
        now: DateTime<Utc>,
    ) {
        let over = definition.maximum_payout.get(&one.currency).is_some_and(|maximum| net > *maximum);
        let written = self.instruction(claim, run, one.unit, InstructionKind::Payout, now);
        let parts = self.key_parts(run, one.unit);
        let body = PayoutBody::new(&written.key, one.merchant, one.currency, net, &parts, run.value_date);
        let payout = Instruction {
            body: body.to_bytes(),
            payout: Some((one.merchant.to_owned(), one.currency, net)),
            state: if over { InstructionState::Held } else { InstructionState::Pending },
            reason: over.then_some(OVER_LIMIT),
            release: match definition.release {
                Release::Auto => Released::Auto,
                Release::Manual => Released::Waiting,
            },
            ..written
        };
        self.instructions.insert(payout.id, payout);
    }
}

fn out_of_range() -> BatchError {
    let message = "the sums of the unit leave the range of 64-bit minor units: nothing is settled".to_owned();
    BatchError { message, permanent: true }
}
