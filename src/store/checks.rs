//! The audit's checks: what each proves, in a sentence, so that every adapter makes the same ones; and what is derived anew
//! outside of any database.
//!
//! Invariant: an adapter names its statement for a check in an exhaustive `match`, so that none is forgotten.
//!
//! Deliberately absent: how a check looks, which is each database's own.

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use super::AuditCheck;
use crate::domain::JobName;
use crate::domain::money::Currency;
use crate::domain::payout::{KeyParts, PayoutBody, idempotency_key};
use crate::domain::run::RunKind;

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    OneTenurePerTerm,
    FenceIsHighest,
    NoStaleWrite,
    SettledHasItsEffect,
    UnendedHasNoEffect,
    CarriedHasItsCarry,
    EntriesHaveOneHome,
    NetsFollowFromEntries,
    KeysAreUnique,
    SendingIsCurrent,
    DoubtIsKept,
    OneRunPerTick,
    RunIsNotEarly,
    HaltedDoesNothing,
    JournalsBalance,
    PayableIsZero,
    CarryEqualsOpenCarries,
    FinalsArePosted,
    PayoutClearingEqualsUnfinal,
    /// Derived row by row with [`Instructed::differs`].
    KeysAreDerived,
    MerchantsAddUp,
    RevertsAreWhole,
}

impl Check {
    /// All checks, in the order of reports.
    pub(super) const ALL: [Self; 22] = [
        Self::OneTenurePerTerm,
        Self::FenceIsHighest,
        Self::NoStaleWrite,
        Self::SettledHasItsEffect,
        Self::UnendedHasNoEffect,
        Self::CarriedHasItsCarry,
        Self::EntriesHaveOneHome,
        Self::NetsFollowFromEntries,
        Self::KeysAreUnique,
        Self::SendingIsCurrent,
        Self::DoubtIsKept,
        Self::OneRunPerTick,
        Self::RunIsNotEarly,
        Self::HaltedDoesNothing,
        Self::JournalsBalance,
        Self::PayableIsZero,
        Self::CarryEqualsOpenCarries,
        Self::FinalsArePosted,
        Self::PayoutClearingEqualsUnfinal,
        Self::KeysAreDerived,
        Self::MerchantsAddUp,
        Self::RevertsAreWhole,
    ];

    /// The guarantee that it looks after.
    const fn guarantee(self) -> &'static str {
        match self {
            Self::OneTenurePerTerm | Self::FenceIsHighest => "S1",
            Self::NoStaleWrite => "S2",
            Self::SettledHasItsEffect
            | Self::UnendedHasNoEffect
            | Self::CarriedHasItsCarry
            | Self::EntriesHaveOneHome
            | Self::NetsFollowFromEntries => "S3",
            Self::KeysAreUnique | Self::SendingIsCurrent | Self::DoubtIsKept | Self::KeysAreDerived => "S4",
            Self::OneRunPerTick | Self::RunIsNotEarly => "S5",
            Self::HaltedDoesNothing => "S6",
            Self::JournalsBalance
            | Self::PayableIsZero
            | Self::CarryEqualsOpenCarries
            | Self::FinalsArePosted
            | Self::PayoutClearingEqualsUnfinal
            | Self::MerchantsAddUp
            | Self::RevertsAreWhole => "money",
        }
    }

    /// A name for machines.
    const fn name(self) -> &'static str {
        match self {
            Self::OneTenurePerTerm => "one_tenure_per_term",
            Self::FenceIsHighest => "fence_is_highest",
            Self::NoStaleWrite => "no_stale_write",
            Self::SettledHasItsEffect => "settled_has_its_effect",
            Self::UnendedHasNoEffect => "unended_has_no_effect",
            Self::CarriedHasItsCarry => "carried_has_its_carry",
            Self::EntriesHaveOneHome => "entries_have_one_home",
            Self::NetsFollowFromEntries => "nets_follow_from_entries",
            Self::KeysAreUnique => "keys_are_unique",
            Self::SendingIsCurrent => "sending_is_current",
            Self::DoubtIsKept => "doubt_is_kept",
            Self::OneRunPerTick => "one_run_per_tick",
            Self::RunIsNotEarly => "run_is_not_early",
            Self::HaltedDoesNothing => "halted_does_nothing",
            Self::JournalsBalance => "journals_balance",
            Self::PayableIsZero => "payable_is_zero",
            Self::CarryEqualsOpenCarries => "carry_equals_open_carries",
            Self::FinalsArePosted => "finals_are_posted",
            Self::PayoutClearingEqualsUnfinal => "payout_clearing_equals_unfinal",
            Self::KeysAreDerived => "keys_are_derived",
            Self::MerchantsAddUp => "merchants_add_up",
            Self::RevertsAreWhole => "reverts_are_whole",
        }
    }

    /// A sentence for people.
    const fn meaning(self) -> &'static str {
        match self {
            Self::OneTenurePerTerm => "Every term of an election was accepted from one tenure only.",
            Self::FenceIsHighest => "The fence of every election stands at the highest claim that was ever accepted.",
            Self::NoStaleWrite => {
                "Whatever a lower term wrote to runs, batches, journals and instructions was there, committed, when a higher one was accepted."
            }
            Self::SettledHasItsEffect => {
                "Every settled unit has one journal and, where its net is above 0, one payout of exactly that; a called one's call is done."
            }
            Self::UnendedHasNoEffect => {
                "No unit that is pending or set aside has a journal, a payout or a call that is done."
            }
            Self::CarriedHasItsCarry => {
                "Every carried unit has exactly one carry of its net, for its job, and every carry of a run its unit."
            }
            Self::EntriesHaveOneHome => {
                "Every entry is open, withdrawn, or bound to one unit of its merchant and currency that ended settled or carried."
            }
            Self::NetsFollowFromEntries => {
                "The net and the postings of every unit are what the entries that it bound come to, summed anew."
            }
            Self::KeysAreUnique => {
                "No idempotency key stands twice, and no unit has two instructions of a kind and generation."
            }
            Self::SendingIsCurrent => "What is on the wire is there under the term in force.",
            Self::DoubtIsKept => {
                "A try whose outcome is unknown is never forgotten: such an instruction is neither rejected nor, unless it is idempotent, sent again."
            }
            Self::OneRunPerTick => {
                "Every job has one scheduled run per tick, every request one run per tick, every run one unit per key."
            }
            Self::RunIsNotEarly => {
                "No scheduled run was opened before its due time, and none ended with units pending."
            }
            Self::HaltedDoesNothing => {
                "No run was opened, no batch settled and no call first sent between an operator's halt and the resume after it, by the store's clock. \
                 Calls that had left before may be recorded; a halt by bursar itself is no operator's act and is not looked at."
            }
            Self::JournalsBalance => {
                "Every journal of a settled unit moves the unit's net from its merchant to payout clearing, in its one currency, and \
                 touches no other merchant's accounts."
            }
            Self::PayableIsZero => "Nothing is left payable to any merchant after any journal.",
            Self::CarryEqualsOpenCarries => {
                "What each job carries for each merchant is the sum of its open carry entries."
            }
            Self::FinalsArePosted => {
                "Every payout that is paid, rejected or returned has the postings and the carry that its state says, no other one has any."
            }
            Self::PayoutClearingEqualsUnfinal => {
                "What is in payout clearing is the sum of the payouts that are not final."
            }
            Self::KeysAreDerived => {
                "Every idempotency key is the one of its unit, and every payout's bytes say what was settled: both derived anew."
            }
            Self::MerchantsAddUp => "For every merchant and currency, imported = fees + paid + in flight + open.",
            Self::RevertsAreWhole => {
                "Every entry that is withdrawn or reverted is of an import that an operator took back, of such an import none stands, and \
                 what was settled of it has its opposite, for the job that settled it."
            }
        }
    }

    /// What was found, as the report has it.
    pub(super) fn found(self, violations: u64, examples: Vec<String>, not_proven: Option<String>) -> AuditCheck {
        tracing::debug!(check = self.name(), violations, "audit");
        AuditCheck {
            guarantee: self.guarantee().to_owned(),
            name: self.name().to_owned(),
            meaning: self.meaning().to_owned(),
            violations,
            examples,
            not_proven,
        }
    }
}

/// An instruction with what its key and its bytes are derived from.
#[derive(Debug)]
pub(super) struct Instructed<'a> {
    pub(super) id: i64,
    /// The key as it stands.
    pub(super) key: &'a str,
    pub(super) deployment: Uuid,
    pub(super) job: JobName,
    pub(super) run_kind: RunKind,
    pub(super) tick: DateTime<Utc>,
    pub(super) request_id: Option<Uuid>,
    pub(super) unit_key: &'a str,
    pub(super) generation: u32,
    /// Of a payout; a call's bytes are its handler's own.
    pub(super) payout: Option<Paid<'a>>,
}

/// What the bytes of a payout say, and the bytes as they stand.
#[derive(Debug)]
pub(super) struct Paid<'a> {
    pub(super) merchant: &'a str,
    pub(super) currency: Currency,
    pub(super) amount: i64,
    pub(super) value_date: Option<NaiveDate>,
    pub(super) body: &'a [u8],
}

impl Instructed<'_> {
    /// What of it is not as its unit, run and amount say.
    pub(super) fn differs(&self) -> Option<String> {
        let Self { id, key: found, .. } = self;
        let parts = KeyParts {
            deployment_id: self.deployment,
            job: &self.job,
            kind: self.run_kind,
            tick: self.tick,
            request_id: self.request_id,
            unit_key: self.unit_key,
            generation: self.generation,
        };
        let key = idempotency_key(&parts);
        if key != *found {
            return Some(format!("instruction {id} of unit {} has key {found}, its parts give {key}", self.unit_key));
        }
        let paid = self.payout.as_ref()?;
        let Some(value_date) = paid.value_date else {
            return Some(format!("instruction {id} ({key}) is a payout without a value date"));
        };
        let body = PayoutBody::new(&key, paid.merchant, paid.currency, paid.amount, &parts, value_date);
        (body.to_bytes() != paid.body)
            .then(|| format!("instruction {id} ({key}) has other bytes than it was settled with"))
    }
}
