//! Rows that are read one by one: one that this release cannot read (another release wrote it) is passed over, named in the
//! log, and holds up no other.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

/// What a tenure has said of rows that it cannot read: they are met at every look, and named once.
#[derive(Debug, Default)]
pub(super) struct Said(Mutex<BTreeSet<String>>);

/// The most that is kept; past it, rows are named again.
const KEPT: usize = 1_000;

impl Said {
    /// Whether this was not said before.
    fn is_new(&self, what: &str) -> bool {
        // Nothing panics under it, and a set is whole at any time.
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() >= KEPT {
            said.clear();
        }
        said.insert(what.to_owned())
    }
}

/// The rows that can be read, and the names of the others. `name` is what a person knows a row by.
pub(super) fn readable<R, T, E: Display>(
    rows: &[R],
    read: impl Fn(&R) -> Result<T, E>,
    said: &Said,
    what: &'static str,
    name: impl Fn(&R) -> Option<String>,
) -> (Vec<T>, Vec<String>) {
    let mut unreadable = Vec::new();
    let mut readable = Vec::with_capacity(rows.len());
    for row in rows {
        match read(row) {
            Ok(value) => readable.push(value),
            Err(error) => {
                let name = name(row).unwrap_or_default();
                if said.is_new(&format!("{what} {name}")) {
                    tracing::error!(what, name, %error, "a row cannot be read by this release and is passed over");
                }
                unreadable.push(name);
            }
        }
    }
    (readable, unreadable)
}
