//! The effect of the ledger on one batch: what is bound is netted, and everything that follows is gathered as columns, so
//! that one statement writes it.
//!
//! Invariants: what is posted, carried and instructed derives from the sums over what the bind returned, and from nothing
//! else; key and bytes of an instruction are those of [`crate::domain::payout`].

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::{Postgres, Row};
use uuid::Uuid;

use super::settle::{Claimed, Setback, count, record};
use crate::domain::Claim;
use crate::domain::job::{LedgerDefinition, Release};
use crate::domain::money::Currency;
use crate::domain::netting::{BoundSums, Posting, Verdict, net};
use crate::domain::payout::{KeyParts, PayoutBody, idempotency_key};
use crate::domain::unit::UnitState;
use crate::store::{BatchCounts, BatchError, OpenRun};

/// Why an instruction above the job's maximum is held.
const OVER_LIMIT: &str = "over_limit";

/// Columns of the units that end.
#[derive(Debug, Default)]
pub(super) struct UnitColumns {
    pub(super) id: Vec<i64>,
    attempts: Vec<i32>,
    state: Vec<UnitState>,
    net: Vec<Option<i64>>,
}

/// Columns of the journals: one for every unit that bound something.
#[derive(Debug, Default)]
pub(super) struct JournalColumns {
    pub(super) unit: Vec<i64>,
    generation: Vec<i32>,
}

/// Columns of the postings.
#[derive(Debug, Default)]
pub(super) struct PostingColumns {
    pub(super) unit: Vec<i64>,
    seq: Vec<i16>,
    debit_kind: Vec<&'static str>,
    debit_owner: Vec<String>,
    credit_kind: Vec<&'static str>,
    credit_owner: Vec<String>,
    currency: Vec<String>,
    amount: Vec<i64>,
}

/// Columns of the carries: entries of the job's own.
#[derive(Debug, Default)]
pub(super) struct CarryColumns {
    pub(super) external_id: Vec<String>,
    merchant: Vec<String>,
    currency: Vec<String>,
    amount: Vec<i64>,
    available_at: Vec<DateTime<Utc>>,
}

/// Columns of the instructions.
#[derive(Debug, Default)]
pub(super) struct InstructionColumns {
    pub(super) unit: Vec<i64>,
    generation: Vec<i32>,
    key: Vec<String>,
    merchant: Vec<String>,
    currency: Vec<String>,
    amount: Vec<i64>,
    body: Vec<Vec<u8>>,
    state: Vec<&'static str>,
    reason: Vec<Option<&'static str>>,
    release: &'static str,
    value_date: Option<NaiveDate>,
}

/// Everything that one batch writes.
#[derive(Debug, Default)]
pub(super) struct LedgerRows {
    pub(super) units: UnitColumns,
    pub(super) journals: JournalColumns,
    pub(super) postings: PostingColumns,
    pub(super) carries: CarryColumns,
    pub(super) instructions: InstructionColumns,
}

/// What one unit bound.
#[derive(Debug, Default)]
struct Bound {
    sums: BoundSums,
    latest: Option<DateTime<Utc>>,
}

/// Binds, nets and records one batch.
pub(super) async fn settle(
    conn: &mut PgConnection,
    claim: &Claim,
    deployment: Uuid,
    run: &OpenRun,
    definition: &LedgerDefinition,
    units: &[Claimed],
) -> Result<BatchCounts, Setback> {
    let mut bound = bind_entries(conn, run, definition, units).await?;
    let mut rows = LedgerRows::for_payouts(definition, run.value_date);
    for unit in units {
        let bound = bound.remove(&unit.id).unwrap_or_default();
        rows.add(deployment, run, definition, unit, &bound).map_err(Setback::Verdict)?;
    }
    record(conn, claim, run, &rows).await
}

/// Binds the open entries of the units; answers what each bound.
async fn bind_entries(
    conn: &mut PgConnection,
    run: &OpenRun,
    definition: &LedgerDefinition,
    units: &[Claimed],
) -> Result<HashMap<i64, Bound>, sqlx::Error> {
    let ledger_units = || units.iter().filter(|unit| unit.merchant.is_some() && unit.currency.is_some());
    let ids: Vec<i64> = ledger_units().map(|unit| unit.id).collect();
    let merchants: Vec<&str> = ledger_units().filter_map(|unit| unit.merchant.as_deref()).collect();
    let currencies: Vec<&str> = ledger_units().filter_map(|unit| unit.currency.as_deref()).collect();
    let rows = sqlx::query(crate::sql!("sql/settle_bind.sql"))
        .bind(ids)
        .bind(merchants)
        .bind(currencies)
        .bind(run.cutoff_at)
        .bind(run.job_id)
        .bind(sources(definition))
        .bind(selected_currencies(definition))
        .bind(selected_merchants(definition))
        .persistent(false)
        .fetch_all(conn)
        .await?;
    let mut bound: HashMap<i64, Bound> = HashMap::with_capacity(units.len());
    for row in &rows {
        bound.entry(row.try_get("unit_id")?).or_default().add(row)?;
    }
    Ok(bound)
}

/// The sources that a definition selects; empty: all.
pub(super) fn sources(definition: &LedgerDefinition) -> Vec<String> {
    definition.sources.iter().cloned().collect()
}

/// The currencies that a definition selects; empty: all.
pub(super) fn selected_currencies(definition: &LedgerDefinition) -> Vec<String> {
    definition.currencies.iter().map(|currency| currency.code().to_owned()).collect()
}

/// The merchants that a definition selects; empty: all.
pub(super) fn selected_merchants(definition: &LedgerDefinition) -> Vec<String> {
    definition.merchants.iter().cloned().collect()
}

impl Bound {
    /// Adds the sums over one source of the unit, or over its carries.
    fn add(&mut self, row: &PgRow) -> Result<(), sqlx::Error> {
        let wide = |column: &str| -> Result<i128, sqlx::Error> {
            let text: String = row.try_get(column)?;
            text.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
        };
        let entries: i64 = row.try_get("entries")?;
        let latest: DateTime<Utc> = row.try_get("latest")?;
        self.sums.entries += entries.unsigned_abs();
        self.sums.fees += wide("fee")?;
        if row.try_get("carry")? {
            self.sums.carried_in += wide("amount")?;
        } else {
            self.sums.amounts.push((row.try_get("source")?, wide("amount")?));
        }
        self.latest = self.latest.max(Some(latest));
        Ok(())
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
        Self {
            instructions: InstructionColumns { release, value_date: Some(value_date), ..InstructionColumns::default() },
            ..Self::default()
        }
    }

    /// Units that are settled, and nothing else.
    pub(super) fn marked(units: &[Claimed]) -> Self {
        let mut rows =
            Self { instructions: InstructionColumns { release: "auto", ..Default::default() }, ..Self::default() };
        for unit in units {
            rows.units.push(unit, UnitState::Settled, None);
        }
        rows
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
            generation: unit.generation.unsigned_abs(),
        };
        let verdict = net(job, merchant, currency, &bound.sums, minimum);
        let state = verdict.state();
        match verdict {
            Verdict::Empty => self.units.push(unit, state, None),
            Verdict::OutOfRange => {
                return Err(permanent(
                    "the sums of the unit leave the range of 64-bit minor units: nothing is settled",
                ));
            }
            Verdict::Settled { net, postings } => {
                self.units.push(unit, state, Some(net));
                self.add_journal(unit, currency, postings);
                if net > 0 {
                    let over = definition.maximum_payout.get(&currency).is_some_and(|maximum| net > *maximum);
                    self.instructions.push(run, unit, merchant, currency, net, &parts, over);
                }
            }
            Verdict::Carried { net, postings } => {
                self.units.push(unit, state, Some(net));
                self.add_journal(unit, currency, postings);
                let available_at = bound.latest.unwrap_or(run.cutoff_at);
                let external_id = format!("carry:{}:{}", unit.id, unit.generation);
                self.carries.push(external_id, merchant, currency, net, available_at);
            }
        }
        Ok(())
    }

    fn add_journal(&mut self, unit: &Claimed, currency: Currency, postings: Vec<Posting>) {
        self.journals.unit.push(unit.id);
        self.journals.generation.push(unit.generation);
        for (posting, seq) in postings.into_iter().zip(1_i16..) {
            self.postings.push(unit.id, seq, &posting, currency);
        }
    }

    /// What the batch comes to; cursor and units taken are the caller's.
    pub(super) fn counts(&self) -> BatchCounts {
        BatchCounts {
            settled: count(&self.units.state, UnitState::Settled),
            carried: count(&self.units.state, UnitState::Carried),
            empty: count(&self.units.state, UnitState::Empty),
            instructions: self.instructions.unit.len() as u64,
            ..BatchCounts::default()
        }
    }

    /// Binds everything to the statement of `settle_record.sql`, in its order.
    pub(super) fn bind<'q>(
        &'q self,
        query: Query<'q, Postgres, PgArguments>,
        claim: &'q Claim,
        run: &'q OpenRun,
        counts: &BatchCounts,
    ) -> Query<'q, Postgres, PgArguments> {
        let narrow = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let (units, postings) = (&self.units, &self.postings);
        let (carries, instructions) = (&self.carries, &self.instructions);
        query
            .bind(run.id)
            .bind(claim.election.as_str())
            .bind(claim.term.get())
            .bind(run.job_id)
            .bind(&units.id)
            .bind(&units.attempts)
            .bind(units.state.iter().map(|state| state.as_str()).collect::<Vec<_>>())
            .bind(&units.net)
            .bind(&self.journals.unit)
            .bind(&self.journals.generation)
            .bind(&postings.unit)
            .bind(&postings.seq)
            .bind(&postings.debit_kind)
            .bind(&postings.debit_owner)
            .bind(&postings.credit_kind)
            .bind(&postings.credit_owner)
            .bind(&postings.currency)
            .bind(&postings.amount)
            .bind(&carries.external_id)
            .bind(&carries.merchant)
            .bind(&carries.currency)
            .bind(&carries.amount)
            .bind(&carries.available_at)
            .bind(&instructions.unit)
            .bind(&instructions.generation)
            .bind(&instructions.key)
            .bind(&instructions.merchant)
            .bind(&instructions.currency)
            .bind(&instructions.amount)
            .bind(&instructions.body)
            .bind(&instructions.state)
            .bind(&instructions.reason)
            .bind(instructions.release)
            .bind(instructions.value_date)
            .bind(narrow(counts.settled))
            .bind(narrow(counts.carried))
            .bind(narrow(counts.empty))
    }
}

impl UnitColumns {
    fn push(&mut self, unit: &Claimed, state: UnitState, net: Option<i64>) {
        self.id.push(unit.id);
        self.attempts.push(unit.attempts);
        self.state.push(state);
        self.net.push(net);
    }
}

impl PostingColumns {
    fn push(&mut self, unit: i64, seq: i16, posting: &Posting, currency: Currency) {
        self.unit.push(unit);
        self.seq.push(seq);
        self.debit_kind.push(posting.debit.kind());
        self.debit_owner.push(posting.debit.owner());
        self.credit_kind.push(posting.credit.kind());
        self.credit_owner.push(posting.credit.owner());
        self.currency.push(currency.code().to_owned());
        self.amount.push(posting.amount);
    }
}

impl CarryColumns {
    fn push(
        &mut self,
        external_id: String,
        merchant: &str,
        currency: Currency,
        amount: i64,
        available_at: DateTime<Utc>,
    ) {
        self.external_id.push(external_id);
        self.merchant.push(merchant.to_owned());
        self.currency.push(currency.code().to_owned());
        self.amount.push(amount);
        self.available_at.push(available_at);
    }
}

impl InstructionColumns {
    #[expect(clippy::too_many_arguments, reason = "what one instruction is made of, in one place")]
    fn push(
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
        self.unit.push(unit.id);
        self.generation.push(unit.generation);
        self.merchant.push(merchant.to_owned());
        self.currency.push(currency.code().to_owned());
        self.amount.push(net);
        self.body.push(body);
        self.key.push(key);
        self.state.push(if over_limit { "held" } else { "pending" });
        self.reason.push(over_limit.then_some(OVER_LIMIT));
    }
}
