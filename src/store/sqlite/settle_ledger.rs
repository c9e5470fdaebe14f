//! The effect of the ledger on one batch: what is bound is netted, and everything that follows is gathered as rows, so that
//! one statement a table writes it.
//!
//! Invariants: what is posted, carried and instructed derives from the sums over what the bind returned, and from nothing
//! else; key and bytes of an instruction are those of [`crate::domain::payout`].

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use uuid::Uuid;

use super::columns::{date_text, json_text, micros, time};
use super::settle::{Claimed, Setback, count, record};
use super::settle_parts::{Part, Value};
use crate::domain::Claim;
use crate::domain::job::{LedgerDefinition, Release};
use crate::domain::money::Currency;
use crate::domain::netting::{BoundSums, Posting, Verdict, net};
use crate::domain::payout::{KeyParts, PayoutBody, idempotency_key};
use crate::domain::unit::UnitState;
use crate::store::{BatchCounts, BatchError, OpenRun};

/// Why an instruction above the job's maximum is held.
const OVER_LIMIT: &str = "over_limit";

/// A unit that ends: id, attempts expected, state, net.
type UnitRow = (i64, u32, &'static str, Option<i64>);

/// A journal: unit, generation.
type JournalRow = (i64, u32);

/// A posting: unit, generation, seq, debit kind and owner, credit kind and owner, currency, amount.
type PostingRow = (i64, u32, u32, &'static str, String, &'static str, String, String, i64);

/// A carry: external id, merchant, currency, amount, available at.
type CarryRow = (String, String, String, i64, i64);

/// An instruction: unit, generation, key, merchant, currency, amount, body, state, reason.
type InstructionRow = (i64, u32, String, String, String, i64, String, &'static str, Option<&'static str>);

/// Everything that one batch writes.
#[derive(Debug, Default)]
pub(super) struct LedgerRows {
    units: Vec<UnitRow>,
    states: Vec<UnitState>,
    journals: Vec<JournalRow>,
    postings: Vec<PostingRow>,
    carries: Vec<CarryRow>,
    instructions: Vec<InstructionRow>,
    release: &'static str,
    value_date: Option<NaiveDate>,
}

/// What one unit bound.
#[derive(Debug, Default)]
struct Bound {
    sums: BoundSums,
    by_source: BTreeMap<String, i128>,
    latest: Option<DateTime<Utc>>,
}

/// Binds, nets and records one batch.
pub(super) async fn settle(
    conn: &mut SqliteConnection,
    claim: &Claim,
    deployment: Uuid,
    run: &OpenRun,
    definition: &LedgerDefinition,
    units: &[Claimed],
) -> Result<BatchCounts, Setback> {
    let mut bound = bind_entries(conn, run, definition, units).await?;
    let mut rows = LedgerRows::for_payouts(definition, run.value_date);
    for unit in units {
        let bound = bound.remove(&unit.id).unwrap_or_default().summed();
        rows.add(deployment, run, definition, unit, &bound).map_err(Setback::Verdict)?;
    }
    record(conn, claim, run, &rows).await
}

/// Binds the open entries of the units; answers what each bound.
async fn bind_entries(
    conn: &mut SqliteConnection,
    run: &OpenRun,
    definition: &LedgerDefinition,
    units: &[Claimed],
) -> Result<HashMap<i64, Bound>, sqlx::Error> {
    let selected = |merchant: &str, currency: &str| {
        (definition.merchants.is_empty() || definition.merchants.contains(merchant))
            && (definition.currencies.is_empty() || definition.currencies.iter().any(|own| own.code() == currency))
    };
    let wanted: Vec<(i64, &str, &str, bool)> = units
        .iter()
        .filter_map(|unit| Some((unit.id, unit.merchant.as_deref()?, unit.currency.as_deref()?)))
        .map(|(id, merchant, currency)| (id, merchant, currency, selected(merchant, currency)))
        .collect();
    let rows = sqlx::query(include_str!("sql/settle_bind.sql"))
        .bind(json_text(&wanted)?)
        .bind(micros(run.cutoff_at))
        .bind(run.job_id)
        .bind(json_text(&definition.sources)?)
        .fetch_all(conn)
        .await?;
    let mut bound: HashMap<i64, Bound> = HashMap::with_capacity(units.len());
    for row in &rows {
        bound.entry(row.try_get("unit_id")?).or_default().add(row)?;
    }
    Ok(bound)
}

impl Bound {
    /// Adds one entry.
    fn add(&mut self, row: &SqliteRow) -> Result<(), sqlx::Error> {
        let (amount, fee): (i64, i64) = (row.try_get("amount")?, row.try_get("fee")?);
        self.sums.entries += 1;
        // A sum of fewer than 2^63 numbers of 64 bits fits.
        self.sums.fees += i128::from(fee);
        if row.try_get("carry")? {
            self.sums.carried_in += i128::from(amount);
        } else {
            let source: &str = row.try_get("source")?;
            match self.by_source.get_mut(source) {
                Some(sum) => *sum += i128::from(amount),
                None => {
                    self.by_source.insert(source.to_owned(), i128::from(amount));
                }
            }
        }
        self.latest = self.latest.max(Some(time(row, "available_at")?));
        Ok(())
    }

    fn summed(mut self) -> Self {
        self.sums.amounts = std::mem::take(&mut self.by_source).into_iter().collect();
        self
    }
}

fn permanent(message: &str) -> BatchError {
    BatchError { message: message.to_owned(), permanent: true }
}

impl LedgerRows {
    /// No rows yet; what all instructions of the batch share.
    fn for_payouts(definition: &LedgerDefinition, value_date: NaiveDate) -> Self {
        let release = match definition.release {
            Release::Auto => "auto",
            Release::Manual => "waiting",
        };
        Self { release, value_date: Some(value_date), ..Self::default() }
    }

    /// Units that are settled, and nothing else.
    pub(super) fn marked(units: &[Claimed]) -> Self {
        let mut rows = Self { release: "auto", ..Self::default() };
        for unit in units {
            rows.end(unit, UnitState::Settled, None);
        }
        rows
    }

    fn end(&mut self, unit: &Claimed, state: UnitState, net: Option<i64>) {
        self.units.push((unit.id, unit.attempts, state.as_str(), net));
        self.states.push(state);
    }

    /// Nets one unit and adds what follows.
    fn add(
        &mut self,
        deployment: Uuid,
        run: &OpenRun,
        definition: &LedgerDefinition,
        unit: &Claimed,
        bound: &Bound,
    ) -> Result<(), BatchError> {
        let (Some(merchant), Some(code)) = (unit.merchant.as_deref(), unit.currency.as_deref()) else {
            return Err(permanent("the unit has no merchant and currency: it is none of the ledger's"));
        };
        let currency = Currency::new(code).map_err(|error| permanent(&error.to_string()))?;
        let minimum = definition.minimum_payout.get(&currency).copied().unwrap_or(0);
        let job = &run.definition.name;
        let parts = KeyParts {
            deployment_id: deployment,
            job,
            kind: run.kind,
            tick: run.tick,
            request_id: run.request_id,
            unit_key: &unit.key,
            generation: unit.generation,
        };
        let verdict = net(job, merchant, currency, &bound.sums, minimum);
        let state = verdict.state();
        match verdict {
            Verdict::Empty => self.end(unit, state, None),
            Verdict::OutOfRange => {
                return Err(permanent(
                    "the sums of the unit leave the range of 64-bit minor units: nothing is settled",
                ));
            }
            Verdict::Settled { net, postings } => {
                self.end(unit, state, Some(net));
                self.add_journal(unit, currency, postings);
                if net > 0 {
                    let over = definition.maximum_payout.get(&currency).is_some_and(|maximum| net > *maximum);
                    self.instruct(run, unit, merchant, currency, net, &parts, over);
                }
            }
            Verdict::Carried { net, postings } => {
                self.end(unit, state, Some(net));
                self.add_journal(unit, currency, postings);
                let available_at = bound.latest.unwrap_or(run.cutoff_at);
                self.carries.push((
                    format!("carry:{}:{}", unit.id, unit.generation),
                    merchant.to_owned(),
                    currency.code().to_owned(),
                    net,
                    micros(available_at),
                ));
            }
        }
        Ok(())
    }

    fn add_journal(&mut self, unit: &Claimed, currency: Currency, postings: Vec<Posting>) {
        self.journals.push((unit.id, unit.generation));
        for (posting, seq) in postings.into_iter().zip(1_u32..) {
            self.postings.push((
                unit.id,
                unit.generation,
                seq,
                posting.debit.kind(),
                posting.debit.owner(),
                posting.credit.kind(),
                posting.credit.owner(),
                currency.code().to_owned(),
                posting.amount,
            ));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what one instruction is made of, in one place")]
    fn instruct(
        &mut self,
        run: &OpenRun,
        unit: &Claimed,
        merchant: &str,
        currency: Currency,
        net: i64,
        parts: &KeyParts<'_>,
        over_limit: bool,
    ) {
        let key = idempotency_key(parts);
        let body = PayoutBody::new(&key, merchant, currency, net, parts, run.value_date).to_bytes();
        self.instructions.push((
            unit.id,
            unit.generation,
            key,
            merchant.to_owned(),
            currency.code().to_owned(),
            net,
            // JSON is UTF-8: the bytes are kept as they are.
            String::from_utf8_lossy(&body).into_owned(),
            if over_limit { "held" } else { "pending" },
            over_limit.then_some(OVER_LIMIT),
        ));
    }

    /// What the batch comes to; cursor and units taken are the caller's.
    pub(super) fn counts(&self) -> BatchCounts {
        BatchCounts {
            settled: count(&self.states, UnitState::Settled),
            carried: count(&self.states, UnitState::Carried),
            empty: count(&self.states, UnitState::Empty),
            instructions: self.instructions.len() as u64,
            ..BatchCounts::default()
        }
    }

    /// Writes the batch's own row; answers its id.
    pub(super) async fn insert_batch(
        &self,
        conn: &mut SqliteConnection,
        claim: &Claim,
        run: &OpenRun,
        counts: &BatchCounts,
    ) -> Result<i64, sqlx::Error> {
        let narrow = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        sqlx::query_scalar(include_str!("sql/batch_insert.sql"))
            .bind(run.id)
            .bind(claim.election.as_str())
            .bind(claim.term.get())
            .bind(narrow(self.units.len() as u64))
            .bind(narrow(counts.settled))
            .bind(narrow(counts.carried))
            .bind(narrow(counts.empty))
            .bind(0_i64)
            .bind(narrow(counts.instructions))
            .fetch_one(conn)
            .await
    }

    /// What is written, in the order in which one refers to another.
    pub(super) fn parts(&self, claim: &Claim, run: &OpenRun, batch: i64) -> Result<[Part; 5], sqlx::Error> {
        let election = || Value::Text(claim.election.as_str().to_owned());
        let rows = |text: Result<String, sqlx::Error>| text.map(Value::Text);
        let (run_id, term, job) = (Value::Number(run.id), Value::Number(claim.term.get()), Value::Number(run.job_id));
        Ok([
            Part {
                what: "units",
                statement: include_str!("sql/settle_units.sql"),
                values: vec![
                    run_id.clone(),
                    election(),
                    term.clone(),
                    rows(json_text(&self.units))?,
                    Value::Number(batch),
                ],
                expected: self.units.len() as u64,
            },
            Part {
                what: "journals",
                statement: include_str!("sql/settle_journals.sql"),
                values: vec![run_id.clone(), election(), term.clone(), rows(json_text(&self.journals))?],
                expected: self.journals.len() as u64,
            },
            Part {
                what: "postings",
                statement: include_str!("sql/settle_postings.sql"),
                values: vec![rows(json_text(&self.postings))?],
                expected: self.postings.len() as u64,
            },
            Part {
                what: "carries",
                statement: include_str!("sql/settle_carries.sql"),
                values: vec![job.clone(), rows(json_text(&self.carries))?],
                expected: self.carries.len() as u64,
            },
            Part {
                what: "instructions",
                statement: include_str!("sql/settle_instructions.sql"),
                values: vec![
                    run_id,
                    election(),
                    term,
                    job,
                    rows(json_text(&self.instructions))?,
                    Value::Text(self.release.to_owned()),
                    Value::MaybeText(self.value_date.map(date_text)),
                ],
                expected: self.instructions.len() as u64,
            },
        ])
    }
}
