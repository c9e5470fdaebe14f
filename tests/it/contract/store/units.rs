//! Units of a run: planned page by page, settled once, charged once, and a run that ends when none is pending.

use std::time::Duration;

use bursar::domain::run::RunState;
use bursar::domain::unit::UnitState;
use bursar::store::{BatchCounts, Charge, FinishOutcome, OpenRun, PlanOutcome, SettleOutcome, TenureStore, UnitPick};

use super::bench::{Bench, LATER, SOON, charge, fresh, keys, mark, mine, probe, refusing};

/// Takes units whose wait is over, as soon as one is.
async fn retried(tenure: &dyn TenureStore, run: &OpenRun, effect: &bursar::store::Effect) -> SettleOutcome {
    loop {
        match mine(tenure.settle(run, UnitPick::Retry { limit: 10 }, effect).await) {
            SettleOutcome::Nothing => tokio::task::yield_now().await,
            other => break other,
        }
    }
}

pub async fn planning_goes_page_by_page_in_byte_order_and_may_be_repeated(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.opened(tenure, probe("job")).await;
    let source = keys(&["zeta", "a", "b", "a", "Ärger", "Zeta", "店"]);
    let first = mine(tenure.plan_page(&run, &source, None, 2).await);
    assert_eq!(first, PlanOutcome::Planned { units: 2, next: Some("a".to_owned()) });
    let again = mine(tenure.plan_page(&run, &source, None, 2).await);
    assert_eq!(again, PlanOutcome::Planned { units: 0, next: Some("a".to_owned()) });
    // Until the last page it is neither worked on nor ended.
    assert_eq!(mine(tenure.settle(&run, fresh(9), &mark()).await), SettleOutcome::Nothing);
    assert!(mine(tenure.take_calls(&run, 9).await).is_empty());
    let unit = bench.unit(run.id, "a").await.id;
    assert_eq!(mine(tenure.settle(&run, UnitPick::Exactly(vec![unit]), &mark()).await), SettleOutcome::Nothing);
    assert_eq!(mine(tenure.finish_run(run.id).await), FinishOutcome::NotOpen(RunState::Planning));
    let second = mine(tenure.plan_page(&run, &source, Some("a"), 2).await);
    assert_eq!(second, PlanOutcome::Planned { units: 2, next: Some("zeta".to_owned()) });
    let last = mine(tenure.plan_page(&run, &source, Some("zeta"), 2).await);
    assert_eq!(last, PlanOutcome::Planned { units: 2, next: None });
    let found: Vec<String> = bench.units(run.id).await.into_iter().map(|unit| unit.key).collect();
    assert_eq!(found, ["Zeta", "a", "b", "zeta", "Ärger", "店"]);
    let late = mine(tenure.plan_page(&run, &keys(&["more"]), None, 2).await);
    assert_eq!(late, PlanOutcome::NotPlanning(RunState::Open));
    assert_eq!(bench.units(run.id).await.len(), 6);
}

pub async fn a_run_without_units_ends_at_once(bench: &Bench) {
    let leads = bench.lead(1).await;
    let run = bench.planned(leads.as_ref(), probe("job"), &[]).await;
    assert_eq!(mine(leads.finish_run(run.id).await), FinishOutcome::Finished(RunState::Complete));
    assert_eq!(mine(leads.finish_run(run.id).await), FinishOutcome::NotOpen(RunState::Complete));
    assert!(mine(leads.open_runs().await).is_empty());
}

pub async fn a_batch_takes_units_in_their_order_and_names_its_cursor(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, probe("job"), &["a", "b", "c", "d", "e"]).await;
    let ids: Vec<i64> = bench.units(run.id).await.into_iter().map(|unit| unit.id).collect();
    let first = mine(tenure.settle(&run, fresh(2), &mark()).await);
    let SettleOutcome::Settled(BatchCounts { batch, .. }) = first else { panic!("{first:?}") };
    assert!(batch > 0, "it names its row");
    let counts = BatchCounts { settled: 2, taken: 2, last_unit: ids[1], batch, ..BatchCounts::default() };
    assert_eq!(first, SettleOutcome::Settled(counts));
    let past = mine(tenure.settle(&run, UnitPick::Fresh { after: ids[2], limit: 1 }, &mark()).await);
    assert!(matches!(past, SettleOutcome::Settled(counts) if counts.last_unit == ids[3]), "{past:?}");
    let exactly = UnitPick::Exactly(vec![ids[0], ids[4]]);
    let half = mine(tenure.settle(&run, exactly.clone(), &mark()).await);
    assert!(matches!(half, SettleOutcome::Settled(counts) if counts.taken == 1), "as far as pending: {half:?}");
    assert_eq!(mine(tenure.settle(&run, exactly, &mark()).await), SettleOutcome::Nothing);
    let left = FinishOutcome::Pending { units: 1, fresh: 1, next_in: None };
    assert_eq!(mine(tenure.finish_run(run.id).await), left);
    assert!(matches!(mine(tenure.settle(&run, fresh(9), &mark()).await), SettleOutcome::Settled(c) if c.taken == 1));
    assert_eq!(mine(tenure.settle(&run, fresh(9), &mark()).await), SettleOutcome::Nothing, "each is settled once");
    let before = bench.units(run.id).await;
    assert!(before.iter().all(|unit| unit.state == UnitState::Settled && unit.term == Some(1)), "{before:?}");
    assert_eq!(mine(tenure.finish_run(run.id).await), FinishOutcome::Finished(RunState::Complete));
    let view = bench.store.run_by_id(run.id).await.expect("an answer").expect("there is the run");
    assert_eq!((view.summary.units.settled, view.batches), (5, vec![(1, 4)]));
}

pub async fn units_that_failed_are_taken_again_after_their_wait_and_set_aside_in_the_end(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, probe("job"), &["a", "b", "c"]).await;
    let effect = refusing("b");
    let before = bench.picture().await;
    let failed = mine(tenure.settle(&run, fresh(10), &effect).await);
    let SettleOutcome::Failed { units, error } = failed else { panic!("{failed:?}") };
    assert_eq!((units.len(), error.message.as_str(), error.permanent), (3, "b is refused", false));
    assert_eq!(bench.picture().await, before, "a batch that failed has written nothing");
    let (b, attempts) = units[1];
    assert_eq!(attempts, 0);
    assert_eq!(mine(tenure.charge(run.id, &[charge(b, 0, SOON)]).await), 1);
    assert_eq!(mine(tenure.charge(run.id, &[charge(b, 0, SOON)]).await), 0, "an attempt is charged once");
    let rest = mine(tenure.settle(&run, fresh(10), &effect).await);
    assert!(matches!(&rest, SettleOutcome::Settled(counts) if counts.settled == 2 && counts.taken == 2), "{rest:?}");
    let again = retried(tenure, &run, &effect).await;
    assert!(matches!(&again, SettleOutcome::Failed { units, .. } if units == &[(b, 1)]), "{again:?}");
    assert_eq!(mine(tenure.charge(run.id, &[charge(b, 1, None)]).await), 1);
    assert_eq!(mine(tenure.charge(run.id, &[charge(b, 2, None)]).await), 0, "it is set aside already");
    let unit = bench.unit(run.id, "b").await;
    assert_eq!((unit.state, unit.attempts, unit.term), (UnitState::SetAside, 2, Some(1)));
    assert_eq!((unit.last_error.as_deref(), unit.next_attempt_at), (Some("it failed"), None));
    assert_eq!(mine(tenure.settle(&run, UnitPick::Exactly(vec![b]), &mark()).await), SettleOutcome::Nothing);
    assert_eq!(mine(tenure.finish_run(run.id).await), FinishOutcome::Finished(RunState::CompleteSetAside));
    assert_eq!(mine(tenure.finish_run(run.id).await), FinishOutcome::NotOpen(RunState::CompleteSetAside));
}

pub async fn a_wait_that_is_not_over_is_told_and_kept(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, probe("job"), &["a", "b"]).await;
    let ids: Vec<i64> = bench.units(run.id).await.into_iter().map(|unit| unit.id).collect();
    assert_eq!(mine(tenure.charge(run.id, &[charge(ids[0], 0, LATER)]).await), 1);
    let retry = UnitPick::Retry { limit: 10 };
    assert_eq!(mine(tenure.settle(&run, retry, &mark()).await), SettleOutcome::Nothing, "it waits");
    let pending = mine(tenure.finish_run(run.id).await);
    let FinishOutcome::Pending { units: 2, fresh: 1, next_in: Some(wait) } = pending else { panic!("{pending:?}") };
    assert!(wait > Duration::from_mins(58) && wait <= Duration::from_hours(1), "{wait:?}");
    // Fresh is what was never tried.
    let settled = mine(tenure.settle(&run, fresh(10), &mark()).await);
    assert!(matches!(settled, SettleOutcome::Settled(counts) if counts.taken == 1 && counts.last_unit == ids[1]));
}

pub async fn a_charge_counts_only_where_its_unit_is_as_expected(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, probe("job"), &["a", "b", "c"]).await;
    let other = bench.planned(tenure, probe("other"), &["a"]).await;
    let ids: Vec<i64> = bench.units(run.id).await.into_iter().map(|unit| unit.id).collect();
    mine(tenure.settle(&run, UnitPick::Exactly(vec![ids[2]]), &mark()).await);
    let before = bench.picture().await;
    let foreign = bench.unit(other.id, "a").await.id;
    for (wrong, why) in [
        (charge(ids[0], 1, None), "another number of attempts"),
        (charge(ids[2], 0, None), "settled"),
        (charge(foreign, 0, None), "of another run"),
        (charge(i64::MAX, 0, None), "no unit"),
    ] {
        assert_eq!(mine(tenure.charge(run.id, &[wrong]).await), 0, "{why}");
    }
    assert_eq!(bench.picture().await, before, "nothing changed");
    // Those that are as expected count beside those that are not; errors are kept within a bound.
    let long = Charge { error: "x".repeat(5000), ..charge(ids[0], 0, LATER) };
    assert_eq!(mine(tenure.charge(run.id, &[long, charge(ids[1], 3, None)]).await), 1);
    let unit = bench.unit(run.id, "a").await;
    assert_eq!(unit.last_error.map(|error| error.len()), Some(1000));
    assert_eq!(bench.unit(run.id, "b").await.attempts, 0);
}
