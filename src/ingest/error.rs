//! What is wrong with a file of entries, and where.

use std::fmt;

use super::FINDINGS_SHOWN;

/// One finding. For a person at a terminal: it may show an amount or a merchant id, so it is never logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The line that the row begins on, from 1; `None`: the file as a whole.
    pub line: Option<u64>,
    /// The column's name; `None`: the row as a whole.
    pub column: Option<&'static str>,
    /// What was found and what is allowed.
    pub problem: String,
}

/// All findings about one file, in the order of its lines. Never empty. Printed one to a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestErrors {
    file: String,
    shown: Vec<Finding>,
    total: usize,
}

impl IngestErrors {
    pub(super) const fn new(file: String) -> Self {
        Self { file, shown: Vec::new(), total: 0 }
    }

    pub(super) fn of_file(file: &str, problem: String) -> Self {
        let mut errors = Self::new(file.to_owned());
        errors.push(None, None, problem);
        errors
    }

    pub(super) fn push(&mut self, line: Option<u64>, column: Option<&'static str>, problem: String) {
        self.total += 1;
        if self.shown.len() < FINDINGS_SHOWN {
            self.shown.push(Finding { line, column, problem });
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The findings, at most [`FINDINGS_SHOWN`].
    #[must_use]
    pub fn shown(&self) -> &[Finding] {
        &self.shown
    }

    /// How many there are.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.total
    }
}

impl fmt::Display for IngestErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, finding) in self.shown.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&self.file)?;
            if let Some(line) = finding.line {
                write!(f, ":{line}")?;
            }
            if let Some(column) = finding.column {
                write!(f, ": {column}")?;
            }
            write!(f, ": {}", finding.problem)?;
        }
        match self.total - self.shown.len() {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for IngestErrors {}
