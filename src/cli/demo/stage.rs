//! Plays the story: does what each scene says to real processes, and looks at the store until it shows what the scene waits
//! for. What it knows of leaders, runs and refusals is what the store says, read as any command reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use chrono::{DateTime, Utc};

use super::catch::Catch;
use super::late;
use super::replicas::Replicas;
use super::screen::{Screen, Tone};
use super::script::{Act, Cue, LEASE, Marks, Pace, STORY, Scene};
use super::sight::Sight;
use super::words::{ended_run, of_run};
use super::world::World;
use crate::cli::error::CommandError;
use crate::clock;
use crate::config::Config;
use crate::store::{RunFilter, Store, StoreError, TermView};

/// How often the store is looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(15);
/// Terms, refusals and runs that are looked at: more than a story has.
const MOST_SEEN: u32 = 500;
/// A replica that hands over has left by then.
const LEFT_WITHIN: Duration = Duration::from_secs(20);
/// The lines of a log that are shown where something went wrong.
const LAST_WORDS: usize = 12;
/// Replicas of the story.
const REPLICAS: usize = 3;

/// Why a term ended, as the one who ended it knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    /// In words.
    pub(super) how: &'static str,
    /// When, by the clock that the store on this machine reads too.
    pub(super) at: DateTime<Utc>,
}

/// The story in play. Dropped, it takes the replicas with it, and then the folder.
pub(super) struct Stage {
    pace: Pace,
    pub(super) config: Config,
    pub(super) store: Arc<dyn Store>,
    pub(super) replicas: Replicas,
    pub(super) world: World,
    pub(super) screen: Screen,
    marks: Marks,
    /// The last look.
    pub(super) sight: Sight,
    /// How each term ended; under 0 stands the start.
    pub(super) ended: BTreeMap<i64, Ended>,
    /// The term that was stopped.
    stopped: Option<TermView>,
    told_terms: BTreeSet<i64>,
    told_runs: BTreeSet<i64>,
}

pub(super) fn system(what: &str) -> impl FnOnce(io::Error) -> CommandError {
    let what = what.to_owned();
    move |source| CommandError::Io { what, source }
}

fn screen(source: io::Error) -> CommandError {
    system("standard output")(source)
}

impl Stage {
    pub(super) fn new(
        world: World,
        config: Config,
        store: Arc<dyn Store>,
        replicas: Replicas,
        screen: Screen,
        pace: Pace,
        first_wave: DateTime<Utc>,
    ) -> Self {
        Self {
            pace,
            config,
            store,
            replicas,
            world,
            screen,
            marks: Marks { last_wave: Some(pace.last_wave(first_wave)), ..Marks::default() },
            sight: Sight::default(),
            ended: BTreeMap::new(),
            stopped: None,
            told_terms: BTreeSet::new(),
            told_runs: BTreeSet::new(),
        }
    }

    /// Plays all of it.
    ///
    /// # Errors
    /// A scene did not come out: what was expected, and what the replicas said last.
    pub(super) async fn play(&mut self) -> Result<(), CommandError> {
        for (at, scene) in STORY.iter().enumerate() {
            self.screen.scene(at + 1, STORY.len(), scene.title).map_err(screen)?;
            self.perform(scene.act).await?;
            self.wait(scene).await?;
            self.conclude(scene).await?;
            self.watch_for(self.pace.pause).await?;
        }
        self.screen.settle().map_err(screen)
    }

    async fn perform(&mut self, act: Act) -> Result<(), CommandError> {
        match act {
            Act::Start => {
                self.note_end(0, "start");
                for _ in 0..REPLICAS {
                    self.start_one()?;
                }
                Ok(())
            }
            Act::Kill => self.kill().await,
            Act::Stop => self.stop().await,
            Act::Wake => self.wake(),
            Act::Late => self.arrive_late().await,
            Act::HandOver => self.hand_over(),
            Act::Watch => Ok(()),
        }
    }

    fn start_one(&mut self) -> Result<(), CommandError> {
        let id = self.replicas.start().map_err(system("cannot start a replica"))?;
        self.say(Tone::Plain, &format!("{id} started"))
    }

    fn say(&mut self, tone: Tone, text: &str) -> Result<(), CommandError> {
        self.screen.say(tone, text).map_err(screen)
    }

    fn note_end(&mut self, term: i64, how: &'static str) {
        self.ended.insert(term, Ended { how, at: clock::wall() });
    }

    /// What the next cue is compared with.
    fn mark(&mut self, term: i64) {
        self.marks.term = term;
        self.marks.open_runs = self.sight.open_runs();
    }

    async fn kill(&mut self) -> Result<(), CommandError> {
        let (term, run) = self.catch(Catch::Anywhere).await?;
        self.replicas.kill(&term.replica).map_err(system("cannot kill a replica"))?;
        self.note_end(term.term, "killed");
        self.mark(term.term);
        let text = format!("SIGKILL to {}, leader of term {}: {}", term.replica, term.term, of_run(&run));
        self.say(Tone::Act, &text)?;
        let text = format!("its lease of {} s lapses by itself, and nobody can lead before it has", LEASE.as_secs());
        self.say(Tone::Plain, &text)
    }

    async fn stop(&mut self) -> Result<(), CommandError> {
        let (term, run) = self.catch(Catch::BetweenTransactions).await?;
        self.note_end(term.term, "stopped");
        self.mark(term.term);
        self.marks.stopped = Some(term.tenure_id);
        let text = format!("SIGSTOP to {}, leader of term {}: {}", term.replica, term.term, of_run(&run));
        self.stopped = Some(term);
        self.say(Tone::Act, &text)
    }

    fn wake(&mut self) -> Result<(), CommandError> {
        let stopped = self.stopped()?;
        self.replicas.wake(&stopped.replica).map_err(system("cannot wake a replica"))?;
        let text = format!("SIGCONT to {}: it still believes in its term {}", stopped.replica, stopped.term);
        self.say(Tone::Act, &text)
    }

    fn stopped(&self) -> Result<TermView, CommandError> {
        self.stopped.clone().ok_or_else(|| CommandError::Internal(anyhow!("no leader was stopped before")))
    }

    async fn arrive_late(&mut self) -> Result<(), CommandError> {
        let stopped = self.stopped()?;
        if self.sight.is_refused(stopped.tenure_id) {
            return self
                .say(Tone::Plain, "it was behind its gate already when it was stopped, and has tried by itself");
        }
        let text = format!(
            "a process can also be stopped right before its BEGIN. Such a write is made now, by the demo: the claim of {}, \
             term {}, tenure {}",
            stopped.replica, stopped.term, stopped.tenure_id
        );
        self.say(Tone::Act, &text)?;
        let run = self.marks.open_runs.first().copied().unwrap_or_default();
        late::write(&self.config, &stopped, run).await
    }

    fn hand_over(&mut self) -> Result<(), CommandError> {
        let Some(term) = self.sight.leader().cloned() else {
            return Err(self.gave_up("a leader to ask to leave"));
        };
        self.replicas.ask_to_leave(&term.replica).map_err(system("cannot signal a replica"))?;
        self.note_end(term.term, "asked to leave");
        self.mark(term.term);
        self.say(Tone::Act, &format!("SIGTERM to {}, leader of term {}", term.replica, term.term))
    }

    /// Looks until the scene's cue has come.
    async fn wait(&mut self, scene: &Scene) -> Result<(), CommandError> {
        let until = clock::boottime() + scene.within;
        loop {
            self.look().await?;
            self.tell()?;
            if self.has_come(scene.until) {
                return Ok(());
            }
            if clock::boottime() >= until {
                return Err(self.gave_up(scene.until.expected()));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn has_come(&self, cue: Cue) -> bool {
        // The end of a tenure is noted in the store by best effort; its replica's log says it in any case.
        let said = || {
            self.stopped.as_ref().is_some_and(|term| {
                self.replicas.has_said(&term.replica, &["the tenure ended", &term.tenure_id.to_string()])
            })
        };
        cue.has_come(&self.sight, &self.marks) || (cue == Cue::Awake && said())
    }

    /// Looks and tells for a while.
    pub(super) async fn watch_for(&mut self, time: Duration) -> Result<(), CommandError> {
        let until = clock::boottime() + time;
        while clock::boottime() < until {
            self.look().await?;
            self.tell()?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Reads the store, and sees whether a replica has ended that was not meant to.
    pub(super) async fn look(&mut self) -> Result<(), CommandError> {
        if let Some((id, status)) = self.replicas.fallen().map_err(system("cannot ask for a replica's end"))? {
            let log = self.replicas.last_words(&id, LAST_WORDS);
            return Err(CommandError::Internal(anyhow!("{id} has ended by itself ({status}); its log ends:\n{log}")));
        }
        let filter = RunFilter { limit: MOST_SEEN, ..RunFilter::default() };
        match read(self.store.as_ref(), &filter).await {
            Ok(sight) => self.sight = sight,
            // Seen at the next look. A scene that never comes out ends by its bound.
            Err(error) if error.is_passing() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Tells what is new.
    fn tell(&mut self) -> Result<(), CommandError> {
        let mut news: Vec<(Tone, String)> = Vec::new();
        for term in self.sight.terms.iter().rev() {
            if term.worked_at.is_some() && self.told_terms.insert(term.term) {
                let after =
                    self.took(term).map_or_else(String::new, |took| format!(", {} ms after the {}", took.0, took.1));
                news.push((Tone::Good, format!("{} leads, term {}{after}", term.replica, term.term)));
            }
        }
        for run in self.sight.runs.iter().rev() {
            if !run.state.is_open() && self.told_runs.insert(run.id) && run.units.total > 0 {
                news.push((Tone::Plain, ended_run(run)));
            }
        }
        for (tone, text) in news {
            self.say(tone, &text)?;
        }
        let leader =
            self.sight.leader().map_or_else(|| "nobody leads".to_owned(), |term| format!("{} leads", term.replica));
        self.screen.progress(&leader, self.sight.progress()).map_err(screen)
    }

    /// How long it took from the end of the term before to this one's first work, and what that end was.
    pub(super) fn took(&self, term: &TermView) -> Option<(i64, &'static str)> {
        let (_, ended) = self.ended.range(..term.term).next_back()?;
        let what = match ended.how {
            "killed" => "SIGKILL",
            "stopped" => "SIGSTOP",
            "asked to leave" => "SIGTERM",
            other => other,
        };
        Some(((term.worked_at? - ended.at).num_milliseconds(), what))
    }

    /// What is told, and done, once a scene has come out.
    async fn conclude(&mut self, scene: &Scene) -> Result<(), CommandError> {
        match scene.act {
            Act::Kill => {
                self.say(Tone::Good, "what the killed leader left half done is settled, and nothing of it twice")?;
                self.start_one()
            }
            Act::Stop => self.say(Tone::Good, "settled without it; it stands where it was stopped"),
            Act::Wake => {
                let stopped = self.stopped()?;
                let how = if self.sight.is_refused(stopped.tenure_id) {
                    "its write was refused by the store"
                } else {
                    "it saw by its own clock that its lease is over, and stopped before it wrote anything"
                };
                self.say(Tone::Good, &format!("{}: {how}", stopped.replica))
            }
            Act::Late => self.show_refusal(),
            Act::HandOver => self.see_it_leave().await,
            Act::Start | Act::Watch => Ok(()),
        }
    }

    fn show_refusal(&mut self) -> Result<(), CommandError> {
        let Some(reject) = self.marks.stopped.and_then(|tenure| self.sight.refusal(tenure)) else {
            return Err(self.gave_up(Cue::Refused.expected()));
        };
        let found = reject.found.map_or_else(|| "none".to_owned(), |found| found.term.to_string());
        let text = format!(
            "REFUSED, says the store's own record: term {} was presented, {found} is in force ({}, {})",
            reject.presented.term, reject.operation, reject.replica
        );
        self.say(Tone::Good, &text)
    }

    async fn see_it_leave(&mut self) -> Result<(), CommandError> {
        let left = self.sight.terms.iter().find(|term| term.term == self.marks.term).map(|term| term.replica.clone());
        let Some(left) = left else { return Ok(()) };
        let until = clock::boottime() + LEFT_WITHIN;
        loop {
            self.look().await?;
            self.tell()?;
            if let Some(status) = self.replicas.ended(&left).map_err(system("cannot ask for a replica's end"))? {
                return self.say(Tone::Good, &format!("{left} has left ({status})"));
            }
            if clock::boottime() >= until {
                return Err(self.gave_up("the end of a replica that was asked to leave"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub(super) fn gave_up(&mut self, expected: &str) -> CommandError {
        let mut text = format!("expected {expected}, and it did not come");
        for id in self.replicas.running().unwrap_or_default() {
            text.push_str("\n--- ");
            text.push_str(&id);
            text.push_str(", its log ends:\n");
            text.push_str(&self.replicas.last_words(&id, LAST_WORDS));
        }
        CommandError::Internal(anyhow!(text))
    }
}

async fn read(store: &dyn Store, filter: &RunFilter) -> Result<Sight, StoreError> {
    let history = store.history(MOST_SEEN).await?;
    Ok(Sight { terms: history.terms, runs: store.runs(filter).await?, rejects: history.rejects })
}
