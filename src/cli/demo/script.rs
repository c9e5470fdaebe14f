//! The scenes, as values: what is waited for, what is then done, what shows that it came out. Pure.
//!
//! Each scene waits on what the store says, never on a guessed time. [`Scene::within`] bounds the wait; past it the demo
//! gives up and shows what the replicas said.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::sight::Sight;

/// The lease of the demo's election: the shortest that there is, for one waits for it twice.
pub(super) const LEASE: Duration = Duration::from_secs(5);
/// A tick comes this often; so does a wave of entries.
pub(super) const TICK_EVERY: Duration = Duration::from_secs(2);
/// Far more than any scene takes, also on a busy machine.
const WITHIN: Duration = Duration::from_mins(1);

/// How long the demo takes its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// Waves of entries, one for each tick.
    pub(super) waves: u32,
    /// Entries of a wave.
    pub(super) entries: u32,
    /// Between two scenes, to read.
    pub(super) pause: Duration,
}

impl Pace {
    /// Ends by itself in under 20 s.
    pub(super) const QUICK: Self = Self { waves: 7, entries: 600, pause: Duration::ZERO };
    /// For a person who watches.
    pub(super) const FULL: Self = Self { waves: 14, entries: 600, pause: Duration::from_secs(2) };

    /// When the last wave becomes available.
    pub(super) fn last_wave(self, first: DateTime<Utc>) -> DateTime<Utc> {
        first + TICK_EVERY * self.waves.saturating_sub(1)
    }
}

/// What is done to the replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Three are started.
    Start,
    /// SIGKILL to the leader, in the middle of a run.
    Kill,
    /// SIGSTOP to the leader, in the middle of a run and between two transactions.
    Stop,
    /// SIGCONT to the one that was stopped.
    Wake,
    /// What it had on its way is presented to the store, unless it has been refused already.
    Late,
    /// SIGTERM to the leader.
    HandOver,
    /// Nothing; the rest is watched.
    Watch,
}

/// What a scene waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cue {
    /// A first leader works.
    Led,
    /// A run has ended with units settled.
    Settled,
    /// A later term than the one acted on works, and the runs that were open when it was acted on have ended.
    TakenOver,
    /// The one that was woken has noted that its tenure is over, or was refused.
    Awake,
    /// The store has a refusal of the stopped one's claim on record.
    Refused,
    /// Every wave was available to a run that has ended, and no run is open.
    AllSettled,
}

/// What was acted on last, as far as a cue asks for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// The term that was in force.
    pub(super) term: i64,
    /// The runs that were open.
    pub(super) open_runs: Vec<i64>,
    /// The tenure that was stopped.
    pub(super) stopped: Option<uuid::Uuid>,
    /// When the last wave becomes available.
    pub(super) last_wave: Option<DateTime<Utc>>,
}

/// One scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scene {
    /// What a reader is told before.
    pub(super) title: &'static str,
    /// What is done.
    pub(super) act: Act,
    /// What ends it.
    pub(super) until: Cue,
    /// The longest wait for that.
    pub(super) within: Duration,
}

const fn scene(title: &'static str, act: Act, until: Cue) -> Scene {
    Scene { title, act, until, within: WITHIN }
}

/// The story.
pub(super) const STORY: [Scene; 8] = [
    scene("three replicas start, and one of them is elected", Act::Start, Cue::Led),
    scene("a tick every two seconds: each becomes a run, each run is settled in batches", Act::Watch, Cue::Settled),
    scene("the leader is killed in the middle of a run (SIGKILL)", Act::Kill, Cue::TakenOver),
    scene(
        "the next leader is stopped in the middle of a run (SIGSTOP), longer than its lease",
        Act::Stop,
        Cue::TakenOver,
    ),
    scene("the stopped one wakes up (SIGCONT); another leads by now", Act::Wake, Cue::Awake),
    scene("a write of the old leader arrives late", Act::Late, Cue::Refused),
    scene("the leader is asked to leave (SIGTERM): a planned hand-over", Act::HandOver, Cue::TakenOver),
    scene("the rest is settled", Act::Watch, Cue::AllSettled),
];

impl Cue {
    /// Whether it has come.
    pub(super) fn has_come(self, sight: &Sight, marks: &Marks) -> bool {
        match self {
            Self::Led => sight.leader().is_some(),
            Self::Settled => sight.runs.iter().any(|run| !run.state.is_open() && run.units.settled > 0),
            Self::TakenOver => {
                let ended = |id: &i64| sight.runs.iter().any(|run| run.id == *id && !run.state.is_open());
                sight.leader().is_some_and(|term| term.term > marks.term) && marks.open_runs.iter().all(ended)
            }
            Self::Awake => marks.stopped.is_some_and(|tenure| {
                sight.terms.iter().any(|term| term.tenure_id == tenure && term.ended_at.is_some())
                    || sight.is_refused(tenure)
            }),
            Self::Refused => marks.stopped.is_some_and(|tenure| sight.is_refused(tenure)),
            Self::AllSettled => {
                let last = sight.runs.iter().filter(|run| !run.state.is_open()).map(|run| run.tick).max();
                sight.runs.iter().all(|run| !run.state.is_open()) && last >= marks.last_wave && last.is_some()
            }
        }
    }

    /// What it is, where it did not come.
    pub(super) const fn expected(self) -> &'static str {
        match self {
            Self::Led => "a first leader at work",
            Self::Settled => "a run that has ended with units settled",
            Self::TakenOver => "a new leader at work, and the runs that were open ended",
            Self::Awake => "the end of the stopped leader's tenure in the history of terms",
            Self::Refused => "a refusal of the stopped leader's claim in the store's record",
            Self::AllSettled => "every wave of entries settled and no run open",
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::sight::tests::{at, refusal, run, sight, term};
    use super::*;
    use crate::domain::run::RunState;

    #[test]
    fn a_leader_is_one_that_has_worked() {
        let mut seen = sight();
        assert!(!Cue::Led.has_come(&seen, &Marks::default()));
        seen.terms = vec![term(1, false)];
        assert!(!Cue::Led.has_come(&seen, &Marks::default()), "accepted is not yet at work");
        seen.terms = vec![term(1, true)];
        assert!(Cue::Led.has_come(&seen, &Marks::default()));
    }

    #[test]
    fn a_takeover_is_over_when_the_open_run_has_ended_too() {
        let mut seen = sight();
        let marks = Marks { term: 1, open_runs: vec![7], ..Marks::default() };
        seen.terms = vec![term(1, true)];
        seen.runs = vec![run(7, RunState::Complete, 5, 0)];
        assert!(!Cue::TakenOver.has_come(&seen, &marks), "the same term");
        seen.terms.insert(0, term(3, true));
        seen.runs = vec![run(7, RunState::Open, 5, 5)];
        assert!(!Cue::TakenOver.has_come(&seen, &marks), "the run is open");
        seen.runs = vec![run(7, RunState::Complete, 10, 0)];
        assert!(Cue::TakenOver.has_come(&seen, &marks));
    }

    #[test]
    fn only_the_stopped_tenures_refusal_counts() {
        let mut seen = sight();
        let marks = Marks { stopped: Some(Uuid::from_u128(2)), ..Marks::default() };
        seen.rejects = vec![refusal(1)];
        assert!(!Cue::Refused.has_come(&seen, &marks));
        seen.rejects = vec![refusal(2)];
        assert!(Cue::Refused.has_come(&seen, &marks) && Cue::Awake.has_come(&seen, &marks));
    }

    #[test]
    fn all_is_settled_once_a_run_after_the_last_wave_has_ended() {
        let mut seen = sight();
        let marks = Marks { last_wave: Some(at(10)), ..Marks::default() };
        assert!(!Cue::AllSettled.has_come(&seen, &marks), "nothing ran");
        seen.runs = vec![run(9, RunState::Complete, 5, 0)];
        assert!(!Cue::AllSettled.has_come(&seen, &marks), "the last wave is later");
        seen.runs = vec![run(10, RunState::Open, 5, 5), run(9, RunState::Complete, 5, 0)];
        assert!(!Cue::AllSettled.has_come(&seen, &marks), "it is open");
        seen.runs = vec![run(10, RunState::Complete, 10, 0)];
        assert!(Cue::AllSettled.has_come(&seen, &marks));
    }

    #[test]
    fn the_story_breaks_a_leader_in_each_way() {
        for act in [Act::Kill, Act::Stop, Act::Wake, Act::Late, Act::HandOver] {
            assert!(STORY.iter().any(|scene| scene.act == act), "{act:?}");
        }
        assert_eq!(STORY[0].act, Act::Start);
    }
}
