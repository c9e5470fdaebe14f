//! Which of a job's open runs may be worked on now. Ticks do not wait for each other to be *opened*, only to be worked on:
//! a run is queued with its own cutoff, and its money is the same whenever its turn comes.
//!
//! Rules: a run on time waits until every earlier run of the job has ended, so no two runs of a job go at once. Caught-up
//! runs that follow one another may go several at a time (`catch_up_max`), oldest or newest first (`catch_up_order`).
//! What has begun goes on.
//!
//! Deliberately absent: manual runs. They stand in no tick's way and wait for none; do not pass them.

use chrono::{DateTime, Utc};

use crate::domain::job::{CatchUpOrder, Timing};

/// An open run of a job that a tick opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedRun {
    /// The run's id in the store.
    pub run_id: i64,
    /// Its tick.
    pub tick: DateTime<Utc>,
    /// Its due time.
    pub due_at: DateTime<Utc>,
    /// Whether it was opened past the grace.
    pub caught_up: bool,
    /// Whether it has been worked on already.
    pub begun: bool,
}

/// Chooses the runs that may be worked on now, best first. The order of `runs` does not matter; empty only where they are.
#[must_use]
pub fn eligible_runs(timing: &Timing, runs: &[QueuedRun]) -> Vec<i64> {
    let mut runs = runs.to_vec();
    runs.sort_by_key(|run| (run.due_at, run.tick, run.run_id));
    let begun: Vec<QueuedRun> = runs.iter().filter(|run| run.begun).copied().collect();
    let mut chosen: Vec<i64> = begun.iter().map(|run| run.run_id).collect();
    let Some(first) = runs.first() else { return chosen };
    if !first.caught_up || begun.iter().any(|run| !run.caught_up) {
        if begun.is_empty() {
            chosen.push(first.run_id);
        }
        return chosen;
    }
    // Those up to the first run on time, which waits for them all, as all behind it wait for it.
    let mut waiting: Vec<i64> =
        runs.iter().take_while(|run| run.caught_up).filter(|run| !run.begun).map(|run| run.run_id).collect();
    match timing.catch_up_order {
        CatchUpOrder::Oldest => {}
        CatchUpOrder::Newest => waiting.reverse(),
    }
    let most = usize::try_from(timing.catch_up_max.max(1)).unwrap_or(usize::MAX);
    waiting.truncate(most.saturating_sub(chosen.len()));
    chosen.extend(waiting);
    chosen
}

#[cfg(test)]
mod tests {
    use super::super::test_timing::timing;
    use super::*;

    fn run(run_id: i64, caught_up: bool, begun: bool) -> QueuedRun {
        let at = DateTime::from_timestamp(1_800_000_000 + run_id * 60, 0).expect("in range");
        QueuedRun { run_id, tick: at, due_at: at, caught_up, begun }
    }

    fn choose(most: u32, order: CatchUpOrder, runs: &[QueuedRun]) -> Vec<i64> {
        let mut timing = timing("* * * * *", "UTC");
        timing.catch_up_max = most;
        timing.catch_up_order = order;
        eligible_runs(&timing, runs)
    }

    #[test]
    fn a_run_on_time_waits_for_every_earlier_one() {
        use CatchUpOrder::Oldest;
        assert_eq!(choose(3, Oldest, &[]), [0; 0]);
        assert_eq!(choose(3, Oldest, &[run(2, false, false), run(1, false, false)]), [1]);
        assert_eq!(choose(3, Oldest, &[run(1, false, true), run(2, false, false)]), [1]);
        assert_eq!(choose(3, Oldest, &[run(1, true, true), run(2, false, false)]), [1]);
        assert_eq!(choose(3, Oldest, &[run(1, false, true), run(2, true, false)]), [1]);
    }

    #[test]
    fn caught_up_runs_go_several_at_a_time_in_the_order_asked_for() {
        let runs =
            [run(1, true, false), run(2, true, false), run(3, true, false), run(4, false, false), run(5, true, false)];
        assert_eq!(choose(1, CatchUpOrder::Oldest, &runs), [1]);
        assert_eq!(choose(2, CatchUpOrder::Oldest, &runs), [1, 2]);
        assert_eq!(choose(2, CatchUpOrder::Newest, &runs), [3, 2]);
        assert_eq!(choose(9, CatchUpOrder::Newest, &runs), [3, 2, 1], "the run on time waits for them");
        assert_eq!(choose(9, CatchUpOrder::Oldest, &runs[3..]), [4], "and those behind it wait for it");
        assert_eq!(choose(0, CatchUpOrder::Oldest, &runs), [1], "never none");
    }

    #[test]
    fn what_has_begun_goes_on() {
        let runs = [run(1, true, true), run(2, true, false), run(3, true, false)];
        assert_eq!(choose(1, CatchUpOrder::Newest, &runs), [1]);
        assert_eq!(choose(2, CatchUpOrder::Newest, &runs), [1, 3]);
        let begun = [run(1, true, true), run(2, true, true), run(3, true, false)];
        assert_eq!(choose(1, CatchUpOrder::Oldest, &begun), [1, 2], "the limit was lowered meanwhile");
    }
}
