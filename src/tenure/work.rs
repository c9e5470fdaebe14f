//! Which runs are worked on, and a task for each. A job's runs take turns as its overlap and catch-up rules say
//! ([`crate::schedule::eligible_runs`]); manual runs wait for nobody
//! but for those before them in the same backfill. Runs that a job has open in another election are worked on there; here they
//! only stand in the way of its later ones.
//!
//! Invariant: no hot loop. It looks when it is woken (a tick, a request, a sweep that sees open runs, a run that ended), and
//! holds back a run that failed for a growing time; others go on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};

use super::backoff;
use super::run;
use super::scope::{Stop, Tenure};
use crate::clock;
use crate::domain::Moment;
use crate::domain::run::{RunKind, RunState};
use crate::schedule::{QueuedRun, eligible_runs};
use crate::store::OpenRun;

/// A run that failed waits this many times as long as a batch that failed.
const RUN_WAIT: u32 = 10;

/// Runs that failed: how often in a row, and until when they are held back.
type HeldBack = BTreeMap<i64, (u32, Moment)>;

/// Runs that are worked on.
type Begun = BTreeMap<i64, OpenRun>;

/// Works until the tenure stops, then waits for the runs that it began.
pub(super) async fn work(tenure: Tenure) {
    let mut runs = FuturesUnordered::new();
    let mut begun = Begun::new();
    let mut held_back = HeldBack::new();
    tenure.work.notify_one();
    loop {
        tokio::select! {
            biased;
            () = tenure.stopping.cancelled() => break,
            Some((run, end)) = runs.next() => {
                ended(&tenure, run, end, &mut begun, &mut held_back);
                // Of those that end together, one reading is enough.
                while let Some(Some((run, end))) = runs.next().now_or_never() {
                    ended(&tenure, run, end, &mut begun, &mut held_back);
                }
            }
            () = tenure.work.notified() => {}
        }
        let open = match tenure.begin("open_runs", || tenure.store.open_runs()).await {
            Ok(open) => open,
            Err(Stop::Ending) => break,
            // The sweep wakes us once it is over.
            Err(Stop::Halted) => continue,
            Err(Stop::Failed(error)) => {
                tracing::error!(claim = %tenure.claim, %error, "the open runs could not be read");
                continue;
            }
        };
        let now = clock::boottime();
        held_back.retain(|run, (_, until)| *until > now || open.iter().any(|open| open.id == *run));
        for run in choose(open, &begun) {
            if held_back.get(&run.id).is_some_and(|(_, until)| *until > now) {
                continue;
            }
            begun.insert(run.id, run.clone());
            let (id, task) = (run.id, tenure.spawn(run::settle_run(tenure.clone(), run)));
            runs.push(async move { (id, task.await) });
        }
    }
    while runs.next().await.is_some() {}
}

/// The runs to be worked on now that are not yet. Of many open ones the store gives the oldest and newest: what was begun counts also
/// where it is not among them.
fn choose(mut open: Vec<OpenRun>, begun: &Begun) -> Vec<OpenRun> {
    let given: BTreeSet<i64> = open.iter().map(|run| run.id).collect();
    open.extend(begun.values().filter(|run| !given.contains(&run.id)).cloned());
    let mut jobs: BTreeMap<i64, Vec<QueuedRun>> = BTreeMap::new();
    for run in open.iter().filter(|run| run.kind == RunKind::Tick) {
        jobs.entry(run.job_id).or_default().push(QueuedRun {
            run_id: run.id,
            tick: run.tick,
            due_at: run.due_at,
            caught_up: run.caught_up,
            begun: begun.contains_key(&run.id) || run.state == RunState::Open || run.given_up.is_some(),
        });
    }
    // One that is given up waits for nobody, and its job's later ones for its end.
    let mut eligible: BTreeSet<i64> = open.iter().filter(|run| run.given_up.is_some()).map(|run| run.id).collect();
    // Runs of one backfill go one after the other, the oldest first: each takes what its own cutoff gives it.
    let mut backfills: BTreeMap<Option<uuid::Uuid>, &OpenRun> = BTreeMap::new();
    for run in open.iter().filter(|run| run.kind == RunKind::Manual) {
        let first = backfills.entry(run.request_id).or_insert(run);
        if (run.due_at, run.tick, run.id) < (first.due_at, first.tick, first.id) {
            *first = run;
        }
    }
    eligible.extend(backfills.values().map(|run| run.id));
    for (job, queued) in jobs {
        // The rules of the newest definition that a run was opened under.
        let newest = open.iter().filter(|run| run.job_id == job).max_by_key(|run| (run.due_at, run.id));
        if let Some(newest) = newest {
            eligible.extend(eligible_runs(&newest.definition.timing, &queued));
        }
    }
    open.into_iter()
        .filter(|run| !run.elsewhere && eligible.contains(&run.id) && !begun.contains_key(&run.id))
        .collect()
}

/// Takes in how a run's task ended.
fn ended(
    tenure: &Tenure,
    run: i64,
    end: Result<Option<Result<(), Stop>>, tokio::task::JoinError>,
    begun: &mut Begun,
    held_back: &mut HeldBack,
) {
    begun.remove(&run);
    let why = match end {
        Ok(Some(Ok(()))) => {
            held_back.remove(&run);
            return;
        }
        Ok(None | Some(Err(Stop::Ending | Stop::Halted))) => return,
        Ok(Some(Err(Stop::Failed(error)))) => error.to_string(),
        Err(error) => {
            // Calls of it may be under way without anybody who records what comes of them.
            tenure.fault(&format!("the task of run {run} failed: {error}"));
            return;
        }
    };
    let (failures, until) = held_back.entry(run).or_insert((0, Moment::BOOT));
    *failures += 1;
    let wait: Duration = backoff::wait(*failures, clock::random_u64()) * RUN_WAIT;
    *until = clock::boottime() + wait;
    tracing::error!(claim = %tenure.claim, run, why, failures, wait_ms = wait.as_millis(), "a run failed; it is tried again");
}

#[cfg(test)]
pub(super) mod tests {
    use chrono::DateTime;

    use super::super::bringup::tests::definition;
    use super::*;

    pub(in crate::tenure) fn open(id: i64, kind: RunKind, caught_up: bool) -> OpenRun {
        let at = DateTime::from_timestamp(1_800_000_000 + id * 60, 0).expect("in range");
        OpenRun {
            id,
            job_id: 1,
            definition: definition("daily", "here", "* * * * *"),
            kind,
            request_id: None,
            tick: at,
            due_at: at,
            cutoff_at: at,
            value_date: at.date_naive(),
            state: RunState::Planning,
            caught_up,
            opened_at: at,
            elsewhere: false,
            given_up: None,
        }
    }

    fn chosen(open: Vec<OpenRun>, begun: &[i64]) -> Vec<i64> {
        let begun = begun.iter().map(|id| (*id, self::open(*id, RunKind::Tick, true))).collect();
        choose(open, &begun).iter().map(|run| run.id).collect()
    }

    #[test]
    fn runs_of_one_backfill_go_one_after_the_other_and_those_of_two_beside_each_other() {
        let of = |id, request: u128| {
            let mut run = open(id, RunKind::Manual, false);
            run.request_id = Some(uuid::Uuid::from_u128(request));
            run
        };
        assert_eq!(chosen(vec![of(2, 1), of(1, 1), of(3, 2), of(4, 2)], &[]), [1, 3]);
        assert_eq!(chosen(vec![of(2, 1), of(1, 1), of(3, 2)], &[1]), [3], "the first of the other one");
        assert_eq!(chosen(vec![of(2, 1), of(4, 2)], &[]), [2, 4]);
    }

    #[test]
    fn a_run_that_is_open_in_another_election_is_waited_for_and_not_worked_on() {
        let elsewhere = |id, state| OpenRun { elsewhere: true, state, ..open(id, RunKind::Tick, false) };
        for state in [RunState::Planning, RunState::Open] {
            assert_eq!(chosen(vec![elsewhere(1, state), open(2, RunKind::Tick, false)], &[]), [0; 0]);
        }
        // What is later does not stand in the way, and is not begun before this one has ended.
        assert_eq!(chosen(vec![open(1, RunKind::Tick, false), elsewhere(2, RunState::Planning)], &[]), [1]);
        assert_eq!(chosen(vec![elsewhere(1, RunState::Open), open(3, RunKind::Manual, false)], &[]), [3]);
    }

    #[test]
    fn a_run_that_is_given_up_waits_for_nobody_and_later_ones_of_its_job_wait_for_its_end() {
        for (kind, request_id) in [(RunKind::Tick, None), (RunKind::Manual, Some(uuid::Uuid::from_u128(1)))] {
            let run = |id| OpenRun { request_id, ..open(id, kind, false) };
            let given_up = |id| OpenRun { given_up: Some("3 leaders died".to_owned()), ..run(id) };
            assert_eq!(chosen(vec![run(1), given_up(2), given_up(3), run(4)], &[1]), [2, 3], "{kind:?}");
            assert_eq!(chosen(vec![given_up(1), run(2)], &[]), [1], "{kind:?}");
            assert_eq!(chosen(vec![given_up(1), run(2)], &[1]), [0; 0], "{kind:?}");
            assert_eq!(chosen(vec![OpenRun { elsewhere: true, ..given_up(1) }], &[]), [0; 0], "{kind:?}");
        }
    }

    #[test]
    fn what_was_begun_counts_also_where_the_store_does_not_show_it_among_many() {
        assert_eq!(chosen(vec![open(1, RunKind::Tick, true), open(9, RunKind::Tick, true)], &[5]), [0; 0]);
    }

    #[test]
    fn runs_of_a_job_take_turns_and_manual_ones_wait_for_nobody() {
        let runs =
            || vec![open(1, RunKind::Tick, false), open(2, RunKind::Tick, false), open(3, RunKind::Manual, false)];
        assert_eq!(chosen(runs(), &[]), [1, 3]);
        assert_eq!(chosen(runs(), &[1]), [3]);
        assert_eq!(chosen(runs(), &[1, 3]), [0; 0]);
        assert_eq!(chosen(vec![open(1, RunKind::Tick, true), open(2, RunKind::Tick, true)], &[]), [1], "one at a time");
    }
}
