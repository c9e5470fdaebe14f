//! Jobs and ticks: a row changes only where it is as it was read, a tick has one run.

use std::time::Duration;

use bursar::domain::ElectionName;
use bursar::domain::run::RunState;
use bursar::store::{
    Entered, JobChange, JobChangeOutcome, JobRow, RunFilter, RunSummary, TenureStore, TickFate, TickRecord,
    TicksOutcome, TicksRecord,
};
use chrono::TimeDelta;

use super::bench::{Bench, OPEN, change, claim_of, mine, new_job, probe, tick};

async fn changed(tenure: &dyn TenureStore, change: JobChange) -> JobRow {
    match mine(tenure.change_job(change).await) {
        JobChangeOutcome::Changed(Some(row)) => *row,
        other => panic!("the row is as expected: {other:?}"),
    }
}

async fn moved(tenure: &dyn TenureStore, change: JobChange, why: &str) {
    assert_eq!(mine(tenure.change_job(change).await), JobChangeOutcome::Moved, "{why}");
}

async fn not_yet(tenure: &dyn TenureStore, change: JobChange, why: &str) {
    let reaches = change.reaches();
    match mine(tenure.change_job(change).await) {
        JobChangeOutcome::NotYet { now } => assert!(Some(now) < reaches, "{why}"),
        other => panic!("{why}: {other:?}"),
    }
}

async fn runs(bench: &Bench) -> Vec<RunSummary> {
    let mut runs = bench.store.runs(&RunFilter { limit: 100, ..RunFilter::default() }).await.expect("an answer");
    runs.reverse();
    runs
}

pub async fn a_new_job_starts_at_the_stores_now_and_is_put_in_once(bench: &Bench) {
    let leads = bench.lead(1).await;
    let before = bench.now().await;
    let row = bench.job(leads.as_ref(), probe("job")).await;
    assert!(before <= row.evaluated_until && row.evaluated_until <= bench.now().await);
    assert_eq!((&row.definition, row.fingerprint.clone()), (&probe("job"), probe("job").fingerprint()));
    moved(leads.as_ref(), new_job(probe("job")), "it is there already").await;
    let view = mine(leads.jobs().await);
    assert_eq!(view.jobs, [row]);
    let nobody = JobChange { definition: None, ..new_job(probe("nobody")) };
    assert_eq!(mine(leads.change_job(nobody).await), JobChangeOutcome::Changed(None), "what is not there is removed");
}

pub async fn a_job_changes_only_where_its_row_is_as_it_was_read(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let row = bench.job(tenure, probe("job")).await;
    let edit = |row: &JobRow, size: u32| {
        let mut edit = change(row);
        edit.definition.as_mut().expect("a definition").batch.size = size;
        edit
    };
    let before = bench.picture().await;
    let (mut other_id, mut other_mark) = (row.clone(), row.clone());
    other_id.id += 1;
    let mut other_fingerprint = row.clone();
    other_fingerprint.fingerprint = "0".repeat(64);
    other_mark.evaluated_until -= TimeDelta::seconds(1);
    for (read, why) in [(other_id, "id"), (other_fingerprint, "fingerprint"), (other_mark, "evaluated_until")] {
        moved(tenure, JobChange { evaluated_until: row.evaluated_until, ..edit(&read, 7) }, why).await;
    }
    let mut ahead = edit(&row, 7);
    ahead.evaluated_until = bench.now().await + TimeDelta::hours(1);
    let soon = ahead.evaluated_until;
    not_yet(tenure, ahead, "the new mark lies ahead of the store's clock").await;
    // The mark stays, as one does that lies ahead of a clock that was stepped back; the tick would be recorded early.
    let early = JobChange { settled: vec![tick(soon, TickFate::Skipped("edit".to_owned()))], ..edit(&row, 7) };
    not_yet(tenure, early, "what is settled lies ahead of the store's clock").await;
    let mut back = edit(&row, 7);
    back.evaluated_until -= TimeDelta::seconds(1);
    moved(tenure, back, "the new mark lies behind the old one").await;
    moved(tenure, new_job(probe("job")), "there is one").await;
    moved(tenure, JobChange { name: probe("nobody").name, ..edit(&row, 7) }, "there is none").await;
    assert_eq!(bench.picture().await, before, "nothing changed");
    let now = changed(tenure, edit(&row, 7)).await;
    assert_eq!((now.definition.batch.size, now.evaluated_until), (7, row.evaluated_until));
    moved(tenure, edit(&row, 8), "it was changed since").await;
}

pub async fn a_changed_job_settles_what_the_old_one_owed_and_a_removed_one_can_come_back(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let row = bench.job(tenure, probe("job")).await;
    let now = bench.now().await;
    let mut edit = change(&row);
    edit.definition.as_mut().expect("a definition").batch.size = 7;
    edit.evaluated_until = now;
    let due = row.evaluated_until - TimeDelta::hours(1);
    edit.settled = vec![tick(due, TickFate::Skipped("edit".to_owned())), tick(row.evaluated_until, OPEN)];
    let after = changed(tenure, edit.clone()).await;
    assert_eq!((after.definition.batch.size, after.evaluated_until), (7, now));
    moved(tenure, edit, "it was changed since").await;
    let found = runs(bench).await;
    assert_eq!(found.iter().map(|run| run.state).collect::<Vec<_>>(), [RunState::Skipped, RunState::Planning]);
    for run in &found {
        let view = bench.store.run_by_id(run.id).await.expect("an answer").expect("there is the run");
        assert_eq!(view.fingerprint, row.fingerprint, "under the old definition");
    }
    let removal = JobChange { definition: None, ..change(&after) };
    assert_eq!(mine(tenure.change_job(removal.clone()).await), JobChangeOutcome::Changed(None));
    moved(tenure, removal, "it is gone").await;
    moved(tenure, change(&after), "it is gone").await;
    let record = TicksRecord { evaluated_until: after.evaluated_until, ticks: vec![bench.tick()], job: after.clone() };
    assert_eq!(mine(tenure.record_ticks(record).await), TicksOutcome::Moved, "it is gone");
    assert!(mine(tenure.jobs().await).jobs.is_empty());
    let gone = JobChange { definition: None, expected: None, ..change(&after) };
    assert_eq!(mine(tenure.change_job(gone).await), JobChangeOutcome::Changed(None));
    let back = changed(tenure, JobChange { expected: None, ..change(&after) }).await;
    assert_eq!(back.id, after.id);
    assert!(back.evaluated_until > now, "it starts at the store's now");
    moved(tenure, JobChange { expected: None, ..change(&back) }, "it is back").await;
    assert_eq!(mine(tenure.open_runs().await).len(), 1, "what it had open goes on");
}

pub async fn a_job_of_another_election_stays_there(bench: &Bench) {
    let leads = bench.lead(1).await;
    let other = bench.lead_of(&claim_of(ElectionName::new("other").expect("a name"), 1)).await;
    let row = bench.job(leads.as_ref(), probe("job")).await;
    let before = bench.picture().await;
    let stays = JobChangeOutcome::OtherElection("settlement".to_owned());
    assert_eq!(mine(other.change_job(change(&row)).await), stays);
    assert_eq!(mine(other.change_job(new_job(probe("job"))).await), stays);
    let record = TicksRecord { evaluated_until: row.evaluated_until, ticks: vec![bench.tick()], job: row };
    assert_eq!(mine(other.record_ticks(record).await), TicksOutcome::Moved);
    assert_eq!(bench.picture().await, before, "nothing changed");
}

pub async fn ticks_are_recorded_once_and_bring_their_job_forward(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let mut definition = probe("job");
    definition.timing.run_deadline = Some(Duration::from_hours(1));
    let job = bench.job(tenure, definition).await;
    let until = bench.now().await;
    let fates = [
        TickFate::Missed("older than the window".to_owned()),
        TickFate::Skipped("overlap".to_owned()),
        TickFate::Coalesced("rolled".to_owned()),
        TickFate::Open { caught_up: true },
    ];
    let ticks: Vec<TickRecord> = fates.into_iter().map(|fate| TickRecord { fate, ..bench.tick() }).collect();
    let other = bench.job(tenure, probe("other")).await;
    let asked: Vec<_> = ticks.iter().flat_map(|tick| [(job.id, tick.tick), (other.id, tick.tick)]).collect();
    assert_eq!(mine(tenure.recorded(&asked).await), [].into());
    let record = TicksRecord { job: job.clone(), evaluated_until: until, ticks: ticks.clone() };
    let outcome = mine(tenure.record_ticks(record.clone()).await);
    let TicksOutcome::Recorded { opened, duplicates: 0 } = outcome else { panic!("{outcome:?}") };
    assert_eq!(opened.iter().map(|opened| opened.0).collect::<Vec<_>>(), [ticks[3].tick]);
    let late = (bench.now().await - ticks[3].due_at).to_std().expect("due long ago");
    assert!(opened[0].1 <= late && opened[0].1 + Duration::from_mins(1) > late, "{opened:?}, {late:?}");
    assert_eq!(mine(tenure.record_ticks(record).await), TicksOutcome::Moved, "the row moved on");
    assert_eq!(mine(tenure.recorded(&asked).await), ticks.iter().map(|tick| (job.id, tick.tick)).collect());
    let row = mine(tenure.jobs().await).jobs.into_iter().find(|row| row.id == job.id).expect("it is there");
    assert_eq!(row.evaluated_until, until);
    let before = runs(bench).await;
    let again = TicksRecord { job: row, evaluated_until: bench.now().await, ticks };
    assert_eq!(mine(tenure.record_ticks(again).await), TicksOutcome::Recorded { opened: Vec::new(), duplicates: 4 });
    let found = runs(bench).await;
    assert_eq!(found, before, "a tick has one run");
    let states: Vec<_> = found.iter().map(|run| (run.state, run.why.as_deref(), run.finished_at.is_some())).collect();
    assert_eq!(
        states,
        [
            (RunState::Missed, Some("older than the window"), true),
            (RunState::Skipped, Some("overlap"), true),
            (RunState::Coalesced, Some("rolled"), true),
            (RunState::Planning, None, false)
        ]
    );
    assert!(
        found.iter().all(|run| run.overdue == (run.state == RunState::Planning)),
        "the deadline counts from the due time"
    );
    let open = mine(tenure.open_runs().await);
    assert_eq!((open.len(), open[0].state, open[0].caught_up), (1, RunState::Planning, true));
    assert_eq!(mine(tenure.pulse().await).open_runs, 1);
}

pub async fn a_job_whose_runs_pile_up_hides_no_other(bench: &Bench) {
    const PILED_UP: i64 = 450;
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let piles_up = bench.job(tenure, probe("piles-up")).await;
    let other = bench.job(tenure, probe("other")).await;
    let until = bench.now().await;
    let open = |back: i64| tick(until - TimeDelta::seconds(back), OPEN);
    let ticks = (2..PILED_UP + 2).rev().map(open).collect();
    for (job, ticks) in [(&piles_up, ticks), (&other, vec![open(1)])] {
        let record = TicksRecord { job: job.clone(), evaluated_until: until, ticks };
        let outcome = mine(tenure.record_ticks(record).await);
        assert!(matches!(outcome, TicksOutcome::Recorded { duplicates: 0, .. }), "{outcome:?}");
    }
    assert_eq!(mine(tenure.pulse().await).open_runs, PILED_UP.unsigned_abs() + 1);
    let found = mine(tenure.open_runs().await);
    assert!(found.is_sorted_by_key(|run| (run.due_at, run.id)));
    assert_eq!(found.last().map(|run| run.job_id), Some(other.id), "it is the newest of all");
    let of_it: Vec<_> = found.iter().filter(|run| run.job_id == piles_up.id).map(|run| run.due_at).collect();
    assert_eq!(of_it.len(), 400, "the oldest and the newest");
    let ends = [of_it[0], of_it[199], of_it[200], of_it[399]].map(|due| (until - due).num_seconds());
    assert_eq!(ends, [PILED_UP + 1, PILED_UP + 1 - 199, 201, 2]);
}

pub async fn nothing_is_recorded_before_the_stores_clock_or_where_the_job_is_not_as_it_was_read(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let job = bench.job(tenure, probe("job")).await;
    let before = bench.picture().await;
    let future = job.evaluated_until + TimeDelta::hours(1);
    let early = TicksRecord { job: job.clone(), evaluated_until: future, ticks: vec![tick(future, OPEN)] };
    assert!(matches!(mine(tenure.record_ticks(early).await), TicksOutcome::NotYet { now } if now < future));
    let with = |change: fn(&mut JobRow)| {
        let mut row = job.clone();
        change(&mut row);
        row
    };
    let strange = [
        with(|row| row.id += 1),
        with(|row| row.fingerprint = "0".repeat(64)),
        with(|row| row.evaluated_until -= TimeDelta::seconds(1)),
    ];
    for read in strange {
        let record = TicksRecord { job: read, evaluated_until: job.evaluated_until, ticks: vec![bench.tick()] };
        assert_eq!(tenure.record_ticks(record).await, Ok(Entered::Mine(TicksOutcome::Moved)));
    }
    let back = job.evaluated_until - TimeDelta::seconds(1);
    let backwards = TicksRecord { job: job.clone(), evaluated_until: back, ticks: vec![bench.tick()] };
    assert_eq!(mine(tenure.record_ticks(backwards).await), TicksOutcome::Moved);
    assert_eq!(bench.picture().await, before, "nothing changed");
}

pub async fn ticks_of_many_jobs_go_in_together_each_with_an_answer_of_its_own(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let first = bench.job(tenure, probe("first")).await;
    let edited = bench.job(tenure, probe("edited")).await;
    let early = bench.job(tenure, probe("early")).await;
    let last = bench.job(tenure, probe("last")).await;
    changed(tenure, {
        let mut edit = change(&edited);
        edit.definition.as_mut().expect("a definition").batch.size = 7;
        edit
    })
    .await;
    let due = bench.tick();
    let skipped = tick(due.tick - TimeDelta::hours(1), TickFate::Skipped("overlap".to_owned()));
    let future = early.evaluated_until + TimeDelta::hours(1);
    let until = bench.now().await;
    let with = |job: &JobRow, evaluated_until, ticks| TicksRecord { job: job.clone(), evaluated_until, ticks };
    // In an order that is not that of the rows.
    let records = [
        with(&last, until, vec![due.clone()]),
        with(&early, future, vec![tick(future, OPEN)]),
        with(&edited, until, vec![due.clone()]),
        with(&first, until, vec![skipped.clone(), due.clone()]),
    ];
    // Two at a time, as the planner does it.
    let (one, other) = tokio::join!(tenure.record_many(&records[..2]), tenure.record_many(&records[2..]));
    let outcomes = [mine(one), mine(other)].concat();
    let opened = |outcome: &TicksOutcome| match outcome {
        TicksOutcome::Recorded { opened, duplicates } => (opened.iter().map(|run| run.0).collect(), *duplicates),
        TicksOutcome::Moved | TicksOutcome::NotYet { .. } => panic!("it is as it was read: {outcome:?}"),
    };
    assert_eq!(opened(&outcomes[0]), (vec![due.tick], 0));
    assert!(matches!(outcomes[1], TicksOutcome::NotYet { now } if now < future));
    assert_eq!(outcomes[2], TicksOutcome::Moved);
    assert_eq!(opened(&outcomes[3]), (vec![due.tick], 0));
    let found: Vec<_> = runs(bench).await.into_iter().map(|run| (run.job.to_string(), run.tick, run.state)).collect();
    let expected = [("first", skipped.tick, RunState::Skipped), ("first", due.tick, RunState::Planning)];
    let of = |job: &str| found.iter().filter(|run| run.0 == job).cloned().collect::<Vec<_>>();
    assert_eq!(of("first"), expected.map(|(job, tick, state)| (job.to_owned(), tick, state)));
    assert_eq!(of("last"), [("last".to_owned(), due.tick, RunState::Planning)]);
    assert_eq!(found.len(), 3, "{found:?}");
    let marks: Vec<_> = mine(tenure.jobs().await).jobs.into_iter().map(|job| (job.id, job.evaluated_until)).collect();
    for (job, mark) in [(&first, until), (&last, until), (&early, early.evaluated_until)] {
        assert!(marks.contains(&(job.id, mark)), "{}: {marks:?}", job.definition.name);
    }
    // What is read again finds its ticks there.
    let read: Vec<JobRow> = mine(tenure.jobs().await).jobs.into_iter().filter(|job| job.id == first.id).collect();
    let again = [with(&read[0], until, vec![skipped, due])];
    assert_eq!(mine(tenure.record_many(&again).await), [TicksOutcome::Recorded { opened: vec![], duplicates: 2 }]);
    assert_eq!(mine(tenure.record_many(&records[3..]).await), [TicksOutcome::Moved]);
}
