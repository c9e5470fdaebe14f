//! Settling ledger entries on one file: the books add up, an overflow sets its unit aside and no other, and how fast it is.

use std::path::Path;
use std::time::Duration;

use bursar::clock;
use bursar::domain::job::{HandlerDefinition, LedgerDefinition};
use bursar::domain::run::RunState;
use bursar::store::{
    BatchCounts, Effect, FinishOutcome, JobChange, JobChangeOutcome, OpenRun, PlanOutcome, PlanSource, SettleOutcome,
    TenureStore, TickFate, TicksOutcome, TicksRecord, UnitPick,
};
use chrono::DateTime;

use super::ground::{claim, definition, mine, number, path, raw, run, store, tenure, tick};
use crate::desk::everything;
use crate::support::measured;

/// A run of a ledger job that is due now, being planned.
async fn ledger_run(tenure: &dyn TenureStore, definition_of: &LedgerDefinition) -> OpenRun {
    let mut definition = definition("daily");
    definition.handler = HandlerDefinition::Ledger(definition_of.clone());
    let change = JobChange {
        name: definition.name.clone(),
        definition: Some(definition),
        expected: None,
        settled: Vec::new(),
        evaluated_until: DateTime::UNIX_EPOCH,
    };
    let JobChangeOutcome::Changed(Some(job)) = mine(tenure.change_job(change).await) else { panic!("the job is new") };
    let due = job.evaluated_until;
    let ticks = vec![tick(due, TickFate::Open { caught_up: false })];
    let outcome = mine(tenure.record_ticks(TicksRecord { evaluated_until: due, ticks, job: *job }).await);
    assert!(matches!(outcome, TicksOutcome::Recorded { duplicates: 0, .. }), "{outcome:?}");
    mine(tenure.open_runs().await).pop().expect("the run is open")
}

/// Entries as an import leaves them: `merchants` of them with `each` captures.
async fn entries(path: &Path, merchants: u32, each: u32) {
    let statement = format!(
        "insert into operator_act (id, at, os_user, host, action, target) values (1, 0, 'ann', 'desk', 'import', 'f'); \
         insert into import (id, source, file_name, sha256, rows, sums, act_id, at) values (1, 'psp', 'f', 's', 0, '{{}}', 1, 0); \
         with recursive m (n) as (select 1 union all select n + 1 from m where n < {merchants}), \
                        k (n) as (select 1 union all select n + 1 from k where n < {each}) \
         insert into entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, import_id) \
         select 'psp', m.n || '-' || k.n, printf('m%06d', m.n), 'EUR', 'capture', 1000 + k.n, 10, 1, 1, 1 from k, m;"
    );
    run(&mut raw(path).await, &statement).await.expect("entries");
}

async fn planned(tenure: &dyn TenureStore, run: &mut OpenRun, definition: &LedgerDefinition) -> u64 {
    let (mut after, mut units) = (None, 0);
    let source = PlanSource::Ledger(definition.clone());
    loop {
        match mine(tenure.plan_page(run, &source, after.as_deref(), 5_000).await) {
            PlanOutcome::Planned { units: page, next } => {
                units += page;
                after = next;
            }
            other @ (PlanOutcome::NotPlanning(_) | PlanOutcome::SetAside { .. }) => panic!("it is planned: {other:?}"),
        }
        if after.is_none() {
            run.state = RunState::Open;
            return units;
        }
    }
}

async fn settled(
    tenure: &dyn TenureStore,
    run: &OpenRun,
    definition: &LedgerDefinition,
    size: u32,
) -> Vec<BatchCounts> {
    let effect = Effect::Ledger(definition.clone());
    let (mut batches, mut after) = (Vec::new(), 0);
    loop {
        match mine(tenure.settle(run, UnitPick::Fresh { after, limit: size }, &effect).await) {
            SettleOutcome::Settled(counts) => {
                after = counts.last_unit;
                batches.push(counts);
            }
            SettleOutcome::Nothing => return batches,
            SettleOutcome::Failed { error, .. } => panic!("{error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_settles_every_entry_once_and_the_books_add_up() {
    let path = path();
    let store = store(&path).await;
    let tenure = tenure(&store, &claim(1)).await;
    entries(&path, 20, 3).await;
    let definition = everything();
    let mut run = ledger_run(tenure.as_ref(), &definition).await;
    assert_eq!(planned(tenure.as_ref(), &mut run, &definition).await, 20);
    let batches = settled(tenure.as_ref(), &run, &definition, 7).await;
    assert_eq!(batches.iter().map(|batch| batch.settled).sum::<u64>(), 20);
    assert_eq!(batches.len(), 3);
    let ended = mine(tenure.finish_run(run.id).await);
    assert_eq!(ended, FinishOutcome::Finished(RunState::Complete));
    let net = 3 * 1000 + 1 + 2 + 3 - 3 * 10;
    for (statement, expected) in [
        ("select count(*) from entry where unit_id is null", 0),
        ("select count(*) from instruction where state = 'pending' and body is not null and typeof(body) = 'blob'", 20),
        ("select sum(amount) from instruction", 20 * net),
        ("select sum(net) from unit", 20 * net),
        ("select count(*) from journal", 20),
        ("select coalesce(sum(amount), 0) from ledger_line", 0),
        ("select coalesce(sum(amount), 0) from ledger_line where kind = 'payable'", 0),
        ("select count(distinct fenced_seq) from batch", 3),
        ("select count(*) from batch b where (select count(*) from unit u where u.batch_id = b.id) <> b.units", 0),
    ] {
        assert_eq!(number(&path, statement).await, expected, "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sums_out_of_range_fail_the_batch_as_a_verdict_and_bind_nothing() {
    let path = path();
    let store = store(&path).await;
    let tenure = tenure(&store, &claim(1)).await;
    entries(&path, 3, 2).await;
    let grown = format!(
        "drop trigger entry_is_never_edited; update entry set amount = {} where merchant = 'm000002'",
        i64::MAX
    );
    super::ground::run(&mut raw(&path).await, &grown).await.expect("grown");
    let definition = everything();
    let mut run = ledger_run(tenure.as_ref(), &definition).await;
    planned(tenure.as_ref(), &mut run, &definition).await;
    let effect = Effect::Ledger(definition.clone());
    let pick = |units: &[i64]| UnitPick::Exactly(units.to_vec());
    let SettleOutcome::Failed { units, error } = mine(tenure.settle(&run, pick(&[1, 2, 3]), &effect).await) else {
        panic!("it cannot be settled")
    };
    assert!(error.permanent && units == [(1, 0), (2, 0), (3, 0)], "{error:?} {units:?}");
    assert_eq!(number(&path, "select count(*) from entry where unit_id is not null").await, 0);
    for unit in [1, 3] {
        let outcome = mine(tenure.settle(&run, pick(&[unit]), &effect).await);
        assert!(matches!(outcome, SettleOutcome::Settled(_)), "{outcome:?}");
    }
    let charge = bursar::store::Charge { unit: 2, attempts: 0, error: error.message, again_in: None };
    assert_eq!(mine(tenure.charge(run.id, std::slice::from_ref(&charge)).await), 1);
    assert_eq!(mine(tenure.charge(run.id, &[charge]).await), 0, "charging twice charges once");
    assert_eq!(mine(tenure.finish_run(run.id).await), FinishOutcome::Finished(RunState::CompleteSetAside));
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_units_of_two_hundred_thousand_entries_settle_while_one_waits() {
    let path = path();
    let store = store(&path).await;
    let tenure = tenure(&store, &claim(1)).await;
    entries(&path, 20_000, 10).await;
    let definition = everything();
    let mut run = ledger_run(tenure.as_ref(), &definition).await;
    let started = clock::boottime();
    assert_eq!(planned(tenure.as_ref(), &mut run, &definition).await, 20_000);
    let planned_in = clock::boottime().since(started);
    let started = clock::boottime();
    let batches = settled(tenure.as_ref(), &run, &definition, 1_000).await;
    let settled_in = clock::boottime().since(started);
    assert_eq!(batches.iter().map(|batch| batch.settled).sum::<u64>(), 20_000);
    assert_eq!(number(&path, "select count(*) from entry where unit_id is null").await, 0);
    let rate = 20_000.0 / settled_in.max(Duration::from_millis(1)).as_secs_f64();
    measured(&format!(
        "SQLite: 20,000 units planned in {planned_in:?}, settled in {settled_in:?}: {rate:.0} units a second"
    ));
}
