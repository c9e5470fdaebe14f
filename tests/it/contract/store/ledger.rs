//! The ledger: what is bound, netted, carried and instructed, once, to the last minor unit.

use std::sync::Arc;

use bursar::domain::entry::EntryKind;
use bursar::domain::job::{HandlerDefinition, LedgerDefinition};
use bursar::domain::unit::UnitState;
use bursar::store::{JobChangeOutcome, JobRow, OpenRun, PlanOutcome, PlanSource, SettleOutcome, TenureStore, UnitPick};
use chrono::TimeDelta;

use super::bench::{
    Bench, actor, bulk, capture, change, charge, currency, definition, effect, entry, everything, fresh, mine,
};

async fn desk(bench: &Bench, ledger: LedgerDefinition) -> (Arc<dyn TenureStore>, JobRow) {
    let leads = bench.lead(1).await;
    let job = bench.job(leads.as_ref(), definition("daily", HandlerDefinition::Ledger(ledger))).await;
    (leads, job)
}

async fn assert_unit(bench: &Bench, run: &OpenRun, key: &str, state: UnitState, net: Option<&str>) {
    let unit = bench.unit(run.id, key).await;
    assert_eq!((unit.state, unit.net.as_deref()), (state, net), "{key}");
}

pub async fn amounts_are_exact_in_every_currency_and_the_same_in_unit_and_instruction(bench: &Bench) {
    let (leads, job) = desk(bench, everything()).await;
    let entries = vec![
        entry("a1", "acme", "JPY", EntryKind::Capture, "10000", "150"),
        capture("a2", "acme", "JPY", "1050"),
        capture("a3", "acme", "KWD", "18.600"),
        entry("a4", "acme", "EUR", EntryKind::Capture, "0.03", "0.01"),
        capture("a5", "acme", "CLF", "1.0001"),
    ];
    bench.import("psp", entries).await;
    let run = bench.settled(leads.as_ref(), &job).await;
    let expected = [("CLF", "1.0001"), ("EUR", "0.02"), ("JPY", "10900"), ("KWD", "18.600")];
    for (code, net) in expected {
        let unit = bench.unit(run.id, &format!("{code}:acme")).await;
        assert_eq!((unit.state, unit.net.as_deref()), (UnitState::Settled, Some(net)), "{code}");
        let [instruction] = unit.instructions.as_slice() else { panic!("one instruction: {unit:?}") };
        let shown = (instruction.amount.as_deref(), instruction.currency.as_deref(), instruction.state.as_str());
        assert_eq!(shown, (Some(net), Some(code), "pending"), "{code}");
    }
    let view = bench.store.run_by_id(run.id).await.expect("an answer").expect("there is the run");
    assert_eq!(view.paid_out, expected.map(|(code, net)| (code.to_owned(), net.to_owned())).into());
    assert_eq!((view.summary.units.total, view.summary.units.settled), (4, 4));
    // The same again: nothing is left to plan, and what is settled is not taken a second time.
    let again = mine(leads.settle(&run, fresh(10), &effect(&run)).await);
    assert_eq!(again, SettleOutcome::Nothing);
    assert!(bench.units(bench.settled(leads.as_ref(), &job).await.id).await.is_empty());
}

pub async fn a_negative_net_is_carried_into_the_next_run_of_its_job_and_of_no_other(bench: &Bench) {
    let of = |source: &str| LedgerDefinition { sources: [source.to_owned()].into(), ..everything() };
    let (leads, job) = desk(bench, of("adyen")).await;
    let tenure = leads.as_ref();
    let other = bench.job(tenure, definition("other", HandlerDefinition::Ledger(of("stripe")))).await;
    let greedy = bench.job(tenure, definition("greedy", HandlerDefinition::Ledger(of("nobody")))).await;
    let refund = entry("a2", "acme", "EUR", EntryKind::Refund, "-35.00", "");
    bench.import("adyen", vec![capture("a1", "acme", "EUR", "10.00"), refund]).await;
    let run = bench.settled(tenure, &job).await;
    assert_unit(bench, &run, "EUR:acme", UnitState::Carried, Some("-25.00")).await;
    assert!(bench.unit(run.id, "EUR:acme").await.instructions.is_empty());
    // Nothing but the carry is open, and it is below the minimum: no unit, again and again.
    for job in [&job, &job, &other, &greedy] {
        assert!(bench.units(bench.settled(tenure, job).await.id).await.is_empty(), "{}", job.definition.name);
    }
    bench.import("stripe", vec![capture("s1", "acme", "EUR", "1.00")]).await;
    for job in [&job, &greedy] {
        let units = bench.units(bench.settled(tenure, job).await.id).await;
        assert!(units.is_empty(), "{} does not select the source", job.definition.name);
    }
    let run = bench.settled(tenure, &other).await;
    assert_unit(bench, &run, "EUR:acme", UnitState::Settled, Some("1.00")).await;
    bench.import("adyen", vec![capture("a3", "acme", "EUR", "100.00")]).await;
    let run = bench.settled(tenure, &job).await;
    assert_unit(bench, &run, "EUR:acme", UnitState::Settled, Some("75.00")).await;
}

pub async fn what_a_job_carries_is_settled_by_it_whatever_it_selects_by_now(bench: &Bench) {
    let minima = [(currency("EUR"), 500), (currency("USD"), 500)].into();
    let (leads, mut job) = desk(bench, LedgerDefinition { minimum_payout: minima, ..everything() }).await;
    let tenure = leads.as_ref();
    let wrong = bench.import("psp", vec![capture("w1", "gone", "EUR", "9.00")]).await;
    bench.import("psp", vec![capture("a1", "acme", "EUR", "1.00"), capture("a2", "beta", "USD", "2.00")]).await;
    bench.settled(tenure, &job).await;
    bench.store.revert_import(wrong.id, "wrong", &actor()).await.expect("an answer");
    let narrow = LedgerDefinition {
        sources: ["adyen".to_owned()].into(),
        currencies: [currency("USD")].into(),
        merchants: ["acme".to_owned(), "zeta".to_owned()].into(),
        ..everything()
    };
    let mut edit = change(&job);
    edit.definition = Some(definition("daily", HandlerDefinition::Ledger(narrow.clone())));
    match mine(tenure.change_job(edit).await) {
        JobChangeOutcome::Changed(Some(row)) => job = *row,
        other => panic!("the row is as it was read: {other:?}"),
    }
    let unselected = vec![capture("n1", "acme", "EUR", "40.00"), capture("n2", "beta", "USD", "50.00")];
    bench.import("adyen", unselected).await;
    bench.import("adyen", vec![capture("n3", "zeta", "USD", "3.00")]).await;
    let found = bench.store.preview(&job.definition.name, &narrow, &[bench.now().await]).await.expect("an answer");
    let found: Vec<_> = found.iter().map(|line| (line.currency.as_str(), line.units, line.amount.as_str())).collect();
    assert_eq!(found, [("EUR", 2, "-8.00"), ("USD", 2, "5.00")]);
    let run = bench.settled(tenure, &job).await;
    assert_eq!(bench.units(run.id).await.len(), 4);
    assert_unit(bench, &run, "EUR:acme", UnitState::Settled, Some("1.00")).await;
    assert_unit(bench, &run, "EUR:gone", UnitState::Carried, Some("-9.00")).await;
    assert_unit(bench, &run, "USD:beta", UnitState::Settled, Some("2.00")).await;
    assert_unit(bench, &run, "USD:zeta", UnitState::Settled, Some("3.00")).await;
    // What it does not select is still there for whoever does.
    let other = bench.job(tenure, definition("other", HandlerDefinition::Ledger(everything()))).await;
    let run = bench.settled(tenure, &other).await;
    assert_unit(bench, &run, "EUR:acme", UnitState::Settled, Some("40.00")).await;
    assert_unit(bench, &run, "USD:beta", UnitState::Settled, Some("50.00")).await;
}

pub async fn below_the_minimum_is_carried_above_the_maximum_held_and_zero_settled(bench: &Bench) {
    let eur = currency("EUR");
    let limits =
        LedgerDefinition { minimum_payout: [(eur, 100)].into(), maximum_payout: [(eur, 1000)].into(), ..everything() };
    let (leads, job) = desk(bench, limits).await;
    let entries = vec![
        capture("a1", "below", "EUR", "0.99"),
        capture("a2", "least", "EUR", "1.00"),
        capture("a3", "most", "EUR", "10.00"),
        capture("a4", "above", "EUR", "10.01"),
        entry("a5", "zero", "EUR", EntryKind::Capture, "5.00", "5.00"),
        capture("a6", "free", "USD", "0.01"),
    ];
    bench.import("psp", entries).await;
    let run = bench.settled(leads.as_ref(), &job).await;
    for (key, state, instruction) in [
        ("EUR:below", UnitState::Carried, None),
        ("EUR:least", UnitState::Settled, Some(("pending", None))),
        ("EUR:most", UnitState::Settled, Some(("pending", None))),
        ("EUR:above", UnitState::Settled, Some(("held", Some("over_limit")))),
        ("EUR:zero", UnitState::Settled, None),
        ("USD:free", UnitState::Settled, Some(("pending", None))),
    ] {
        let unit = bench.unit(run.id, key).await;
        let found = unit.instructions.first().map(|i| (i.state.as_str(), i.reason.as_deref()));
        assert_eq!((unit.state, found), (state, instruction), "{key}");
    }
    // With a cent more the carry reaches the minimum.
    bench.import("psp", vec![capture("b1", "below", "EUR", "0.01")]).await;
    let run = bench.settled(leads.as_ref(), &job).await;
    assert_unit(bench, &run, "EUR:below", UnitState::Settled, Some("1.00")).await;
}

pub async fn what_is_not_available_before_the_cutoff_or_came_late_waits_for_the_next_run(bench: &Bench) {
    let (leads, job) = desk(bench, everything()).await;
    let tenure = leads.as_ref();
    let mut at_cutoff = capture("a1", "acme", "EUR", "1.00");
    let mut before = capture("a2", "acme", "EUR", "2.00");
    let cutoff = at_cutoff.available_at + TimeDelta::hours(1);
    at_cutoff.available_at = cutoff;
    before.available_at = cutoff - TimeDelta::microseconds(1);
    bench.import("psp", vec![at_cutoff, before]).await;
    let run = bench.run(tenure, &job, cutoff).await;
    bench.plan(tenure, &run, &PlanSource::Ledger(everything()), 10).await;
    bench.settle(tenure, &run).await;
    assert_unit(bench, &run, "EUR:acme", UnitState::Settled, Some("2.00")).await;
    // What comes in after a unit was settled, however early it was available.
    bench.import("psp", vec![capture("a3", "acme", "EUR", "0.50")]).await;
    assert_eq!(mine(tenure.settle(&run, fresh(10), &effect(&run)).await), SettleOutcome::Nothing);
    let run = bench.settled(tenure, &job).await;
    assert_unit(bench, &run, "EUR:acme", UnitState::Settled, Some("1.50")).await;
}

pub async fn two_runs_that_have_one_merchant_bind_each_entry_once(bench: &Bench) {
    let (leads, one) = desk(bench, everything()).await;
    let tenure = leads.as_ref();
    let other = bench.job(tenure, definition("other", HandlerDefinition::Ledger(everything()))).await;
    bench.import("psp", bulk("e", 10, 3)).await;
    let (first, second) = (bench.netted(tenure, &one).await, bench.netted(tenure, &other).await);
    let (first, second) = tokio::join!(bench.settle(tenure, &first), bench.settle(tenure, &second));
    assert_eq!((first.settled + second.settled, first.empty + second.empty), (10, 10));
    assert_eq!(first.instructions + second.instructions, 10);
    let again = bench.settled(tenure, &other).await;
    assert!(bench.units(again.id).await.is_empty(), "a bound entry is bound for ever");
}

pub async fn the_money_is_the_same_whatever_became_of_missed_ticks(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let now = bench.now().await;
    let cutoff = |n: i32| now - TimeDelta::minutes(10) + TimeDelta::minutes(1) * n;
    // After run_all five runs with their own cutoffs, after run_latest the newest, after skip the next one.
    let policies = [("run-all", 0..5), ("run-latest", 4..5), ("skip", 5..6)];
    let mut paid = Vec::new();
    for (policy, runs) in policies {
        let ledger = LedgerDefinition { sources: [policy.to_owned()].into(), ..everything() };
        let job = bench.job(tenure, definition(policy, HandlerDefinition::Ledger(ledger.clone()))).await;
        let amounts = [
            (0, "a", EntryKind::Capture, "100.00"),
            (1, "a", EntryKind::Refund, "-30.00"),
            (2, "b", EntryKind::Capture, "7.01"),
            (4, "a", EntryKind::Capture, "50.00"),
            (4, "b", EntryKind::Capture, "0.99"),
        ];
        let entries = amounts.iter().enumerate().map(|(n, (tick, merchant, kind, amount))| {
            let mut entry = entry(&format!("{policy}-{n}"), merchant, "EUR", *kind, amount, "");
            entry.available_at = cutoff(*tick) - TimeDelta::seconds(30);
            entry
        });
        bench.import(policy, entries.collect()).await;
        let mut of_merchant = std::collections::BTreeMap::<String, i64>::new();
        let count = runs.len();
        let mut instructions = 0;
        for n in runs {
            let run = bench.run(tenure, &job, cutoff(n)).await;
            bench.plan(tenure, &run, &PlanSource::Ledger(ledger.clone()), 50).await;
            bench.settle(tenure, &run).await;
            for unit in bench.units(run.id).await {
                for instruction in &unit.instructions {
                    instructions += 1;
                    let amount = instruction.amount.as_deref().expect("a payout has one");
                    let amount = currency("EUR").parse(amount).expect("an amount");
                    *of_merchant.entry(unit.key.clone()).or_default() += amount;
                }
            }
        }
        assert_eq!(instructions, if count == 5 { 4 } else { 2 }, "{policy}: each tick that runs pays what is its own");
        paid.push(of_merchant);
    }
    let expected = [("EUR:a".to_owned(), 12_000), ("EUR:b".to_owned(), 800)].into();
    assert_eq!(paid, vec![expected; 3]);
}

pub async fn a_unit_whose_sums_leave_the_range_is_set_aside_alone_and_binds_nothing(bench: &Bench) {
    let (leads, job) = desk(bench, everything()).await;
    let tenure = leads.as_ref();
    let most = "92233720368547758.07";
    let mut entries = bulk("b", 5, 2);
    entries.extend([capture("h1", "huge", "EUR", most), capture("h2", "huge", "EUR", "0.01")]);
    entries.push(capture("h3", "just", "EUR", most));
    let import = bench.import("psp", entries).await;
    let run = bench.netted(tenure, &job).await;
    let before = bench.picture().await;
    let first = mine(tenure.settle(&run, fresh(100), &effect(&run)).await);
    let SettleOutcome::Failed { units, error } = first else { panic!("{first:?}") };
    assert_eq!((units.len(), error.permanent), (7, true));
    assert!(error.message.contains("range"), "{error:?}");
    assert_eq!(bench.picture().await, before, "nothing changed");
    let huge = bench.unit(run.id, "EUR:huge").await.id;
    let others: Vec<i64> = units.iter().map(|unit| unit.0).filter(|id| *id != huge).collect();
    let settled = mine(tenure.settle(&run, UnitPick::Exactly(others), &effect(&run)).await);
    assert!(matches!(settled, SettleOutcome::Settled(counts) if counts.settled == 6 && counts.instructions == 6));
    assert_eq!(mine(tenure.charge(run.id, &[charge(huge, 0, None)]).await), 1);
    mine(tenure.finish_run(run.id).await);
    assert_unit(bench, &run, "EUR:huge", UnitState::SetAside, None).await;
    assert_unit(bench, &run, "EUR:just", UnitState::Settled, Some(most)).await;
    let view = bench.store.import_by_id(import.id).await.expect("an answer").expect("there is the import");
    assert_eq!((view.open, view.settled), (2, 11), "the bad unit bound nothing");
}

pub async fn planning_pairs_goes_page_by_page_in_byte_order_as_the_definition_selects(bench: &Bench) {
    let merchants = ["Zeta", "alpha", "a:b", "Ärger", "δ", "zeta", "店"];
    let selecting = LedgerDefinition {
        merchants: merchants.iter().map(|&merchant| merchant.to_owned()).collect(),
        currencies: [currency("EUR"), currency("USD")].into(),
        ..everything()
    };
    let (leads, job) = desk(bench, selecting.clone()).await;
    let tenure = leads.as_ref();
    let mut entries = vec![capture("x1", "elsewhere", "EUR", "1.00"), capture("x2", "zeta", "JPY", "1")];
    for (n, merchant) in merchants.iter().enumerate() {
        entries.push(capture(&format!("e{n}"), merchant, "EUR", "1.00"));
        entries.push(capture(&format!("u{n}"), merchant, "USD", "1.00"));
    }
    bench.import("psp", entries).await;
    let run = bench.run(tenure, &job, bench.now().await).await;
    let source = PlanSource::Ledger(selecting);
    let first = mine(tenure.plan_page(&run, &source, None, 3).await);
    let again = mine(tenure.plan_page(&run, &source, None, 3).await);
    let (PlanOutcome::Planned { units: 3, next: one }, PlanOutcome::Planned { units: 0, next: other }) = (first, again)
    else {
        panic!("a page is written once");
    };
    assert_eq!(one, other);
    assert_eq!(mine(tenure.settle(&run, fresh(9), &effect(&run)).await), SettleOutcome::Nothing, "it is planned");
    assert_eq!(bench.plan(tenure, &run, &source, 3).await, 11);
    let keys: Vec<String> = bench.units(run.id).await.into_iter().map(|unit| unit.key).collect();
    let mut sorted = keys.clone();
    sorted.sort();
    assert_eq!((keys.len(), &keys), (14, &sorted));
}

pub async fn a_preview_is_what_runs_one_after_the_other_would_take_and_changes_nothing(bench: &Bench) {
    let mut ledger = everything();
    ledger.minimum_payout = [(currency("EUR"), 600)].into();
    ledger.sources = ["psp".to_owned()].into();
    let (_leads, job) = desk(bench, ledger.clone()).await;
    let base = bench.now().await - TimeDelta::hours(10);
    let at = |hour: i64| base + TimeDelta::hours(hour);
    let available = |hour: i64, mut entry: bursar::domain::entry::NewEntry| {
        entry.available_at = at(hour);
        entry
    };
    let entries = vec![
        available(1, entry("e1", "acme", "EUR", EntryKind::Capture, "10.00", "0.25")),
        available(1, capture("e2", "beta", "EUR", "5.99")),
        available(3, capture("e3", "acme", "EUR", "2.00")),
        // At a cutoff, so after it.
        available(4, capture("e4", "acme", "JPY", "100")),
        available(6, capture("e5", "acme", "EUR", "1.00")),
    ];
    bench.import("psp", entries).await;
    bench.import("another", vec![available(1, capture("e1", "acme", "EUR", "77.00"))]).await;
    let before = bench.picture().await;
    let cutoffs = [at(0), at(2), at(4), at(5)];
    let found = bench.store.preview(&job.definition.name, &ledger, &cutoffs).await.expect("an answer");
    let shown: Vec<_> = found
        .iter()
        .map(|line| {
            let money = (line.amount.as_str(), line.fees.as_str(), line.paid.as_str());
            (line.cutoff, line.currency.as_str(), line.units, line.entries, line.payouts, money)
        })
        .collect();
    assert_eq!(bench.picture().await, before, "nothing changed");
    assert_eq!(
        shown,
        [
            (1, "EUR", 2, 2, 1, ("15.99", "0.25", "9.75")),
            (2, "EUR", 1, 1, 0, ("2.00", "0.00", "0.00")),
            (3, "JPY", 1, 1, 1, ("100", "0", "100")),
        ]
    );
    bench.store.hold_merchant("acme", "looked into", &actor()).await.expect("held");
    let held = bench.store.preview(&job.definition.name, &ledger, &cutoffs).await.expect("an answer");
    assert_eq!(held.iter().map(|line| (line.cutoff, line.units)).collect::<Vec<_>>(), [(1, 1)]);
    bench.store.release_merchant("acme", "was right", &actor()).await.expect("released");
}
