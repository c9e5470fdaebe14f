//! What happened when: one line of JSON for each thing, in a file that outlives the run.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bursar::clock::boottime;
use bursar::domain::Moment;
use serde_json::{Map, Value};

/// A time in whole milliseconds.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The file, written to by everyone who sees or does something.
#[derive(Debug)]
pub struct History {
    file: Mutex<File>,
    begun: Moment,
}

impl History {
    /// Begins one in a folder, which is made where it is missing.
    ///
    /// # Panics
    /// When the folder cannot be written to.
    pub fn begin(folder: &Path) -> Self {
        fs::create_dir_all(folder).expect("the folder can be made");
        let file = File::create(folder.join("history.jsonl")).expect("the folder can be written to");
        Self { file: Mutex::new(file), begun: boottime() }
    }

    /// Milliseconds from the beginning to that moment.
    pub fn millis(&self, at: Moment) -> u64 {
        millis(at.since(self.begun))
    }

    /// Writes a line: what, and its particulars, an object.
    pub fn note(&self, what: &str, particulars: Value) {
        self.note_at(boottime(), what, particulars);
    }

    /// As [`Self::note`], of a moment that is over.
    pub fn note_at(&self, at: Moment, what: &str, particulars: Value) {
        let mut line = Map::new();
        line.insert("at_ms".to_owned(), self.millis(at).into());
        line.insert("what".to_owned(), what.into());
        if let Value::Object(more) = particulars {
            line.extend(more);
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // What cannot be written is only not seen afterwards; the run goes on.
        writeln!(file, "{}", Value::Object(line)).ok();
    }
}
