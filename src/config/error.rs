//! What is wrong with a configuration, and where: one line for each finding, so that a person can go through all of them.

use std::fmt;
use std::sync::Arc;

/// At most so many findings are kept and shown; beyond it a last line says how many more there are.
pub const MOST_ERRORS: usize = 200;

/// Where something was written: a file with line and column (both from 1, columns in characters), or a variable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    source: Arc<str>,
    at: Option<(u32, u32)>,
}

impl Place {
    /// A whole file or variable.
    #[must_use]
    pub fn of(source: &str) -> Self {
        Self { source: Arc::from(source), at: None }
    }

    /// A point in a file.
    #[must_use]
    pub fn at(&self, line: u32, column: u32) -> Self {
        Self { source: Arc::clone(&self.source), at: Some((line, column)) }
    }

    /// The line, where there is one.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        self.at.map(|(line, _)| line)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "{}:{line}:{column}", self.source),
            None => f.write_str(&self.source),
        }
    }
}

/// How much had to be seen to find an error. A layer that is overridden by another one is still held to [`Scope::Key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// One key or value by itself.
    Key,
    /// Several keys together, a missing one, or what a named file holds.
    Whole,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigError {
    /// Where.
    pub place: Place,
    /// The key with its tables, `coordinator.lease_ttl`; empty for the file itself.
    pub key: String,
    /// What was found and what is allowed. Never holds a secret.
    pub problem: String,
    pub(super) scope: Scope,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}: {}", self.place, self.problem)
        } else {
            write!(f, "{}: {}: {}", self.place, self.key, self.problem)
        }
    }
}

/// All findings of one run, by place. Never empty. Printed one to a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    errors: Vec<ConfigError>,
    more: usize,
}

impl ConfigErrors {
    /// Sorts and bounds findings; `None` where there are none.
    pub(super) fn new(mut errors: Vec<ConfigError>) -> Option<Self> {
        errors.sort();
        errors.dedup_by(|a, b| a.place == b.place && a.key == b.key && a.problem == b.problem);
        let more = errors.len().saturating_sub(MOST_ERRORS);
        errors.truncate(MOST_ERRORS);
        (!errors.is_empty()).then_some(Self { errors, more })
    }

    /// A single finding about a whole file.
    pub(super) fn of_file(source: &str, problem: String) -> Self {
        let error = ConfigError { place: Place::of(source), key: String::new(), problem, scope: Scope::Whole };
        Self { errors: vec![error], more: 0 }
    }

    /// The findings, at most [`MOST_ERRORS`].
    #[must_use]
    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }

    /// Joins the findings about two files.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.more += other.more;
        self.errors.extend(other.errors);
        self
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.errors.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
