//! What every command needs: the configuration, the schedule, a way to the store.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::error::{CommandError, Exit};
use super::output::Output;
use crate::app;
use crate::config::{self, CONFIG_VARIABLE, Config, DatabasePlace, ScheduleFile};
use crate::store::{Store, StoreError};

/// The file that is read where nothing names one.
const CONFIG_FILE: &str = "bursar.toml";
/// How long a command waits for its connection to the store.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// What every command needs.
#[derive(Debug)]
pub(super) struct Context {
    config: Option<PathBuf>,
    output: Output,
}

impl Context {
    pub(super) fn new(config: Option<PathBuf>, json: bool) -> Self {
        Self { config, output: Output::new(json) }
    }

    pub(super) const fn output(&self) -> Output {
        self.output
    }

    /// The configuration file by the rule of the help; `None`: the environment alone.
    fn config_file(&self) -> Result<Option<PathBuf>, CommandError> {
        if let Some(file) = &self.config {
            return Ok(Some(file.clone()));
        }
        match std::env::var_os(CONFIG_VARIABLE) {
            Some(name) if name.is_empty() => Err(CommandError::Unfit(format!(
                "environment variable {CONFIG_VARIABLE}: found an empty text, expected the path of a configuration file; without \
                 one, unset it"
            ))),
            Some(name) => Ok(Some(PathBuf::from(name))),
            None => Ok(Some(PathBuf::from(CONFIG_FILE)).filter(|path| path.exists())),
        }
    }

    /// Reads the configuration.
    pub(super) fn config(&self) -> Result<Config, CommandError> {
        let file = self.config_file()?;
        Config::load(file.as_deref(), config::process_environment().into_iter()).map_err(Into::into)
    }

    /// Reads the configuration and the schedule that it names. What is wrong with either is said in one go.
    pub(super) fn config_and_schedule(&self) -> Result<(Config, ScheduleFile), CommandError> {
        let file = self.config_file()?;
        match Config::load(file.as_deref(), config::process_environment().into_iter()) {
            Ok(config) => {
                let schedule = config.load_schedule()?;
                Ok((config, schedule))
            }
            Err(errors) => {
                let schedule = file.as_deref().and_then(schedule_named_in);
                Err(match schedule.and_then(|path| ScheduleFile::load(&path).err()) {
                    Some(more) => errors.and(more).into(),
                    None => errors.into(),
                })
            }
        }
    }

    /// Runs a command's future on a runtime of its own.
    pub(super) fn block_on(command: impl Future<Output = Result<Exit, CommandError>>) -> Result<Exit, CommandError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| CommandError::Io { what: "cannot start a runtime".to_owned(), source })?;
        let ended = runtime.block_on(command);
        runtime.shutdown_background();
        ended
    }

    /// The store; it is reached with the first question, and an unreachable one is an error of that.
    pub(super) async fn reach(&self, store: Arc<dyn Store>) -> Result<Arc<dyn Store>, CommandError> {
        let reached = tokio::time::timeout(CONNECT_WITHIN, async {
            loop {
                match store.now().await {
                    // A database that is there but slow is asked again: each try has a bound of its own, made for replicas.
                    Err(StoreError::TimedOut { .. }) => {}
                    // Nobody asked for the time.
                    answered => return answered.map_err(|error| error.during("connect")),
                }
            }
        });
        match reached.await {
            Ok(now) => now?,
            Err(_elapsed) => return Err(StoreError::TimedOut { operation: "connect", within: CONNECT_WITHIN }.into()),
        };
        Ok(store)
    }

    /// Reads the configuration and connects to a store that has this release's schema.
    pub(super) async fn open(&self) -> Result<(Config, Arc<dyn Store>), CommandError> {
        let config = self.config()?;
        let reached = self.reach(app::store_for_command(&config)?).await;
        let store = reached.map_err(|error| of_the_set_up(&config, error))?;
        match store.health().await {
            // Whether one could lead on it is the replicas' business; without its schema nothing can be asked.
            Err(error @ StoreError::Schema { .. }) => Err(error.into()),
            Ok(_) | Err(_) => Ok((config, store)),
        }
    }

    /// The same for an act on money: what the configuration says of four eyes is in force first.
    pub(super) async fn open_to_act(&self) -> Result<Arc<dyn Store>, CommandError> {
        let (config, store) = self.open().await?;
        super::approve::keep(store.as_ref(), config.operator.four_eyes).await?;
        Ok(store)
    }
}

/// A SQLite file that may not be written is no standby that is promoted in a moment: somebody has to give the right to.
fn of_the_set_up(config: &Config, error: CommandError) -> CommandError {
    match (error, &config.database.place) {
        (CommandError::Store(error @ StoreError::ReadOnly { .. }), DatabasePlace::Sqlite(_)) => {
            CommandError::Unfit(error.to_string())
        }
        (other, _) => other,
    }
}

/// The schedule that a configuration file names, where the file is wrong in some other way.
fn schedule_named_in(file: &Path) -> Option<PathBuf> {
    let text = config::read_text(file).ok()?;
    let named = text.parse::<toml::Table>().ok()?.get("schedule")?.as_str()?.to_owned();
    Some(file.parent().unwrap_or(Path::new("")).join(named))
}
