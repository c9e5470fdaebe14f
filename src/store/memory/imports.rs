//! Entries in and out again: all or nothing, a no-op the second time, taken back without a trace in the sums.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::approvals::Eyes;
use super::fence::Act;
use super::rows::{Entry, Import};
use super::state::{Done, MemoryState};
use super::views::major;
use crate::domain::entry::{EntryKind, NewEntry, OWN_SOURCE};
use crate::domain::money::Currency;
use crate::store::{
    Actor, CONFLICTS_SHOWN, GuardedAct, ImportConflict, ImportOutcome, ImportRecord, ImportView, NewImport,
    RevertOutcome, StoreError,
};

impl MemoryState {
    /// Whether any entry of a merchant has ever come in.
    pub(super) fn is_merchant_known(&self, merchant: &str) -> bool {
        self.entries.values().any(|entry| entry.new.merchant == merchant)
    }

    /// Imports a file.
    pub(super) fn import(
        &mut self,
        import: &NewImport,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> Result<Done<ImportOutcome>, StoreError> {
        refuse_own(import)?;
        let mut rows: Vec<&(u64, NewEntry)> = import.entries.iter().collect();
        rows.sort_by(|one, other| one.1.id.as_bytes().cmp(other.1.id.as_bytes()));
        let standing: BTreeMap<&str, &Entry> = self
            .entries
            .values()
            .filter(|entry| entry.source == import.source && entry.stands())
            .map(|entry| (entry.new.id.as_str(), entry))
            .collect();
        let mut added: BTreeMap<&str, &NewEntry> = BTreeMap::new();
        let (mut known, mut conflicts) = (0, Vec::new());
        for (line, offered) in rows {
            let found = match (standing.get(offered.id.as_str()), added.get(offered.id.as_str())) {
                (Some(there), _) => Some((&there.new, there.import_id.unwrap_or(0))),
                (None, Some(twice)) => Some((*twice, 0)),
                (None, None) => None,
            };
            match found {
                None => {
                    added.insert(&offered.id, offered);
                }
                Some((found, _)) if found == offered => known += 1,
                Some((found, import)) => conflicts.push(ImportConflict {
                    line: *line,
                    offered: offered.clone(),
                    found: found.clone(),
                    import,
                }),
            }
        }
        if !conflicts.is_empty() {
            let total = conflicts.len() as u64;
            conflicts.sort_by_key(|conflict| conflict.line);
            conflicts.truncate(CONFLICTS_SHOWN);
            return Ok(Done::RollBack(ImportOutcome::Conflicts { shown: conflicts, total }));
        }
        if added.is_empty() {
            let same = |found: &&Import| found.record.source == import.source && found.record.sha256 == import.sha256;
            let same_file = self.imports.values().filter(same).map(|found| found.record.id).max();
            return Ok(Done::RollBack(ImportOutcome::NothingNew { same_file, known }));
        }
        let added: Vec<NewEntry> = added.into_values().cloned().collect();
        let record = self.write_import(import, added, actor, now);
        Ok(Done::Commit(ImportOutcome::Imported { import: record, known }))
    }

    fn write_import(
        &mut self,
        import: &NewImport,
        added: Vec<NewEntry>,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> ImportRecord {
        let target = import.file_name.clone();
        let act = Act { action: "import", target, reason: None, election: None, already: false, baseline: None };
        self.act(actor, act, now);
        let mut sums: BTreeMap<Currency, i128> = BTreeMap::new();
        for entry in &added {
            *sums.entry(entry.currency).or_default() += i128::from(entry.amount);
        }
        let id = self.next_id();
        let record = ImportRecord {
            id,
            source: import.source.clone(),
            file_name: import.file_name.clone(),
            sha256: import.sha256.clone(),
            rows: added.len() as u64,
            sums: sums.into_iter().map(|(currency, sum)| (currency.code().to_owned(), major(currency, sum))).collect(),
            by: format!("{}@{}", actor.user, actor.host),
            at: now,
            reverted_at: None,
            revert_reason: None,
        };
        self.imports.insert(id, Import { record: record.clone() });
        for entry in added {
            self.add_entry(&import.source, entry, Some(id), None);
        }
        record
    }

    /// Newest first.
    pub(super) fn import_records(&self, limit: usize) -> Vec<ImportRecord> {
        self.imports.values().rev().take(limit).map(|import| import.record.clone()).collect()
    }

    pub(super) fn import_view(&self, import: i64) -> Option<ImportView> {
        let record = self.imports.get(&import)?.record.clone();
        let count = |which: fn(&Entry) -> bool| {
            self.entries.values().filter(|entry| entry.import_id == Some(import) && which(entry)).count() as u64
        };
        Some(ImportView {
            record,
            open: count(Entry::is_open),
            settled: count(|entry| entry.unit_id.is_some() && entry.reverted_at.is_none()),
            withdrawn: count(|entry| entry.withdrawn_at.is_some()),
            reverted: count(|entry| entry.reverted_at.is_some()),
        })
    }

    /// What is open is withdrawn, what is settled gets its opposite, for the job that settled it.
    pub(super) fn revert_import(
        &mut self,
        import: i64,
        reason: &str,
        actor: &Actor,
        eyes: Eyes<'_>,
        now: DateTime<Utc>,
    ) -> Done<RevertOutcome> {
        match self.imports.get(&import).map(|import| import.record.reverted_at) {
            None => return Done::RollBack(RevertOutcome::NotFound),
            Some(Some(at)) => return Done::RollBack(RevertOutcome::Already { at }),
            Some(None) => {}
        }
        if let Some(request) = self.waits(eyes, &GuardedAct::RevertImport { import }, reason, actor, now) {
            return Done::Commit(RevertOutcome::Waits { request });
        }
        let Some(record) = self.imports.get_mut(&import).map(|import| &mut import.record) else {
            return Done::RollBack(RevertOutcome::NotFound);
        };
        (record.reverted_at, record.revert_reason) = (Some(now), Some(reason.to_owned()));
        let (mut withdrawn, mut opposite) = (0, Vec::new());
        let units = &self.units;
        let runs = &self.runs;
        for entry in self.entries.values_mut().filter(|entry| entry.import_id == Some(import) && entry.stands()) {
            let Some(unit) = entry.unit_id else {
                entry.withdrawn_at = Some(now);
                withdrawn += 1;
                continue;
            };
            entry.reverted_at = Some(now);
            let job = units.get(&unit).and_then(|unit| runs.get(&unit.run_id)).map(|run| run.job_id);
            let new = NewEntry {
                id: format!("revert:{import}:{}", entry.id),
                kind: EntryKind::Adjustment,
                amount: -entry.new.amount,
                fee: -entry.new.fee,
                occurred_at: now,
                available_at: now,
                reference: Some(format!("{}/{}", entry.source, entry.new.id)),
                ..entry.new.clone()
            };
            opposite.push((new, job));
        }
        let adjusted = opposite.len() as u64;
        for (new, job) in opposite {
            self.add_entry(OWN_SOURCE, new, None, job);
        }
        let (action, target) = ("imports revert", import.to_string());
        let act = Act { action, target, reason: Some(reason), election: None, already: false, baseline: None };
        self.act(actor, act, now);
        Done::Commit(RevertOutcome::Reverted { withdrawn, adjusted })
    }
}

/// Refuses what bursar alone writes, and what the other stores' constraints do.
fn refuse_own(import: &NewImport) -> Result<(), StoreError> {
    let broken = |detail: String| Err(StoreError::Broken { operation: "import", detail });
    if import.source == OWN_SOURCE {
        return broken(format!("the source {OWN_SOURCE:?} is bursar's own: name the source that the file came from"));
    }
    for (line, entry) in &import.entries {
        if entry.kind == EntryKind::Carry {
            return broken(format!("line {line}: a carry is written by bursar only"));
        }
        if let Err(wrong) = entry.kind.check(entry.amount, entry.fee) {
            return broken(format!("line {line}: {wrong}"));
        }
    }
    Ok(())
}
