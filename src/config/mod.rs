//! Configuration and schedule: from files and the environment to checked values, or to *all* that is wrong with them.
//!
//! The way is one: raw (a `Node` tree with a place for every key and value), laid (defaults, file, environment), validated.
//! Invariants:
//! - Nothing is coerced. A value is of the type that its key takes, or it is a finding.
//! - Nothing is ignored. A key that nobody asked for is a finding, in every layer and every nested table.
//! - One run finds everything: with file, line and column (or the variable), key, what was found, what is allowed, and the
//!   nearest known key. A layer that is overridden by a later one is held to its own keys and values all the same.
//! - A finding never shows a secret.
//!
//! Deliberately absent: watching files (whoever reloads calls again), exit codes (`main`), warnings (`check`).

mod calendar;
mod database;
mod error;
mod job;
mod layers;
mod ledger;
mod outside;
#[cfg(feature = "chaos")]
mod probe;
mod reader;
mod receiver;
mod schedule_file;
mod ticks;
mod tree;
mod types;
mod validate;
mod values;

use std::path::Path;

use crate::secret;
pub use crate::secret::{MOST_SECRET_BYTES, Secret, SecretSource};
pub use database::LOCK_TIMEOUT;
pub use error::{ConfigError, ConfigErrors, MOST_ERRORS, Place, Scope};
pub use layers::{CONFIG_VARIABLE, OPERATOR_VARIABLE, PREFIX, process_environment};
pub use schedule_file::{MOST_JOBS, ScheduleFile};
pub use types::{
    Config, Coordinator, CoordinatorConfig, DatabaseConfig, DatabasePlace, Elections, EtcdAuth, EtcdConfig, EtcdTls,
    HttpConfig, LogConfig, LogFormat, LogLevel, OperatorConfig, PostgresConfig, ReplicaConfig, TlsMode, TracesConfig,
};
pub use validate::renewal_interval;

use reader::{Context, ReadFile, Reported};
use tree::Node;

/// The largest configuration or schedule file, in bytes.
pub const MOST_FILE_BYTES: u64 = 8 * 1024 * 1024;

const DEFAULTS: &str = include_str!("defaults.toml");
/// What holds in place of a file where none is named.
const EMBEDDED: &str = include_str!("../../config/embedded.toml");

impl Config {
    /// Reads the defaults, the file (where one is named) and the variables that start with [`PREFIX`], the later over the
    /// earlier, and the files that `*_file` keys name. Relative paths in the file are relative to it, those in variables to
    /// the working directory. Where no file is named, and no variable says where elections are held or where a database server
    /// is, the built-in `config/embedded.toml` stands in the file's place.
    ///
    /// # Errors
    /// Everything that is wrong, in one go.
    pub fn load(path: Option<&Path>, env: impl Iterator<Item = (String, String)>) -> Result<Self, ConfigErrors> {
        match path {
            Some(path) => {
                let text = read_text(path)?;
                Self::from_text(Some(path), &text, env, &|path| secret::read_bytes_now(path, MOST_SECRET_BYTES))
            }
            None => Self::from_text(None, "", env, &|path| secret::read_bytes_now(path, MOST_SECRET_BYTES)),
        }
    }

    /// As [`Config::load`], with the file's text and the reading of secret files handed in.
    ///
    /// # Errors
    /// Everything that is wrong, in one go.
    pub fn from_text(
        path: Option<&Path>,
        text: &str,
        env: impl Iterator<Item = (String, String)>,
        read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<Self, ConfigErrors> {
        let source = path.map_or_else(|| "configuration".to_owned(), |path| path.display().to_string());
        let (environment, variables) = layers::environment(env);
        let is_embedded = path.is_none() && text.is_empty() && !layers::names_servers(&environment);
        let (file, mut errors) = tree::read_toml(&source, if is_embedded { EMBEDDED } else { text });
        let unreadable = !errors.is_empty();
        errors.extend(variables);
        let defaults = layers::defaults(DEFAULTS, &Place::of(&source));
        let validate = |layers: &[&Node], read: &ReadFile<'_>| match layers::lay(layers) {
            Ok(laid) => {
                let context = Context::new(validate::base_of(path), read);
                let config = validate::config(&context, &laid);
                (config, context.into_errors())
            }
            Err(error) => {
                let problem = error.to_string();
                let error = ConfigError { place: Place::of(&source), key: String::new(), problem, scope: Scope::Whole };
                (Err(Reported), vec![error])
            }
        };
        let (config, all) = validate(&[&defaults, &file, &environment], read);
        // What the environment overrides is still held to its own keys and values; files are not read a second time.
        let (_, alone) = validate(&[&defaults, &file], &|_| Err(String::new()));
        errors.extend(alone.into_iter().filter(|error| error.scope == Scope::Key));
        // In a file that could be read in part only, what seems to be missing may just not have been read.
        errors.extend(all.into_iter().filter(|error| !unreadable || error.scope == Scope::Key));
        if unreadable {
            keep_one_syntax_error_per_line(&mut errors);
        }
        match (config, ConfigErrors::new(errors)) {
            (Ok(mut config), None) => {
                config.origin = match path {
                    Some(path) => path.display().to_string(),
                    None if is_embedded => "no configuration file: the embedded defaults".to_owned(),
                    None => "no configuration file: the environment".to_owned(),
                };
                Ok(config)
            }
            (_, Some(errors)) => Err(errors),
            (Err(Reported), None) => {
                Err(ConfigErrors::of_file(&source, "refused without a reason: a defect of bursar".to_owned()))
            }
        }
    }
}

/// On a line that is not valid TOML, one finding says so; others on it are about what was guessed.
fn keep_one_syntax_error_per_line(errors: &mut Vec<ConfigError>) {
    errors.sort();
    let mut broken: Vec<Option<u32>> = Vec::new();
    errors.retain(|error| {
        let first = error.key.is_empty() && !broken.contains(&error.place.line());
        if first {
            broken.push(error.place.line());
        }
        first || !error.key.is_empty()
    });
    errors
        .retain(|error| error.key.is_empty() || error.place.line().is_none() || !broken.contains(&error.place.line()));
}

/// Reads a text file of bounded size.
///
/// # Errors
/// Why it cannot be read, or is none.
pub fn read_text(path: &Path) -> Result<String, ConfigErrors> {
    text_of(path, read_file(path)?)
}

/// Reads a file of bounded size.
fn read_file(path: &Path) -> Result<Vec<u8>, ConfigErrors> {
    secret::read_bytes_now(path, MOST_FILE_BYTES)
        .map_err(|error| ConfigErrors::of_file(&path.display().to_string(), format!("cannot be read: {error}")))
}

/// The text of a file that was read.
fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String, ConfigErrors> {
    let source = path.display().to_string();
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.split(|b| *b == b'\n').count();
        ConfigErrors::of_file(&source, format!("line {line} is not UTF-8 text"))
    })
}
