//! Jobs that go over to another election: as they are, with the ticks to come; what they had open stays.

use bursar::domain::run::{RunKind, RunState};
use bursar::domain::unit::UnitState;
use bursar::domain::{Claim, ElectionName, JobName};
use bursar::store::{
    CallFate, Entered, Execution, FinishOutcome, JobChangeOutcome, JobRow, OpenRun, PauseOutcome, RequestKind,
    RequestState, SettleOutcome, TakeOverOutcome, TenureStore, TickRecord, TicksOutcome, TicksRecord,
};
use chrono::TimeDelta;

use super::bench::{
    Bench, actor, call_record, calling, change, charge, claim_of, election, fresh, keys, mark, mine, new_job, probe,
};

fn other() -> Claim {
    claim_of(ElectionName::new("other").expect("a name"), 3)
}

fn name(job: &str) -> JobName {
    JobName::new(job).expect("a name")
}

async fn taken(tenure: &dyn TenureStore, job: &str, from: &ElectionName) -> JobRow {
    match mine(tenure.take_over_job(&name(job), from).await) {
        TakeOverOutcome::Taken(row) => *row,
        not => panic!("{job} is there: {not:?}"),
    }
}

async fn recorded(tenure: &dyn TenureStore, job: &JobRow, tick: TickRecord) -> TicksOutcome {
    let record = TicksRecord { evaluated_until: job.evaluated_until, ticks: vec![tick], job: job.clone() };
    mine(tenure.record_ticks(record).await)
}

fn was_opened(outcome: &TicksOutcome) -> bool {
    matches!(outcome, TicksOutcome::Recorded { opened, duplicates: 0 } if opened.len() == 1)
}

pub async fn a_job_goes_over_as_it_is_and_the_ticks_to_come_with_it(bench: &Bench) {
    let here = bench.lead(1).await;
    let there = bench.lead_of(&other()).await;
    let (old, new) = (election(), other().election);
    let row = bench.job(here.as_ref(), probe("job")).await;
    assert_eq!(bench.store.pause_job(&row.definition.name, "fees", &actor()).await, Ok(PauseOutcome::Done));
    let row = JobRow { paused: Some("fees".to_owned()), ..row };
    let before = bench.picture().await;
    for (job, from) in [("nobody", &old), ("job", &new)] {
        let found = mine(there.take_over_job(&name(job), from).await);
        assert_eq!(found, TakeOverOutcome::NotThere, "{job} is not in {from}");
    }
    assert_eq!(mine(here.take_over_job(&name("job"), &old).await), TakeOverOutcome::NotThere, "it is there already");
    assert_eq!(bench.picture().await, before, "nothing changed");

    let moved = taken(there.as_ref(), "job", &old).await;
    let mut definition = row.definition.clone();
    definition.election = new.clone();
    assert_eq!((&moved.definition, moved.fingerprint.clone()), (&definition, definition.fingerprint()));
    assert_eq!((moved.id, moved.evaluated_until), (row.id, row.evaluated_until), "it is evaluated as far as it was");
    assert_eq!((moved.paused.as_deref(), moved.pauses.len()), (Some("fees"), 0), "and paused as it was");
    assert_eq!((mine(here.pulse().await).jobs, mine(there.pulse().await).jobs), (0, 1));
    assert_eq!((mine(here.jobs().await).jobs, mine(there.jobs().await).jobs), (Vec::new(), vec![moved.clone()]));
    assert_eq!(mine(there.take_over_job(&name("job"), &old).await), TakeOverOutcome::NotThere, "it came already");

    // Whoever led it before fires no tick of it and changes nothing of it any more; whoever leads it now does.
    let before = bench.picture().await;
    assert_eq!(recorded(here.as_ref(), &row, bench.tick()).await, TicksOutcome::Moved);
    let stays = JobChangeOutcome::OtherElection(new.as_str().to_owned());
    assert_eq!(mine(here.change_job(change(&row)).await), stays);
    assert_eq!(bench.picture().await, before, "nothing changed");
    assert!(was_opened(&recorded(there.as_ref(), &moved, bench.tick()).await));
    assert!(matches!(mine(there.change_job(change(&moved)).await), JobChangeOutcome::Changed(Some(_))));

    // And back, under whatever term leads there by then; a job that was removed is nobody's.
    let later = bench.lead(2).await;
    let back = taken(later.as_ref(), "job", &new).await;
    assert_eq!((&back.definition, &back.fingerprint), (&row.definition, &row.fingerprint));
    mine(later.change_job(bursar::store::JobChange { definition: None, ..change(&back) }).await);
    assert_eq!(mine(there.take_over_job(&name("job"), &old).await), TakeOverOutcome::NotThere, "it was removed");
    assert!(matches!(mine(there.change_job(new_job(probe("job"))).await), JobChangeOutcome::Changed(Some(_))));
}

pub async fn what_a_moved_job_had_open_stays_where_it_was_opened_and_later_runs_see_it(bench: &Bench) {
    let here = bench.lead(1).await;
    let there = bench.lead_of(&other()).await;
    let calls = bench.planned(here.as_ref(), calling("job", true), &["a", "b"]).await;
    let manual = manual_run(bench, here.as_ref(), "job").await;
    let first = mine(here.take_calls(&calls, 1).await).remove(0);
    let moved = taken(there.as_ref(), "job", &election()).await;
    let late = there_opened(bench, there.as_ref(), &moved).await;

    // The new one sees what stands in the way of its run, and cannot touch it.
    let seen = mine(there.open_runs().await);
    let seen: Vec<_> = seen.iter().map(|run| (run.id, run.elsewhere)).collect();
    assert_eq!(seen, [(calls.id, true), (late.id, false)], "manual runs stand in no tick's way");
    assert_eq!(mine(there.pulse().await).open_runs, 1);
    let before = bench.picture().await;
    let done = [call_record(first.instruction, first.attempt, CallFate::Done)];
    assert!(mine(there.take_calls(&calls, 10).await).is_empty());
    assert_eq!(mine(there.record_calls(calls.id, &done).await), 0);
    assert_eq!(mine(there.settle(&manual, fresh(10), &mark()).await), SettleOutcome::Nothing);
    let unit = bench.unit(calls.id, "b").await.id;
    assert_eq!(mine(there.charge(calls.id, &[charge(unit, 0, None)]).await), 0);
    assert!(there.finish_run(calls.id).await.is_err());
    mine(there.recover().await);
    assert_eq!(bench.picture().await, before, "nothing changed");

    // The old one sees the later run too, and ends what it has under its own term.
    let seen = mine(here.open_runs().await);
    let seen: Vec<_> = seen.iter().map(|run| (run.id, run.kind, run.elsewhere)).collect();
    let of = |run: &OpenRun, elsewhere| (run.id, run.kind, elsewhere);
    let mut expected = vec![of(&calls, false), of(&manual, false), of(&late, true)];
    expected.sort_by_key(|(id, ..)| seen.iter().position(|(found, ..)| found == id));
    assert_eq!(seen, expected);
    assert_eq!(mine(here.record_calls(calls.id, &done).await), 1);
    let second = mine(here.take_calls(&calls, 10).await).remove(0);
    mine(here.record_calls(calls.id, &[call_record(second.instruction, second.attempt, CallFate::Done)]).await);
    assert_eq!(mine(here.finish_run(calls.id).await), FinishOutcome::Finished(RunState::Complete));
    let unit = bench.unit(calls.id, "b").await;
    assert_eq!((unit.state, unit.instructions[0].term), (UnitState::Settled, 1), "under the old election's term");
    let open = mine(there.open_runs().await);
    assert_eq!(open.iter().map(|run| (run.id, run.elsewhere)).collect::<Vec<_>>(), [(late.id, false)]);
    // With nothing open of it, and the job gone, the old one sees no more of it.
    mine(here.settle(&manual, fresh(10), &mark()).await);
    mine(here.finish_run(manual.id).await);
    assert!(mine(here.open_runs().await).is_empty());
}

/// A run of the job that a tick opens in its new election.
async fn there_opened(bench: &Bench, tenure: &dyn TenureStore, job: &JobRow) -> OpenRun {
    let mut tick = bench.tick();
    tick.due_at += TimeDelta::hours(1);
    assert!(was_opened(&recorded(tenure, job, tick.clone()).await));
    let mut runs = mine(tenure.open_runs().await);
    runs.retain(|run| !run.elsewhere && run.tick == tick.tick);
    runs.remove(0)
}

/// A manual run of the job, planned.
async fn manual_run(bench: &Bench, tenure: &dyn TenureStore, job: &str) -> OpenRun {
    let row =
        mine(tenure.jobs().await).jobs.into_iter().find(|row| row.definition.name.as_str() == job).expect("a row");
    let request = bench.store.request(&trigger(job), &actor(), None).await.expect("filed");
    let tick = bench.tick();
    let RequestState::Done { run, .. } =
        mine(tenure.execute(request, Execution::Open { job: Box::new(row), tick }).await)
    else {
        panic!("it is executed")
    };
    let runs = mine(tenure.open_runs().await);
    let run = runs.into_iter().find(|open| open.id == run).expect("it is open");
    assert_eq!(run.kind, RunKind::Manual);
    bench.plan(tenure, &run, &keys(&["m"]), 10).await;
    run
}

fn trigger(job: &str) -> RequestKind {
    RequestKind::Trigger { job: name(job), tick: None, cutoff: None }
}

pub async fn what_was_asked_for_goes_over_with_its_job_and_a_retry_stays_with_its_run(bench: &Bench) {
    let here = bench.lead(1).await;
    let there = bench.lead_of(&other()).await;
    let run = bench.planned(here.as_ref(), probe("job"), &["a"]).await;
    bench.job(here.as_ref(), probe("stays")).await;
    let file = async |kind: &RequestKind| bench.store.request(kind, &actor(), None).await.expect("filed");
    let done = file(&trigger("job")).await;
    mine(here.execute(done, Execution::Refuse("no".to_owned())).await);
    let at = bench.now().await;
    let waiting = [
        file(&trigger("job")).await,
        file(&RequestKind::Backfill { job: name("job"), from: at - TimeDelta::days(1), to: at }).await,
    ];
    let stays = [file(&trigger("stays")).await, bench.ask_retry(run.id, &[]).await];
    taken(there.as_ref(), "job", &election()).await;
    let ids = |requests: Vec<bursar::store::PendingRequest>| requests.iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids(mine(there.requests().await)), waiting);
    assert_eq!(ids(mine(here.requests().await)), stays);
    let refuse = Execution::Refuse("late".to_owned());
    assert!(here.execute(waiting[0], refuse.clone()).await.is_err(), "it is the new leader's");
    let refused = RequestState::Refused { why: "late".to_owned() };
    assert_eq!(mine(there.execute(waiting[0], refuse).await), refused);
    // What was asked for before is the job's own election's.
    assert_eq!(bench.store.request_state(done).await, Ok(Some(RequestState::Refused { why: "no".to_owned() })));
    assert_eq!(ids(mine(there.requests().await)), waiting[1..]);
    file(&trigger("job")).await;
    assert_eq!(mine(there.requests().await).len(), 2, "whoever asks from now on asks there");
}

pub async fn nothing_is_taken_from_an_election_that_is_halted_or_by_one_that_is(bench: &Bench) {
    let here = bench.lead(1).await;
    let there = bench.lead_of(&other()).await;
    bench.job(here.as_ref(), probe("job")).await;
    let halt = async |election: &ElectionName| {
        bench.store.halt(election, "drill", &actor()).await.expect("halted");
    };
    let resume = async |election: &ElectionName| {
        bench.store.resume(election, "over", &actor()).await.expect("resumed");
    };
    halt(&election()).await;
    let before = bench.picture().await;
    let kept = mine(there.take_over_job(&name("job"), &election()).await);
    assert!(matches!(&kept, TakeOverOutcome::Halted(halt) if halt.reason == "drill"), "{kept:?}");
    assert_eq!(bench.picture().await, before, "nothing changed");
    resume(&election()).await;
    halt(&other().election).await;
    assert!(matches!(there.take_over_job(&name("job"), &election()).await, Ok(Entered::Halted(_))));
    resume(&other().election).await;
    taken(there.as_ref(), "job", &election()).await;
    // Both ways at once: the gates are taken in one order.
    bench.job(here.as_ref(), probe("back")).await;
    let (old, new, job, back) = (election(), other().election, name("job"), name("back"));
    let (one, other) = tokio::join!(here.take_over_job(&job, &new), there.take_over_job(&back, &old));
    assert!(matches!((mine(one), mine(other)), (TakeOverOutcome::Taken(_), TakeOverOutcome::Taken(_))));
}
