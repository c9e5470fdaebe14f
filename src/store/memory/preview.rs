//! What runs of a ledger job would take of what is open now.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::rows::Entry;
use super::state::MemoryState;
use crate::domain::JobName;
use crate::domain::entry::EntryKind;
use crate::domain::job::LedgerDefinition;
use crate::domain::money::Currency;
use crate::store::PreviewLine;
use crate::store::preview::Previewed;

impl MemoryState {
    /// By cutoff and currency.
    pub(super) fn preview(
        &self,
        job: &JobName,
        ledger: &LedgerDefinition,
        cutoffs: &[DateTime<Utc>],
    ) -> Vec<PreviewLine> {
        let job = self.jobs.values().find(|found| found.definition.name == *job).map(|found| found.id);
        let mut pairs: BTreeMap<(usize, &str, &str), (Currency, Vec<&Entry>)> = BTreeMap::new();
        for entry in self.entries.values().filter(|entry| self.may_take(entry, job, ledger)) {
            let cutoff = cutoffs.partition_point(|cutoff| *cutoff <= entry.new.available_at);
            if cutoff < cutoffs.len() {
                let key = (cutoff, entry.new.currency.code(), entry.new.merchant.as_str());
                pairs.entry(key).or_insert_with(|| (entry.new.currency, Vec::new())).1.push(entry);
            }
        }
        let mut found = Previewed::default();
        for ((cutoff, _, _), (currency, entries)) in pairs {
            let minimum = ledger.minimum_payout.get(&currency).copied().unwrap_or(0);
            if let [only] = entries.as_slice()
                && only.new.kind == EntryKind::Carry
                && only.new.amount < minimum
            {
                continue;
            }
            let sum = |of: fn(&Entry) -> i64| entries.iter().map(|entry| i128::from(of(entry))).sum::<i128>();
            let sums = (sum(|entry| entry.new.amount), sum(|entry| entry.new.fee));
            found.add(cutoff, currency, entries.len() as u64, sums, minimum);
        }
        found.lines()
    }

    /// Whether a run of the job may take an entry, cutoffs apart. What bursar wrote for a job is that job's alone, and so
    /// whatever the job selects by now.
    pub(super) fn may_take(&self, entry: &Entry, job: Option<i64>, ledger: &LedgerDefinition) -> bool {
        let is_selected = || {
            (ledger.sources.is_empty() || ledger.sources.contains(&entry.source))
                && (ledger.currencies.is_empty() || ledger.currencies.contains(&entry.new.currency))
                && (ledger.merchants.is_empty() || ledger.merchants.contains(&entry.new.merchant))
        };
        entry.is_open()
            && !self.holds.contains_key(&entry.new.merchant)
            && match entry.job_id {
                Some(of) => Some(of) == job,
                None => is_selected(),
            }
    }
}
