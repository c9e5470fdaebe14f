//! One history, told by every store: what people read of it is the same, number for number and key for key.

use std::collections::BTreeSet;

use bursar::domain::entry::EntryKind;
use bursar::domain::job::LedgerDefinition;
use bursar::domain::run::RunState;
use bursar::domain::unit::UnitState;
use bursar::store::{
    BatchError, BatchHook, Charge, Effect, Execution, ImportOutcome, PlanSource, RequestKind, RequestState, RunFilter,
    SettleOutcome, StoryFilter, UnitFilter, UnitPick,
};
use serde_json::{Value, json};

use super::desk::{Desk, Ground, SqliteFile, actor, bulk, capture, currency, election, entry, everything, file, mine};
use super::support::Database;

/// What is another thing in every store and at every time: clocks, and who asks the database.
const OF_THE_MOMENT: &[&str] = &[
    "now",
    "at",
    "since",
    "opened_at",
    "finished_at",
    "ended_at",
    "last_at",
    "accepted_at",
    "worked_at",
    "reverted_at",
    "evaluated_until",
    "cutoff_at",
    "lateness_ms",
    "tenure_id",
    "role",
];

/// Masks what is of the moment, and keeps whether it is there.
fn masked(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, field)| {
                let mask = OF_THE_MOMENT.contains(&name.as_str()) && !field.is_null();
                let field = if mask { json!("there") } else { masked(field) };
                (name, field)
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(masked).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
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

/// Imports, two terms, every state of a unit, a revert, requests, a halt; and what the port then answers.
async fn told<D: Ground>() -> Value {
    let database = D::like("answers", async |_| {}).await;
    // Keys depend on it.
    let id = "update bursar.deployment set deployment_id = '00000000-0000-4000-8000-00000000000a'";
    database.broken_by(id).await;
    let mut desk = Desk::on(database).await;
    let limits = LedgerDefinition { maximum_payout: [(currency("EUR"), 5000)].into(), ..everything() };
    let job = desk.job("daily", limits).await;
    let wrong =
        desk.import("stripe", vec![capture("w1", "acme", "EUR", "3.00"), capture("w2", "δ/ä", "JPY", "7")]).await;
    desk.import(
        "adyen",
        vec![
            entry("a1", "acme", "EUR", EntryKind::Capture, "10.00", "0.30"),
            capture("a2", "rich", "EUR", "100.00"),
            entry("a3", "poor", "EUR", EntryKind::Refund, "-4.00", ""),
            entry("a4", "zero", "EUR", EntryKind::Capture, "1.00", "1.00"),
            capture("a5", "acme", "KWD", "0.001"),
        ],
    )
    .await;
    let (one, other) = (desk.planned(&job).await, desk.planned(&job).await);
    desk.settle(&one).await;
    desk.settle(&other).await;
    desk.store.revert_import(wrong.id, "wrong", &actor()).await.expect("it answers");
    desk.succeed().await;
    desk.settled(&job).await;
    let aside = set_aside_and_retried(&desk).await;
    let late = desk.import("adyen", bulk("late", 3, 2)).await;
    desk.planned(&job).await;
    desk.store.halt(&election(), "drill", &actor()).await.expect("it is halted");
    let changed = vec![capture("a2", "rich", "EUR", "100.01"), capture("new", "rich", "EUR", "1.00")];
    let conflict = desk.store.import(&file("adyen", "f.csv", changed), &actor()).await.expect("it answers");
    let ImportOutcome::Conflicts { shown, total: 1 } = conflict else { panic!("{conflict:?}") };
    let store = &desk.store;
    let every = RunFilter { limit: 100, ..RunFilter::default() };
    let runs = store.runs(&every).await.expect("it answers");
    let below = RunFilter { below: Some(runs[0].id), limit: 2, ..RunFilter::default() };
    let open = RunFilter { state: Some(RunState::Open), ..every.clone() };
    let mut shown_runs = Vec::new();
    for run in &runs {
        shown_runs.push(store.run_by_id(run.id).await.expect("it answers"));
    }
    let units = |filter: UnitFilter| async move { store.units(&filter).await.expect("it answers") };
    let all = UnitFilter { limit: 1000, ..UnitFilter::default() };
    let mut imports = Vec::new();
    for import in [wrong.id, late.id, 999] {
        imports.push(store.import_by_id(import).await.expect("it answers"));
    }
    let figures = store.figures(&desk.claim.election).await.expect("it answers");
    let report = store.audit().await.expect("it answers");
    assert!(report.is_clean(), "{report:#?}");
    masked(json!({
        "status": store.status().await.expect("it answers"),
        "runs": runs,
        "below": store.runs(&below).await.expect("it answers"),
        "open": store.runs(&open).await.expect("it answers"),
        "shown": shown_runs,
        "units": units(all.clone()).await,
        "settled": units(UnitFilter { state: Some(UnitState::Settled), above: Some(2), ..all.clone() }).await,
        "of_run": units(UnitFilter { run: Some(one.id), above: Some(1), limit: 2, ..all.clone() }).await,
        "one": units(UnitFilter { run: Some(aside), key: Some("b".to_owned()), ..all }).await,
        "imports": store.imports(100).await.expect("it answers"),
        "import": imports,
        "conflict": shown,
        "history": store.history(100).await.expect("it answers"),
        "stories": store.stories(&StoryFilter { limit: 100, ..StoryFilter::default() }).await.expect("it answers"),
        "figures": format!("{:?} {:?} {:?} {:?} {}", figures.runs, figures.units, figures.payouts, figures.runs_overdue, figures.halted),
        "audit": report,
    }))
}

/// A run with a unit that fails for good, and one that is tried again as an operator asks. Answers the run.
async fn set_aside_and_retried<D: Ground>(desk: &Desk<D>) -> i64 {
    let job = desk.job("probe", everything()).await;
    let run = desk.run(&job, desk.now().await).await;
    desk.plan_from(&run, &PlanSource::Keys(["a", "b", "c"].map(str::to_owned).into()), 10).await;
    let effect = Effect::Mark(std::sync::Arc::new(Refuses("b")));
    let pick = || UnitPick::Fresh { after: 0, limit: 10 };
    let SettleOutcome::Failed { units, .. } = mine(desk.tenure.settle(&run, pick(), &effect).await) else {
        panic!("b is refused")
    };
    for (unit, attempts) in &units[1..] {
        let charge = Charge { unit: *unit, attempts: *attempts, error: "it is refused".to_owned(), again_in: None };
        assert_eq!(mine(desk.tenure.charge(run.id, &[charge]).await), 1);
    }
    mine(desk.tenure.settle(&run, pick(), &effect).await);
    mine(desk.tenure.finish_run(run.id).await);
    let kind = RequestKind::RetryUnits { run: run.id, keys: BTreeSet::from(["c".to_owned()]) };
    let request = desk.store.request(&kind, &actor(), Some("looked into")).await.expect("filed");
    let waiting = mine(desk.tenure.requests().await);
    assert_eq!((waiting.len(), waiting[0].id, &waiting[0].kind), (1, request, &kind));
    let retry = || Execution::Retry { run: run.id, keys: BTreeSet::from(["c".to_owned()]) };
    let made = mine(desk.tenure.execute(request, retry()).await);
    assert_eq!(made, RequestState::Done { run: run.id, units: 1 });
    assert_eq!(mine(desk.tenure.execute(request, retry()).await), made, "it is executed once");
    assert_eq!(desk.store.request_state(request).await, Ok(Some(made)));
    mine(desk.tenure.settle(&run, pick(), &effect).await);
    mine(desk.tenure.finish_run(run.id).await);
    let kind = RequestKind::RetryUnits { run: run.id, keys: BTreeSet::from(["a".to_owned()]) };
    let request = desk.store.request(&kind, &actor(), None).await.expect("filed");
    let RequestState::Refused { why } = mine(
        desk.tenure.execute(request, Execution::Retry { run: run.id, keys: BTreeSet::from(["a".to_owned()]) }).await,
    ) else {
        panic!("a is settled")
    };
    assert!(why.contains("set aside"), "{why}");
    run.id
}

#[tokio::test]
async fn every_store_tells_the_same_of_the_same_history() {
    let (postgres, sqlite) = tokio::join!(told::<Database>(), told::<SqliteFile>());
    for (part, told) in postgres.as_object().expect("parts") {
        assert_eq!(
            serde_json::to_string_pretty(told).expect("JSON"),
            serde_json::to_string_pretty(&sqlite[part]).expect("JSON"),
            "{part}"
        );
    }
}
