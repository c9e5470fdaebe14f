//! `bursar demo`: what this program is for, in under a minute, on real processes.
//!
//! It makes a folder with a store in SQLite, brings entries in, starts three replicas as processes of their own, and breaks
//! one leader after another ([`script`]), while it shows what the store says of them. The replicas are this
//! program with `run`, and every number is read from the store, as any command would. One thing is staged: the late write, which
//! the demo makes itself under the claim of the leader that it stopped ([`late`]).
//!
//! Invariants:
//! - No process is left behind, however the demo ends ([`replicas`]), and no folder unless it was asked for ([`world`]);
//!   killed with SIGKILL it leaves the folder, which only a person can then remove.
//! - Colours and drawing in place only on a terminal ([`screen`]).
//! - The exit code is the verdict of audit, money and fence.
//!
//! Deliberately absent: any access to the store but through its port, and any way of its own to lead or settle.

mod catch;
mod ending;
mod late;
mod replicas;
mod samples;
mod screen;
mod script;
mod sight;
mod stage;
mod words;
mod world;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use self::ending::Ending;
use self::replicas::Replicas;
use self::screen::{Screen, Tone};
use self::script::Pace;
use self::stage::Stage;
use self::world::{SOURCE, World};
use super::context::Context;
use super::error::{CommandError, Exit};
use super::operator::actor;
use super::output::sums;
use crate::app;
use crate::clock;
use crate::config::Config;
use crate::domain::money::Currency;
use crate::ingest::{self, Sums};
use crate::store::{ImportOutcome, NewImport, Store};

/// How long the replicas have for leaving at the end; what is left is killed.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);
/// A demo that nobody ends goes on so long.
const LONGEST_WATCH: Duration = Duration::from_hours(24);

/// Show what bursar is for: three replicas that settle while their leaders are killed, stopped and asked to leave.
///
/// Needs nothing: the store is a SQLite file in a temporary folder, and the replicas are processes that end with the demo.
/// It imports sample entries, settles them every two seconds, kills the leader in the middle of a run, stops the next one
/// for longer than its lease and shows that the store refuses its late write, asks the third to hand over, and audits the
/// store. Then it says where the status is to be seen, and goes on until Ctrl-C.
///
/// Exit code 0 where the audit is clean, the money adds up and the refusal is on record; 1 where not; 130 where it was ended
/// before.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// End by itself, in under 20 s.
    #[arg(long)]
    quick: bool,
    /// Keep store, configuration and logs in this folder, which has no store yet.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl DemoArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let mut ended = Signals::install()?;
        // What is dropped where a signal comes first takes the replicas and the folder with it.
        let (mut stage, ending) = tokio::select! {
            told = self.tell(context) => told?,
            () = ended.next() => return Ok(Exit::Interrupted),
        };
        if !self.quick {
            go_on(context, &ending)?;
            tokio::select! {
                watched = stage.watch_for(LONGEST_WATCH) => watched?,
                () = ended.next() => {}
            }
        }
        leave(&mut stage).await?;
        stage.store.close().await;
        Ok(if ending.good { Exit::Done } else { Exit::Refused })
    }

    /// The whole story, and what came of it.
    async fn tell(&self, context: &Context) -> Result<(Stage, Ending), CommandError> {
        let pace = if self.quick { Pace::QUICK } else { Pace::FULL };
        let mut screen = Screen::new(context.output().is_json());
        let mut say = |text: String| screen.say(Tone::Plain, &text).map_err(io("standard output"));
        let world = World::make(self.data.as_deref())?;
        say(format!("store, configuration and logs: {}", world.folder().display()))?;
        let config = Config::load(Some(&world.path("bursar.toml")), std::iter::empty())?;
        let store = app::store_for_migration(&config)?;
        store.migrate().await?;
        let first_wave = clock::wall();
        let entries = world.entries(first_wave, pace)?;
        let (imported, said) = import(store.as_ref(), &entries).await?;
        say(said)?;
        let replicas = Replicas::new(&world).map_err(io("cannot find this program"))?;
        let mut stage = Stage::new(world, config, store, replicas, screen, pace, first_wave);
        stage.play().await?;
        let ending = ending::of(&stage, &imported).await?;
        ending::show(context.output(), &ending)?;
        Ok((stage, ending))
    }
}

fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> CommandError {
    move |source| CommandError::Io { what: what.to_owned(), source }
}

/// Says that the replicas stay up until a person ends it, and where to look.
fn go_on(context: &Context, ending: &Ending) -> Result<(), CommandError> {
    let mut lines = Vec::new();
    lines.extend(ending.status_page.as_ref().map(|page| format!("status of the leader: {page}")));
    if let Some(folder) = &ending.folder {
        lines.push(format!(
            "look around with: bursar --config {folder}/bursar.toml status   (history, runs list, audit)"
        ));
    }
    lines.push("the replicas go on; Ctrl-C ends them".to_owned());
    if context.output().is_json() { Ok(()) } else { context.output().line(&lines.join("\n")) }
}

async fn leave(stage: &mut Stage) -> Result<(), CommandError> {
    let leader = stage.sight.leader().map(|term| term.replica.clone());
    stage.replicas.leave(leader.as_deref(), LEAVE_WITHIN).await.map_err(io("cannot end the replicas"))
}

/// Brings the file in; answers its own sums and what is said of it.
async fn import(store: &dyn Store, file: &Path) -> Result<(BTreeMap<Currency, Sums>, String), CommandError> {
    let parsed = ingest::load(file, SOURCE).map_err(|errors| CommandError::Internal(anyhow!("{errors}")))?;
    let imported = ingest::by_currency(parsed.entries.iter().map(|(_, entry)| entry));
    let new = NewImport {
        source: parsed.source,
        file_name: parsed.file_name,
        sha256: parsed.sha256,
        entries: parsed.entries,
    };
    match store.import(&new, &actor()).await? {
        ImportOutcome::Imported { import, .. } => {
            Ok((imported, format!("{} entries imported: {}", import.rows, sums(&import.sums))))
        }
        ImportOutcome::NothingNew { .. } | ImportOutcome::Conflicts { .. } => {
            Err(CommandError::Internal(anyhow!("the demo's store was not empty")))
        }
    }
}

/// Whatever asks the demo to end.
struct Signals([tokio::signal::unix::Signal; 3]);

impl Signals {
    fn install() -> Result<Self, CommandError> {
        let signals = || -> std::io::Result<_> {
            Ok([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?])
        };
        signals().map(Self).map_err(io("cannot take signals"))
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
