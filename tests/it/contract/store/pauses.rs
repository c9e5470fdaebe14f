//! Pausing a job: an operator's act on its row, in force with the next transaction.

use bursar::domain::JobName;
use bursar::store::{
    JobChange, JobChangeOutcome, JobRow, PauseOutcome, TenureStore, TickFate, TicksOutcome, TicksRecord,
};

use super::bench::{Bench, actor, change, mine, new_job, probe};

fn name(job: &str) -> JobName {
    JobName::new(job).expect("a name")
}

async fn pause(bench: &Bench, job: &str, reason: &str) -> PauseOutcome {
    bench.store.pause_job(&name(job), reason, &actor()).await.expect("an answer")
}

async fn unpause(bench: &Bench, job: &str) -> PauseOutcome {
    bench.store.unpause_job(&name(job), "looked into", &actor()).await.expect("an answer")
}

async fn row(tenure: &dyn TenureStore) -> JobRow {
    mine(tenure.jobs().await).jobs.remove(0)
}

/// What `status` says of the first job.
async fn shown(bench: &Bench) -> Option<String> {
    bench.store.status().await.expect("an answer").jobs.remove(0).paused
}

pub async fn a_pause_lasts_until_it_is_ended_and_each_is_written_down_once(bench: &Bench) {
    let leads = bench.lead(1).await;
    bench.job(leads.as_ref(), probe("job")).await;
    let before = bench.now().await;
    assert_eq!(pause(bench, "nobody", "why").await, PauseOutcome::NotFound);
    assert_eq!(unpause(bench, "job").await, PauseOutcome::Already { pause: None });
    assert_eq!(pause(bench, "job", "fees").await, PauseOutcome::Done);
    let again = pause(bench, "job", "other").await;
    let PauseOutcome::Already { pause: Some(found) } = &again else { panic!("{again:?}") };
    assert!(found.reason == "fees" && found.since >= before && found.since <= bench.now().await, "{found:?}");
    assert_eq!(shown(bench).await.as_deref(), Some("fees"));
    let paused = row(leads.as_ref()).await;
    assert_eq!((paused.paused.as_deref(), paused.pauses.len()), (Some("fees"), 0));
    // Another term finds it too.
    let next = bench.lead(2).await;
    assert_eq!(row(next.as_ref()).await.paused.as_deref(), Some("fees"));
    assert_eq!(unpause(bench, "job").await, PauseOutcome::Done);
    assert_eq!(shown(bench).await, None);
    let after = row(next.as_ref()).await;
    assert_eq!((after.paused, after.pauses.len()), (None, 1));
    let past = &after.pauses[0];
    assert_eq!((past.from, past.reason.as_str()), (found.since, "fees"));
    assert!(past.until > past.from && past.until <= bench.now().await);
    let acts = bench.store.history(10).await.expect("an answer").acts;
    let acts: Vec<_> =
        acts.iter().map(|act| (act.action.as_str(), act.target.as_str(), act.reason.as_deref(), act.term)).collect();
    assert_eq!(
        acts,
        [("unpause", "job job", Some("looked into"), Some(2)), ("pause", "job job", Some("fees"), Some(1))]
    );
    // Out of the schedule and back: an operator's word is not taken back by an edit.
    assert_eq!(pause(bench, "job", "fees again").await, PauseOutcome::Done);
    let paused = row(next.as_ref()).await;
    let removal = JobChange { definition: None, ..change(&paused) };
    assert_eq!(mine(next.change_job(removal).await), JobChangeOutcome::Changed(None));
    let back = JobChange { expected: None, ..change(&paused) };
    let JobChangeOutcome::Changed(Some(back)) = mine(next.change_job(back).await) else { panic!("it comes back") };
    assert_eq!((back.paused.as_deref(), back.pauses.len()), (Some("fees again"), 0));
}

pub async fn ticks_are_not_recorded_by_whoever_has_not_seen_the_pause(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let before = bench.job(tenure, probe("job")).await;
    let record = |job: &JobRow, fate: TickFate| TicksRecord {
        job: job.clone(),
        evaluated_until: job.evaluated_until,
        ticks: vec![bursar::store::TickRecord { fate, ..bench.tick() }],
    };
    assert_eq!(pause(bench, "job", "fees").await, PauseOutcome::Done);
    let open = record(&before, super::bench::OPEN);
    assert_eq!(mine(tenure.record_ticks(open).await), TicksOutcome::Moved, "it is paused by now");
    assert_eq!(mine(tenure.change_job(change(&before)).await), bursar::store::JobChangeOutcome::Moved);
    let paused = row(tenure).await;
    let skipped = record(&paused, TickFate::Skipped("paused: fees".to_owned()));
    assert_eq!(mine(tenure.record_ticks(skipped).await), TicksOutcome::Recorded { opened: Vec::new(), duplicates: 0 });
    assert_eq!(unpause(bench, "job").await, PauseOutcome::Done);
    let late = record(&paused, TickFate::Skipped("paused: fees".to_owned()));
    assert_eq!(mine(tenure.record_ticks(late).await), TicksOutcome::Moved, "it is paused no more");
    // Evaluated beyond it, a pause is forgotten with the next that ends.
    let after = row(tenure).await;
    let until = bench.now().await;
    let beyond = TicksRecord { job: after, evaluated_until: until, ticks: vec![bench.tick()] };
    assert!(matches!(mine(tenure.record_ticks(beyond).await), TicksOutcome::Recorded { .. }));
    pause(bench, "job", "again").await;
    unpause(bench, "job").await;
    let kept = row(tenure).await.pauses;
    assert_eq!(kept.iter().map(|pause| pause.reason.as_str()).collect::<Vec<_>>(), ["again"]);
}

pub async fn a_pause_outlives_an_edit_and_a_removal(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    bench.job(tenure, probe("job")).await;
    pause(bench, "job", "first").await;
    unpause(bench, "job").await;
    pause(bench, "job", "fees").await;
    let paused = row(tenure).await;
    let mut definition = paused.definition.clone();
    definition.batch.size = 7;
    mine(tenure.change_job(JobChange { definition: Some(definition), ..change(&paused) }).await);
    let edited = row(tenure).await;
    assert_eq!((edited.paused.as_deref(), edited.pauses.len()), (Some("fees"), 1));
    mine(tenure.change_job(JobChange { definition: None, ..change(&edited) }).await);
    assert_eq!(pause(bench, "job", "why").await, PauseOutcome::NotFound, "it is gone");
    assert_eq!(unpause(bench, "job").await, PauseOutcome::NotFound);
    mine(tenure.change_job(new_job(probe("job"))).await);
    let back = row(tenure).await;
    assert_eq!((back.paused.as_deref(), back.pauses.len()), (Some("fees"), 0), "it starts anew, and stays paused");
}
