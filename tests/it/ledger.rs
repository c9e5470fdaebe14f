//! The ledger, through the store's port: what is bound, netted, posted, carried and instructed, and by whom only once.

use std::sync::Arc;
use std::time::Duration;

use bursar::domain::entry::EntryKind;
use bursar::domain::job::{LedgerDefinition, Release};
use bursar::domain::unit::UnitState;
use bursar::store::{
    BatchError, BatchHook, Charge, Effect, FinishOutcome, PlanOutcome, PlanSource, SettleOutcome, UnitPick,
};
use chrono::TimeDelta;

use super::desk::{Desk, Ground, bulk, capture, currency, effect, entry, everything, mine, on_every_store};

on_every_store!(
    amounts_are_exact_in_every_currency_and_the_same_in_unit_journal_and_instruction,
    a_negative_net_is_carried_into_the_next_run_of_the_job_and_of_no_other,
    below_the_minimum_is_carried_above_the_maximum_held_and_zero_settled_without_an_instruction,
    two_runs_that_pick_one_merchant_at_once_post_its_entries_once,
    what_is_available_at_or_after_the_cutoff_waits,
    a_unit_whose_sums_leave_the_range_is_set_aside_alone_and_binds_nothing,
    a_held_merchant_gets_no_unit_and_binds_nothing_where_it_has_one,
    planning_goes_page_by_page_in_byte_order_and_may_be_repeated,
    units_that_failed_are_taken_again_after_their_wait_and_set_aside_in_the_end,
    a_batch_names_its_cursor_and_a_wait_that_is_not_over_is_told,
    a_key_is_the_same_again_when_the_same_is_settled_again_after_a_loss,
);

async fn amounts_are_exact_in_every_currency_and_the_same_in_unit_journal_and_instruction<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", everything()).await;
    desk.import(
        "adyen",
        vec![
            entry("a1", "acme", "JPY", EntryKind::Capture, "10000", "150"),
            capture("a2", "acme", "JPY", "1050"),
            capture("a3", "acme", "KWD", "18.600"),
            entry("a4", "acme", "EUR", EntryKind::Capture, "0.03", "0.01"),
        ],
    )
    .await;
    let run = desk.settled(&job).await;
    for (key, net, body) in [
        ("JPY:acme", "10900", r#""amount":"10900","amount_minor":"10900","currency":"JPY""#),
        ("KWD:acme", "18.600", r#""amount":"18.600","amount_minor":"18600","currency":"KWD""#),
        ("EUR:acme", "0.02", r#""amount":"0.02","amount_minor":"2","currency":"EUR""#),
    ] {
        let unit = desk.unit(&run, key).await;
        assert_eq!((unit.state, unit.net.as_deref()), (UnitState::Settled, Some(net)), "{key}");
        let [instruction] = unit.instructions.as_slice() else { panic!("one instruction: {unit:?}") };
        assert_eq!((instruction.amount.as_deref(), instruction.state.as_str()), (Some(net), "pending"), "{key}");
        let written: String = desk
            .database
            .value(&format!(
                "select {} from bursar.instruction where idempotency_key = '{}'",
                D::words("convert_from(body, 'UTF8')", "cast(body as text)"),
                instruction.key
            ))
            .await;
        assert!(written.contains(body) && written.contains(&instruction.key), "{written}");
    }
    let payable: Vec<(i64,)> = desk
        .database
        .rows("select sum(amount)::bigint from bursar.ledger_line where kind = 'payable' group by journal_id, owner")
        .await;
    assert!(payable.iter().all(|sum| sum.0 == 0), "{payable:?}");
    let view = desk.store.run_by_id(run.id).await.expect("the store answers").expect("there is the run");
    assert_eq!(
        view.paid_out.into_iter().collect::<Vec<_>>(),
        [
            ("EUR".to_owned(), "0.02".to_owned()),
            ("JPY".to_owned(), "10900".to_owned()),
            ("KWD".to_owned(), "18.600".to_owned()),
        ]
    );
    assert_eq!((view.summary.units.total, view.summary.units.settled), (3, 3));
    desk.audit_is_clean().await;
}

async fn a_negative_net_is_carried_into_the_next_run_of_the_job_and_of_no_other<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", LedgerDefinition { sources: ["adyen".to_owned()].into(), ..everything() }).await;
    let other = desk.job("other", LedgerDefinition { sources: ["stripe".to_owned()].into(), ..everything() }).await;
    desk.import(
        "adyen",
        vec![capture("a1", "acme", "EUR", "10.00"), entry("a2", "acme", "EUR", EntryKind::Refund, "-35.00", "")],
    )
    .await;
    let run = desk.settled(&job).await;
    let unit = desk.unit(&run, "EUR:acme").await;
    assert_eq!((unit.state, unit.net.as_deref()), (UnitState::Carried, Some("-25.00")));
    assert!(unit.instructions.is_empty());
    // Nothing but the carry is open, and it is below the minimum: no unit, again and again.
    assert!(desk.units(&desk.settled(&job).await).await.is_empty());
    assert!(desk.units(&desk.settled(&other).await).await.is_empty());
    desk.audit_is_clean().await;
    desk.import("adyen", vec![capture("a3", "acme", "EUR", "100.00")]).await;
    let run = desk.settled(&job).await;
    let unit = desk.unit(&run, "EUR:acme").await;
    assert_eq!((unit.state, unit.net.as_deref()), (UnitState::Settled, Some("75.00")));
    let carried: i64 = desk
        .database
        .value("select coalesce(sum(amount), 0)::bigint from bursar.ledger_line where kind = 'carry'")
        .await;
    assert_eq!(carried, 0, "the carry account is empty once the carry is netted");
    desk.audit_is_clean().await;
}

async fn below_the_minimum_is_carried_above_the_maximum_held_and_zero_settled_without_an_instruction<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let eur = currency("EUR");
    let definition = LedgerDefinition {
        minimum_payout: [(eur, 100)].into(),
        maximum_payout: [(eur, 1000)].into(),
        release: Release::Manual,
        ..everything()
    };
    let job = desk.job("daily", definition).await;
    desk.import(
        "adyen",
        vec![
            capture("a1", "below", "EUR", "0.99"),
            capture("a2", "least", "EUR", "1.00"),
            capture("a3", "most", "EUR", "10.00"),
            capture("a4", "above", "EUR", "10.01"),
            entry("a5", "zero", "EUR", EntryKind::Capture, "5.00", "5.00"),
            capture("a6", "free", "USD", "0.01"),
        ],
    )
    .await;
    let run = desk.settled(&job).await;
    for (key, state, instruction) in [
        ("EUR:below", UnitState::Carried, None),
        ("EUR:least", UnitState::Settled, Some(("pending", None))),
        ("EUR:most", UnitState::Settled, Some(("pending", None))),
        ("EUR:above", UnitState::Settled, Some(("held", Some("over_limit")))),
        ("EUR:zero", UnitState::Settled, None),
        ("USD:free", UnitState::Settled, Some(("pending", None))),
    ] {
        let unit = desk.unit(&run, key).await;
        assert_eq!(unit.state, state, "{key}");
        let found = unit.instructions.first().map(|i| (i.state.as_str(), i.reason.as_deref()));
        assert_eq!(found, instruction, "{key}");
    }
    let waiting: i64 = desk.database.value("select count(*) from bursar.instruction where release = 'waiting'").await;
    assert_eq!(waiting, 4);
    desk.audit_is_clean().await;
}

async fn two_runs_that_pick_one_merchant_at_once_post_its_entries_once<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let (one, other) = (desk.job("one", everything()).await, desk.job("other", everything()).await);
    for round in 0..8 {
        desk.import("adyen", bulk(&format!("r{round}-"), 50, 20)).await;
        let (one, other) = (desk.planned(&one).await, desk.planned(&other).await);
        let (first, second) = tokio::join!(desk.settle_in(&one, 25), desk.settle_in(&other, 25));
        assert_eq!(first.settled + second.settled, 50, "{first:?} {second:?}");
        assert_eq!(first.empty + second.empty, 50, "{first:?} {second:?}");
    }
    let paid: i64 = desk.database.value("select sum(amount)::bigint from bursar.instruction").await;
    assert_eq!(paid, 8 * 50 * 20 * 99);
    desk.audit_is_clean().await;
}

#[tokio::test]
async fn an_entry_that_is_committed_after_its_run_has_settled_is_in_the_next_run() {
    // SQLite has one writer at a time: there, what is written before is committed before.
    let desk = Desk::open().await;
    let job = desk.job("daily", everything()).await;
    desk.import("adyen", vec![capture("a1", "acme", "EUR", "1.00")]).await;
    // Written before the cutoff, committed after the run has read.
    let mut late = desk.database.connect().await;
    sqlx::raw_sql(
        "begin; with act as (insert into bursar.operator_act (os_user, host, action, target) values ('u', 'h', 'import', 'f')
         returning id), i as (insert into bursar.import (source, file_name, sha256, rows, sums, act_id)
         select 'stripe', 'f', 's', 1, '{}', id from act returning id)
         insert into bursar.entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, import_id)
         select 'stripe', 's1', 'acme', 'EUR', 'capture', 250, 0, '2026-01-05', '2026-01-05', id from i",
    )
    .execute(&mut late)
    .await
    .expect("the schema is ours");
    let run = desk.settled(&job).await;
    assert_eq!(desk.unit(&run, "EUR:acme").await.net.as_deref(), Some("1.00"));
    sqlx::raw_sql("commit").execute(&mut late).await.expect("it commits");
    let run = desk.settled(&job).await;
    assert_eq!(desk.unit(&run, "EUR:acme").await.net.as_deref(), Some("2.50"));
    desk.audit_is_clean().await;
}

async fn what_is_available_at_or_after_the_cutoff_waits<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", everything()).await;
    let mut at_cutoff = capture("a1", "acme", "EUR", "1.00");
    let mut before = capture("a2", "acme", "EUR", "2.00");
    let cutoff = at_cutoff.available_at + TimeDelta::hours(1);
    at_cutoff.available_at = cutoff;
    before.available_at = cutoff - TimeDelta::microseconds(1);
    desk.import("adyen", vec![at_cutoff, before]).await;
    let run = desk.run(&job, cutoff).await;
    desk.plan(&run).await;
    desk.settle(&run).await;
    assert_eq!(desk.unit(&run, "EUR:acme").await.net.as_deref(), Some("2.00"));
    let run = desk.settled(&job).await;
    assert_eq!(desk.unit(&run, "EUR:acme").await.net.as_deref(), Some("1.00"));
}

async fn a_unit_whose_sums_leave_the_range_is_set_aside_alone_and_binds_nothing<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", everything()).await;
    let huge = "92233720368547758.07";
    let mut entries = bulk("b", 40, 2);
    entries.extend([capture("h1", "huge", "EUR", huge), capture("h2", "huge", "EUR", "0.01")]);
    entries.push(capture("h3", "just", "EUR", huge));
    desk.import("adyen", entries).await;
    let run = desk.planned(&job).await;
    let first = desk.batch(&run, UnitPick::Fresh { after: 0, limit: 100 }).await;
    let SettleOutcome::Failed { units, error } = first else { panic!("{first:?}") };
    assert_eq!((units.len(), error.permanent), (42, true));
    let pending = mine(desk.tenure.finish_run(run.id).await);
    assert_eq!(pending, FinishOutcome::Pending { units: 42, fresh: 42, next_in: None });
    let counts = desk.settle_in(&run, 100).await;
    assert_eq!((counts.settled, counts.instructions), (41, 41));
    let unit = desk.unit(&run, "EUR:huge").await;
    assert_eq!((unit.state, unit.attempts), (UnitState::SetAside, 1));
    assert!(unit.last_error.expect("it says why").contains("range"));
    let bound: i64 =
        desk.database.value("select count(*) from bursar.entry where merchant = 'huge' and unit_id is not null").await;
    assert_eq!(bound, 0);
    let view = desk.store.run_by_id(run.id).await.expect("the store answers").expect("there is the run");
    assert_eq!(view.summary.state.as_str(), "complete_set_aside");
    assert_eq!((view.summary.units.settled, view.summary.units.set_aside), (41, 1));
    desk.audit_is_clean().await;
}

async fn a_held_merchant_gets_no_unit_and_binds_nothing_where_it_has_one<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", everything()).await;
    desk.import("adyen", vec![capture("a1", "acme", "EUR", "1.00"), capture("a2", "bona", "EUR", "1.00")]).await;
    let early = desk.planned(&job).await;
    desk.database
        .broken_by(D::words(
            "with a as (insert into bursar.operator_act (os_user, host, action, target) values ('u', 'h', 'hold', 'acme')
             returning id) insert into bursar.merchant_hold (merchant, reason, act_id) select 'acme', 'fraud', id from a",
            "insert into operator_act (at, os_user, host, action, target) values (0, 'u', 'h', 'hold', 'acme');
             insert into merchant_hold (merchant, reason, held_at, act_id) values ('acme', 'fraud', 0, last_insert_rowid())",
        ))
        .await;
    desk.settle(&early).await;
    assert_eq!(desk.unit(&early, "EUR:acme").await.state, UnitState::Empty);
    assert_eq!(desk.unit(&early, "EUR:bona").await.state, UnitState::Settled);
    assert!(desk.units(&desk.settled(&job).await).await.is_empty());
    desk.database.broken_by("delete from bursar.merchant_hold").await;
    let run = desk.settled(&job).await;
    assert_eq!(desk.unit(&run, "EUR:acme").await.net.as_deref(), Some("1.00"));
    desk.audit_is_clean().await;
}

async fn planning_goes_page_by_page_in_byte_order_and_may_be_repeated<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", everything()).await;
    let merchants = ["Zeta", "alpha", "a:b", "Ärger", "δ", "zeta", "店"];
    let entries = merchants.iter().enumerate().flat_map(|(n, merchant)| {
        [capture(&format!("e{n}"), merchant, "EUR", "1.00"), capture(&format!("u{n}"), merchant, "USD", "1.00")]
    });
    desk.import("adyen", entries.collect()).await;
    let run = desk.run(&job, desk.now().await).await;
    let source = PlanSource::Ledger(everything());
    let first = mine(desk.tenure.plan_page(&run, &source, None, 3).await);
    let again = mine(desk.tenure.plan_page(&run, &source, None, 3).await);
    let (PlanOutcome::Planned { units: 3, next: one }, PlanOutcome::Planned { units: 0, next: other }) = (first, again)
    else {
        panic!("a page is written once");
    };
    assert_eq!(one, other);
    assert_eq!(desk.batch(&run, UnitPick::Fresh { after: 0, limit: 9 }).await, SettleOutcome::Nothing, "it is planned");
    assert_eq!(desk.plan_from(&run, &source, 3).await, 11);
    let keys: Vec<String> = desk.units(&run).await.into_iter().map(|unit| unit.key).collect();
    let mut sorted = keys.clone();
    sorted.sort();
    assert_eq!((keys.len(), &keys), (14, &sorted));
    let late = mine(desk.tenure.plan_page(&run, &source, None, 3).await);
    assert!(matches!(late, PlanOutcome::NotPlanning(_)), "{late:?}");
}

/// A hook that refuses one key.
struct Refuses(&'static str);

#[async_trait::async_trait]
impl BatchHook for Refuses {
    async fn run(&self, keys: &[String]) -> Result<(), BatchError> {
        if keys.iter().any(|key| key == self.0) {
            return Err(BatchError { message: format!("{} is refused", self.0), permanent: false });
        }
        Ok(())
    }
}

async fn units_that_failed_are_taken_again_after_their_wait_and_set_aside_in_the_end<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("probe", everything()).await;
    let run = desk.run(&job, desk.now().await).await;
    let keys = PlanSource::Keys(["a", "b", "c"].map(str::to_owned).into());
    assert_eq!(desk.plan_from(&run, &keys, 2).await, 3);
    let effect = Effect::Mark(Arc::new(Refuses("b")));
    let failed = mine(desk.tenure.settle(&run, UnitPick::Fresh { after: 0, limit: 10 }, &effect).await);
    let SettleOutcome::Failed { units, error } = failed else { panic!("{failed:?}") };
    assert_eq!((units.len(), error.message.as_str(), error.permanent), (3, "b is refused", false));
    let (b, attempts) = units[1];
    let charge = |attempts, again_in| Charge { unit: b, attempts, error: "b is refused".to_owned(), again_in };
    let waits = charge(attempts, Some(Duration::from_millis(1)));
    assert_eq!(mine(desk.tenure.charge(run.id, std::slice::from_ref(&waits)).await), 1);
    assert_eq!(mine(desk.tenure.charge(run.id, &[waits]).await), 0, "an attempt is charged once");
    let rest = mine(desk.tenure.settle(&run, UnitPick::Fresh { after: 0, limit: 10 }, &effect).await);
    assert!(matches!(&rest, SettleOutcome::Settled(counts) if counts.settled == 2 && counts.taken == 2), "{rest:?}");
    let again = loop {
        match mine(desk.tenure.settle(&run, UnitPick::Retry { limit: 10 }, &effect).await) {
            SettleOutcome::Nothing => tokio::task::yield_now().await,
            other => break other,
        }
    };
    assert!(matches!(&again, SettleOutcome::Failed { units, .. } if units == &[(b, 1)]), "{again:?}");
    assert_eq!(mine(desk.tenure.charge(run.id, &[charge(1, None)]).await), 1);
    let ended = mine(desk.tenure.finish_run(run.id).await);
    assert_eq!(ended, FinishOutcome::Finished(bursar::domain::run::RunState::CompleteSetAside));
    let unit = desk.unit(&run, "b").await;
    assert_eq!((unit.state, unit.attempts), (UnitState::SetAside, 2));
    desk.audit_is_clean().await;
}

async fn a_batch_names_its_cursor_and_a_wait_that_is_not_over_is_told<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", everything()).await;
    desk.import("adyen", bulk("b", 30, 1)).await;
    let run = desk.planned(&job).await;
    let first = desk.batch(&run, UnitPick::Fresh { after: 0, limit: 20 }).await;
    let SettleOutcome::Settled(first) = first else { panic!("{first:?}") };
    let second = desk.batch(&run, UnitPick::Fresh { after: first.last_unit, limit: 20 }).await;
    assert!(matches!(second, SettleOutcome::Settled(counts) if counts.taken == 10), "{second:?}");
    let reopened = desk.run(&job, desk.now().await).await;
    assert_eq!(desk.plan_from(&reopened, &PlanSource::Keys(vec!["k".to_owned()]), 5).await, 1);
    let unit = desk.units(&reopened).await[0].id;
    let again_in = Some(Duration::from_hours(1));
    let charge = Charge { unit, attempts: 0, error: "later".to_owned(), again_in };
    assert_eq!(mine(desk.tenure.charge(reopened.id, &[charge]).await), 1);
    let pending = mine(desk.tenure.finish_run(reopened.id).await);
    let FinishOutcome::Pending { units: 1, fresh: 0, next_in: Some(wait) } = pending else { panic!("{pending:?}") };
    assert!(wait > Duration::from_mins(59) && wait <= Duration::from_hours(1), "{wait:?}");
}

async fn a_key_is_the_same_again_when_the_same_is_settled_again_after_a_loss<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", everything()).await;
    desk.import("adyen", vec![capture("a1", "acme", "EUR", "1.00")]).await;
    let run = desk.settled(&job).await;
    let key = desk.unit(&run, "EUR:acme").await.instructions[0].key.clone();
    // The store forgets: what was settled is gone, by hand, and is settled again under the next term.
    desk.database
        .broken_by(
            "delete from bursar.instruction; delete from bursar.posting;
             delete from bursar.journal; update bursar.entry set unit_id = null; delete from bursar.unit;
             delete from bursar.batch; update bursar.run set state = 'planning'",
        )
        .await;
    let mut desk = desk;
    desk.succeed().await;
    desk.plan(&run).await;
    let settled = mine(desk.tenure.settle(&run, UnitPick::Fresh { after: 0, limit: 10 }, &effect(&run)).await);
    assert!(matches!(settled, SettleOutcome::Settled(_)), "{settled:?}");
    let unit = desk.unit(&run, "EUR:acme").await;
    assert_eq!(unit.instructions[0].key, key);
    assert_eq!(unit.term, Some(2));
}
