//! What a promotion finds of the terms before it: deaths counted where nothing was done, and only there.

use std::collections::BTreeSet;
use std::sync::Arc;

use bursar::domain::run::RunState;
use bursar::domain::unit::UnitState;
use bursar::store::{
    CallFate, Entered, Execution, GiveUpOutcome, OpenRun, PlanOutcome, PlanSource, Recovery, RequestState,
    SettleOutcome, TenureStore, UnitPick,
};

use super::bench::{Bench, call_record, calling, fresh, keys, mark, mine, probe};

/// A new leader on a term, and what it found.
async fn succeeded(bench: &Bench, term: i64) -> (Arc<dyn TenureStore>, Recovery) {
    let tenure = bench.lead(term).await;
    let found = mine(tenure.recover().await);
    assert_eq!(mine(tenure.recover().await), Recovery::default(), "recovering twice changes nothing");
    (tenure, found)
}

/// Brings a run that is given up to its end, in pages of that size; answers how many it took.
async fn given_up(tenure: &dyn TenureStore, run: i64, page: u32) -> u32 {
    let (mut pages, mut from) = (0, 0);
    loop {
        pages += 1;
        match mine(tenure.give_up(run, from, page).await) {
            GiveUpOutcome::Going { after } => {
                assert!(after > from, "pages go forward");
                from = after;
            }
            GiveUpOutcome::Ended(state) => {
                assert_eq!(state, RunState::CompleteSetAside);
                assert_eq!(mine(tenure.give_up(run, 0, page).await), GiveUpOutcome::NotGivenUp(state), "once");
                return pages;
            }
            GiveUpOutcome::NotGivenUp(state) => panic!("run {run} is {state:?}"),
        }
    }
}

/// Why the run is given up, as whoever leads finds it among the open ones.
async fn why_given_up(tenure: &dyn TenureStore, run: i64) -> Option<String> {
    let open = mine(tenure.open_runs().await);
    open.into_iter().find(|open| open.id == run).expect("it has not ended").given_up
}

/// Three leaders die over the runs; the fourth leads.
async fn three_deaths(bench: &Bench, mut leads: Arc<dyn TenureStore>, runs: &[&OpenRun]) -> Arc<dyn TenureStore> {
    for term in 2..=4 {
        for run in runs {
            mine(leads.begin_work(run.id).await);
        }
        (leads, _) = succeeded(bench, term).await;
    }
    leads
}

pub async fn a_run_whose_leaders_died_is_given_up_page_by_page_and_a_successor_goes_on(bench: &Bench) {
    let first = bench.lead(1).await;
    let run = bench.planned(first.as_ref(), probe("deadly"), &["a", "b", "c", "d", "e", "f", "g"]).await;
    let calls = bench.planned(first.as_ref(), calling("calls", true), &["a", "b"]).await;
    assert_eq!(mine(first.give_up(run.id, 0, 3).await), GiveUpOutcome::NotGivenUp(RunState::Open));
    assert_eq!(why_given_up(first.as_ref(), run.id).await, None);
    let leads = three_deaths(bench, first, &[&run, &calls]).await;
    // Marked and no more: no number of units makes a promotion longer. Nothing of it is claimed all the same.
    assert_eq!(bench.run_state(run.id).await, (RunState::Open, 3));
    let why = why_given_up(leads.as_ref(), run.id).await.expect("it is given up");
    assert!(why.starts_with("3 leaders died"), "{why}");
    let in_state = async |state| bench.units(run.id).await.iter().filter(|unit| unit.state == state).count();
    assert_eq!(in_state(UnitState::Pending).await, 7);
    assert_eq!(mine(leads.settle(&run, fresh(10), &mark()).await), SettleOutcome::Nothing);
    let unit = bench.unit(run.id, "b").await.id;
    assert_eq!(mine(leads.settle(&run, UnitPick::Exactly(vec![unit]), &mark()).await), SettleOutcome::Nothing);
    assert_eq!(mine(leads.take_calls(&calls, 10).await), []);
    let GiveUpOutcome::Going { after } = mine(leads.give_up(run.id, 0, 3).await) else { panic!("four are left") };
    assert_eq!((in_state(UnitState::SetAside).await, in_state(UnitState::Pending).await), (3, 4));
    let request = bench.ask_retry(run.id, &[]).await;
    let refused = mine(leads.execute(request, Execution::Retry { run: run.id, keys: BTreeSet::new() }).await);
    assert!(matches!(&refused, RequestState::Refused { why } if why.contains("being given up")), "{refused:?}");
    // The leader is gone between two pages; what it began the next one ends, without counting anything.
    let old = leads;
    let (leads, found) = succeeded(bench, 5).await;
    assert_eq!(found, Recovery::default(), "over a run that is given up nobody dies");
    assert!(matches!(old.give_up(run.id, after, 3).await, Ok(Entered::Fenced(Some(_)))));
    assert_eq!((bench.run_state(run.id).await, in_state(UnitState::Pending).await), ((RunState::Open, 3), 4));
    assert_eq!(why_given_up(leads.as_ref(), run.id).await.as_ref(), Some(&why));
    assert_eq!(given_up(leads.as_ref(), run.id, 3).await, 2);
    assert_eq!(given_up(leads.as_ref(), calls.id, 2).await, 2, "a full page may be the last");
    assert_eq!(bench.run_state(run.id).await, (RunState::CompleteSetAside, 3));
    let units = bench.units(run.id).await;
    assert!(units.iter().all(|unit| unit.state == UnitState::SetAside && unit.last_error.as_ref() == Some(&why)));
    let mut terms: Vec<_> = units.iter().map(|unit| unit.term.expect("it ended")).collect();
    terms.sort_unstable();
    assert_eq!(terms, [4, 4, 4, 5, 5, 5, 5]);
}

pub async fn a_run_that_cannot_be_planned_is_withdrawn_page_by_page_and_a_successor_goes_on(bench: &Bench) {
    let leads = bench.lead(1).await;
    let run = bench.opened(leads.as_ref(), probe("job")).await;
    mine(leads.begin_work(run.id).await);
    mine(leads.plan_page(&run, &keys(&["a", "b", "c", "d", "e"]), None, 4).await);
    let failing = PlanSource::Query("select no_such_column from no_such_table".to_owned());
    let PlanOutcome::SetAside { error } = mine(leads.plan_page(&run, &failing, Some("d"), 4).await) else {
        panic!("the query fails")
    };
    // Given up for good, whatever its query would give by now.
    assert_eq!((bench.run_state(run.id).await.0, bench.units(run.id).await.len()), (RunState::Planning, 4));
    let again = mine(leads.plan_page(&run, &keys(&["a", "b", "c", "d", "e"]), Some("d"), 4).await);
    assert_eq!(again, PlanOutcome::SetAside { error: error.clone() });
    assert_eq!(why_given_up(leads.as_ref(), run.id).await, Some(error));
    assert!(matches!(mine(leads.give_up(run.id, 0, 3).await), GiveUpOutcome::Going { .. }));
    assert_eq!(bench.units(run.id).await.len(), 1);
    let (leads, found) = succeeded(bench, 2).await;
    assert_eq!(found, Recovery::default(), "over a run that is given up nobody dies");
    assert_eq!(given_up(leads.as_ref(), run.id, 3).await, 1);
    assert_eq!(bench.run_state(run.id).await, (RunState::CompleteSetAside, 0));
    assert!(bench.units(run.id).await.is_empty());
    let request = bench.ask_retry(run.id, &[]).await;
    let execution = Execution::Retry { run: run.id, keys: BTreeSet::new() };
    assert_eq!(mine(leads.execute(request, execution).await), RequestState::Done { run: run.id, units: 0 });
    assert_eq!(bench.run_state(run.id).await.0, RunState::Planning);
    assert_eq!(bench.plan(leads.as_ref(), &run, &keys(&["a", "b"]), 10).await, 2, "it is planned again");
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
    assert_eq!(given_up(leads.as_ref(), deadly.id, 100).await, 1);
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
    assert_eq!(given_up(leads.as_ref(), run.id, 100).await, 1);
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
