//! What a promotion finds of the terms before it: deaths counted where nothing was done, and only there.

use std::collections::BTreeSet;
use std::sync::Arc;

use bursar::domain::run::RunState;
use bursar::domain::unit::UnitState;
use bursar::store::{CallFate, Execution, Recovery, RequestState, SettleOutcome, TenureStore};

use super::bench::{Bench, call_record, calling, fresh, keys, mark, mine, probe};

/// A new leader on a term, and what it found.
async fn succeeded(bench: &Bench, term: i64) -> (Arc<dyn TenureStore>, Recovery) {
    let tenure = bench.lead(term).await;
    let found = mine(tenure.recover().await);
    assert_eq!(mine(tenure.recover().await), Recovery::default(), "recovering twice changes nothing");
    (tenure, found)
}

pub async fn a_run_whose_leaders_die_three_times_without_progress_is_set_aside_and_others_go_on(bench: &Bench) {
    let mut leads = bench.lead(1).await;
    let deadly = bench.planned(leads.as_ref(), probe("deadly"), &["a", "b"]).await;
    let other = bench.planned(leads.as_ref(), probe("other"), &["a", "b", "c"]).await;
    for death in 1..=3 {
        for run in [&deadly, &other] {
            mine(leads.begin_work(run.id).await);
            mine(leads.begin_work(run.id).await);
        }
        assert_eq!(mine(leads.recover().await), Recovery::default(), "its own work is no lower term's");
        assert!(matches!(mine(leads.settle(&other, fresh(1), &mark()).await), SettleOutcome::Settled(_)));
        let found;
        (leads, found) = succeeded(bench, i64::from(death) + 1).await;
        assert_eq!(found.runs_taken_over, 2);
        assert_eq!(found.runs_set_aside, if death == 3 { vec![deadly.id] } else { Vec::new() }, "death {death}");
        assert_eq!(bench.run_state(deadly.id).await.1, death);
    }
    assert_eq!(bench.run_state(deadly.id).await, (RunState::CompleteSetAside, 3));
    assert_eq!(bench.run_state(other.id).await, (RunState::Open, 0));
    for unit in bench.units(deadly.id).await {
        assert_eq!((unit.state, unit.term, unit.attempts), (UnitState::SetAside, Some(4), 0));
        assert!(unit.last_error.expect("it says why").starts_with("3 leaders died"));
    }
    // An operator's retry opens it again, and forgets the deaths.
    let request = bench.ask_retry(deadly.id, &[]).await;
    let done = mine(leads.execute(request, Execution::Retry { run: deadly.id, keys: BTreeSet::new() }).await);
    assert_eq!(done, RequestState::Done { run: deadly.id, units: 2 });
    assert_eq!(bench.run_state(deadly.id).await, (RunState::Open, 0));
    let open: Vec<i64> = mine(leads.open_runs().await).iter().map(|run| run.id).collect();
    assert_eq!(open, [deadly.id, other.id]);
    assert!(matches!(mine(leads.settle(&deadly, fresh(10), &mark()).await), SettleOutcome::Settled(_)));
}

pub async fn neither_a_planned_end_nor_a_leader_that_lived_on_counts_as_a_death(bench: &Bench) {
    let mut leads = bench.lead(1).await;
    let run = bench.planned(leads.as_ref(), probe("job"), &["a"]).await;
    for term in 2..=5 {
        mine(leads.begin_work(run.id).await);
        mine(leads.release().await);
        let found;
        (leads, found) = succeeded(bench, term).await;
        assert_eq!(found, Recovery::default(), "a planned end leaves nothing");
    }
    for (term, end) in [(6, "session_lost"), (7, "fenced"), (8, "drain")] {
        mine(leads.begin_work(run.id).await);
        bench.store.note_end(leads.claim(), end, None).await.expect("an answer");
        let found;
        (leads, found) = succeeded(bench, term).await;
        assert_eq!((found.runs_taken_over, bench.run_state(run.id).await.1), (1, 0), "{end}");
    }
    mine(leads.begin_work(run.id).await);
    bench.store.note_end(leads.claim(), "fault", None).await.expect("an answer");
    succeeded(bench, 9).await;
    assert_eq!(bench.run_state(run.id).await.1, 1, "a fault counts");
}

pub async fn a_run_set_aside_while_it_was_planned_is_planned_again_by_a_retry(bench: &Bench) {
    let mut leads = bench.lead(1).await;
    let run = bench.opened(leads.as_ref(), probe("job")).await;
    let source = keys(&["a", "b", "c"]);
    mine(leads.plan_page(&run, &source, None, 1).await);
    for term in 2..=4 {
        mine(leads.begin_work(run.id).await);
        (leads, _) = succeeded(bench, term).await;
    }
    assert_eq!(bench.run_state(run.id).await.0, RunState::CompleteSetAside);
    let request = bench.ask_retry(run.id, &[]).await;
    let execution = Execution::Retry { run: run.id, keys: BTreeSet::new() };
    assert_eq!(mine(leads.execute(request, execution).await), RequestState::Done { run: run.id, units: 1 });
    assert_eq!(bench.run_state(run.id).await.0, RunState::Planning);
    mine(leads.plan_page(&run, &source, Some("a"), 10).await);
    assert_eq!(bench.units(run.id).await.iter().filter(|unit| unit.state == UnitState::Pending).count(), 3);
}

pub async fn what_a_lower_term_left_on_the_wire_is_unknown_or_held_and_in_doubt_for_good(bench: &Bench) {
    let leads = bench.lead(1).await;
    let asked_again = bench.planned(leads.as_ref(), calling("idempotent", true), &["a"]).await;
    let once = bench.planned(leads.as_ref(), calling("once", false), &["a", "b"]).await;
    assert_eq!(mine(leads.take_calls(&asked_again, 10).await).len(), 1);
    let calls = mine(leads.take_calls(&once, 10).await);
    let done = call_record(calls[1].instruction, 1, CallFate::Done);
    assert_eq!(mine(leads.record_calls(once.id, std::slice::from_ref(&done)).await), 1);
    assert_eq!(mine(leads.recover().await), Recovery::default(), "its own are not lost");
    let (leads, found) = succeeded(bench, 2).await;
    assert_eq!(found.calls_unknown, 2);
    let (a, b, c) =
        (bench.unit(asked_again.id, "a").await, bench.unit(once.id, "a").await, bench.unit(once.id, "b").await);
    let shown = |unit: &bursar::store::UnitView| {
        let call = unit.instructions[0].clone();
        (unit.state, call.state, call.reason, call.in_doubt)
    };
    assert_eq!(shown(&a), (UnitState::Pending, "unknown".to_owned(), None, true));
    assert_eq!(shown(&b), (UnitState::SetAside, "held".to_owned(), Some("unknown".to_owned()), true));
    assert_eq!(shown(&c), (UnitState::Settled, "paid".to_owned(), None, false));
    let again = mine(leads.take_calls(&asked_again, 10).await);
    assert!(again.len() == 1 && again[0].in_doubt && again[0].attempt == 2, "it waits for nothing: {again:?}");
    // Nobody knows what came of it: a retry does not send it again.
    let request = bench.ask_retry(once.id, &[]).await;
    let refused = mine(leads.execute(request, Execution::Retry { run: once.id, keys: BTreeSet::new() }).await);
    let RequestState::Refused { why } = refused else { panic!("{refused:?}") };
    assert!(why.contains("1 have an instruction whose outcome is unknown"), "{why}");
    assert_eq!(shown(&bench.unit(once.id, "a").await), shown(&b));
}
