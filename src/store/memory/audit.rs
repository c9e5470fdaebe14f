//! The audit: the content against the guarantees, as a pure function that a simulator asks after every event. It takes nothing
//! from the code that wrote what it looks at; the checks have the names that the other stores give them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use chrono::{DateTime, Utc};

use super::state::MemoryState;
use super::views::major;
use crate::domain::ElectionName;
use crate::domain::instruction::{InstructionKind, InstructionState};
use crate::domain::money::Currency;
use crate::domain::payout::{KeyParts, PayoutBody, idempotency_key};
use crate::domain::run::RunKind;
use crate::domain::unit::UnitState;
use crate::store::{AuditCheck, AuditReport, EXAMPLES_SHOWN};

/// What one check finds: a line per violation.
pub(super) type Violations = Vec<String>;

type Check = (&'static str, &'static str, &'static str, fn(&MemoryState) -> Violations);

const CHECKS: &[Check] = &[
    ("S1", "one_tenure_per_term", "Every term was accepted from one tenure only.", MemoryState::one_tenure_per_term),
    ("S1", "fence_is_highest", "Every fence stands at the highest accepted claim.", MemoryState::fence_is_highest),
    (
        "S2",
        "no_stale_write",
        "What a term wrote was there when a higher one was accepted.",
        MemoryState::no_stale_write,
    ),
    (
        "S3",
        "settled_has_its_effect",
        "Settled units have exactly the effect of their net.",
        MemoryState::settled_has_its_effect,
    ),
    ("S3", "unended_has_no_effect", "Pending and set aside units have no effect.", MemoryState::unended_has_no_effect),
    (
        "S3",
        "carried_has_its_carry",
        "Carried units have one carry of their net, and no payout.",
        MemoryState::carried_has_its_carry,
    ),
    (
        "S3",
        "entries_have_one_home",
        "Entries are open, withdrawn, or in one unit of theirs.",
        MemoryState::entries_have_one_home,
    ),
    (
        "S3",
        "nets_follow_from_entries",
        "Nets and postings are what the entries come to.",
        MemoryState::nets_follow_from_entries,
    ),
    (
        "S4",
        "keys_are_unique",
        "No key stands twice, no unit has two instructions of a kind.",
        MemoryState::keys_are_unique,
    ),
    (
        "S4",
        "sending_is_current",
        "What is on the wire is there under the term in force.",
        MemoryState::sending_is_current,
    ),
    ("S4", "doubt_is_kept", "A try whose outcome is unknown is never forgotten.", MemoryState::doubt_is_kept),
    ("S4", "keys_are_derived", "Keys and bytes are what they are derived from.", MemoryState::keys_are_derived),
    (
        "S5",
        "one_run_per_tick",
        "Every job has one run per tick, every run one unit per key.",
        MemoryState::one_run_per_tick,
    ),
    (
        "S5",
        "run_is_not_early",
        "No run was opened early, none ended with units pending.",
        MemoryState::run_is_not_early,
    ),
    (
        "S6",
        "halted_does_nothing",
        "Nothing was opened, settled or first sent while halted.",
        MemoryState::halted_does_nothing,
    ),
    ("money", "payable_is_zero", "Nothing is left payable after any journal.", MemoryState::payable_is_zero),
    (
        "money",
        "carry_equals_open_carries",
        "Carry accounts are the open carries.",
        MemoryState::carry_equals_open_carries,
    ),
    (
        "money",
        "finals_are_posted",
        "Every end of a payout has its posting and its carry.",
        MemoryState::finals_are_posted,
    ),
    (
        "money",
        "payout_clearing_equals_unfinal",
        "Payout clearing is the payouts that are not final.",
        MemoryState::payout_clearing_equals_unfinal,
    ),
    ("money", "merchants_add_up", "Imported = fees + paid + in flight + open.", MemoryState::merchants_add_up),
    (
        "money",
        "reverts_are_whole",
        "What is withdrawn or reverted is of an import that an operator took back, all of it.",
        MemoryState::reverts_are_whole,
    ),
];

/// Values that stand more than once.
fn twice<T: Ord + Debug>(values: impl Iterator<Item = T>, what: &str) -> Violations {
    let mut counts: BTreeMap<T, u64> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let more = counts.into_iter().filter(|(_, count)| *count > 1);
    more.map(|(value, count)| format!("{what} {value:?} stands {count} times")).collect()
}

/// An operator's halt: of which election, from when, and until when where it is over.
type HaltSpan<'a> = (&'a ElectionName, DateTime<Utc>, Option<DateTime<Utc>>);

impl MemoryState {
    /// Checks the content against the guarantees.
    #[must_use]
    pub fn audit(&self, now: DateTime<Utc>) -> AuditReport {
        let most = usize::try_from(EXAMPLES_SHOWN).unwrap_or(0);
        let mut open: BTreeMap<Currency, i128> = BTreeMap::new();
        for entry in self.entries.values().filter(|entry| entry.is_open()) {
            *open.entry(entry.new.currency).or_default() += i128::from(entry.new.amount) - i128::from(entry.new.fee);
        }
        let checks = CHECKS.iter().map(|(guarantee, name, meaning, check)| {
            let mut examples = check(self);
            let violations = examples.len() as u64;
            examples.truncate(most);
            AuditCheck {
                guarantee: (*guarantee).to_owned(),
                name: (*name).to_owned(),
                meaning: (*meaning).to_owned(),
                violations,
                examples,
                not_proven: None,
            }
        });
        let open = open.into_iter().map(|(currency, sum)| (currency.code().to_owned(), major(currency, sum))).collect();
        AuditReport { at: now, checks: checks.collect(), open }
    }

    fn one_tenure_per_term(&self) -> Violations {
        let terms: BTreeSet<_> =
            self.terms.iter().map(|row| (&row.view.election, row.view.term, row.view.tenure_id)).collect();
        twice(terms.into_iter().map(|(election, term, _)| (election.as_str(), term)), "term")
    }

    fn fence_is_highest(&self) -> Violations {
        let mut bad = Vec::new();
        for (election, fence) in &self.fences {
            let mine = self.terms.iter().filter(|row| row.view.election == *election);
            let highest = mine.max_by_key(|row| row.view.term).map(|row| (row.view.term, row.view.tenure_id));
            let found = (fence.holder.term.get(), fence.holder.tenure_id.0);
            if highest != Some(found) && !(highest.is_none() && found.0 == 0) {
                bad.push(format!("{election}: the fence is at {found:?}, the highest accepted is {highest:?}"));
            }
        }
        bad
    }

    /// Every row that names a term, with when it was written.
    fn written(&self) -> impl Iterator<Item = (String, &ElectionName, i64, u64)> {
        let runs = self.runs.values().map(|r| (format!("run {}", r.id), &r.election, r.opened_term, r.xact));
        let batches = self.batches.iter().map(|b| (format!("batch {}", b.id), &b.election, b.term, b.xact));
        let journals = self.journals.iter().map(|j| (format!("journal of {}", j.unit_id), &j.election, j.term, j.xact));
        let instructions =
            self.instructions.values().map(|i| (format!("instruction {}", i.id), &i.election, i.term, i.xact));
        let units = self
            .units
            .values()
            .filter_map(|u| u.term.zip(u.xact).map(|(term, xact)| (format!("unit {}", u.id), &u.election, term, xact)));
        runs.chain(batches).chain(journals).chain(instructions).chain(units)
    }

    fn no_stale_write(&self) -> Violations {
        self.written()
            .filter(|(_, election, term, xact)| {
                let higher = |row: &&super::rows::TermRow| row.view.election == **election && row.view.term > *term;
                self.terms.iter().filter(higher).any(|row| *xact > row.snapshot)
            })
            .map(|(what, election, term, _)| format!("{what} of {election} was written under the dead term {term}"))
            .collect()
    }

    fn keys_are_unique(&self) -> Violations {
        let mut bad = twice(self.instructions.values().map(|found| &found.key), "key");
        let per_unit = self.instructions.values().map(|found| (found.unit_id, found.kind.as_str(), found.generation));
        bad.extend(twice(per_unit, "instruction of unit"));
        bad
    }

    fn sending_is_current(&self) -> Violations {
        self.instructions
            .values()
            .filter(|found| found.state == InstructionState::Sending)
            .filter(|found| found.sending_term != self.fences.get(&found.election).map(|fence| fence.holder.term.get()))
            .map(|found| format!("instruction {} is sending under term {:?}", found.key, found.sending_term))
            .collect()
    }

    fn keys_are_derived(&self) -> Violations {
        let mut bad = Vec::new();
        for found in self.instructions.values() {
            let Some((unit, run)) = self.units.get(&found.unit_id).zip(self.runs.get(&found.run_id)) else {
                bad.push(format!("instruction {} has no unit or run", found.key));
                continue;
            };
            let parts = KeyParts {
                deployment_id: self.deployment,
                job: &run.job,
                kind: run.kind,
                tick: run.tick,
                request_id: run.request_id,
                unit_key: &unit.key,
                generation: found.generation,
            };
            let key = idempotency_key(&parts);
            let body = found.payout.as_ref().map(|(merchant, currency, amount)| {
                PayoutBody::new(&key, merchant, *currency, *amount, &parts, found.value_date).to_bytes()
            });
            if key != found.key || body.is_some_and(|body| body != found.body) {
                bad.push(format!("instruction {} is not what its unit and run give", found.key));
            }
        }
        bad
    }

    fn one_run_per_tick(&self) -> Violations {
        let ticks = self.runs.values().filter(|run| run.kind == RunKind::Tick).map(|run| (run.job_id, run.tick));
        let mut bad = twice(ticks, "run of job and tick");
        bad.extend(twice(
            self.runs.values().filter_map(|run| run.request_id.map(|id| (id, run.tick))),
            "run of request",
        ));
        bad.extend(twice(self.units.values().map(|unit| (unit.run_id, &unit.key)), "unit of run"));
        bad
    }

    fn run_is_not_early(&self) -> Violations {
        self.runs
            .values()
            .filter(|run| {
                let early = run.kind == RunKind::Tick && run.opened_at < run.due_at;
                let left = || self.units_of(run.id).any(|unit| unit.state == UnitState::Pending);
                early || (!run.state.is_open() && left())
            })
            .map(|run| format!("run {} of {} was early, or ended with units pending", run.id, run.job))
            .collect()
    }

    /// The spans in which an operator's halt stood.
    fn halts(&self) -> Vec<HaltSpan<'_>> {
        let mut halts: Vec<HaltSpan<'_>> = Vec::new();
        for act in self.acts.iter().filter(|act| !act.already) {
            let Some(election) = &act.election else { continue };
            match act.view.action.as_str() {
                "halt" => halts.push((election, act.view.at, None)),
                "resume" => {
                    for halt in halts.iter_mut().filter(|halt| halt.0 == election && halt.2.is_none()) {
                        halt.2 = Some(act.view.at);
                    }
                }
                _ => {}
            }
        }
        halts
    }

    fn halted_does_nothing(&self) -> Violations {
        let calls: BTreeSet<i64> = self
            .instructions
            .values()
            .filter(|found| found.kind == InstructionKind::Call)
            .map(|found| found.unit_id)
            .collect();
        let in_store = |batch: i64| {
            let settled = |unit: &&super::rows::Unit| {
                unit.batch_id == Some(batch) && matches!(unit.state, UnitState::Settled | UnitState::Empty)
            };
            self.units.values().filter(settled).any(|unit| !calls.contains(&unit.id))
        };
        let mut bad = Vec::new();
        for (election, since, until) in self.halts() {
            let within = |of: &ElectionName, at: DateTime<Utc>| {
                of == election && at > since && until.is_none_or(|until| at < until)
            };
            let runs = self.runs.values().filter(|run| within(&run.election, run.opened_at));
            bad.extend(runs.map(|run| format!("run {} was opened while halted", run.id)));
            let batches =
                self.batches.iter().filter(|batch| within(&batch.election, batch.committed_at)).filter(|b| {
                    b.carried > 0 || b.instructions > 0 || ((b.settled > 0 || b.empty > 0) && in_store(b.id))
                });
            bad.extend(batches.map(|batch| format!("batch {} was committed while halted", batch.id)));
            let sent = self
                .instructions
                .values()
                .filter(|found| found.first_sent_at.is_some_and(|at| within(&found.election, at)));
            bad.extend(sent.map(|found| format!("instruction {} was first sent while halted", found.key)));
        }
        bad
    }
}
