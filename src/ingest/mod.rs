//! From a file of entries to checked entries, or to what is wrong with it, line by line. Pure but for [`read`]: the same
//! bytes give the same answer.
//!
//! The canonical CSV has the header [`HEADER`] and is comma-separated UTF-8 with or without a byte-order mark, lines ended by
//! LF or CRLF, quoted where needed with doubled quotes inside.
//!
//! Invariants:
//! - All or nothing: a file with a single finding gives no entry.
//! - Amounts are parsed exactly, by the currency's own digits. Times keep what the store keeps (microseconds); finer ones
//!   are refused rather than cut, so that the same file read again is found to be the same.
//! - What cannot be proved to be whole is refused: a row with too few or too many fields, a quote never closed.
//!
//! Everything has a bound: [`MOST_BYTES`], [`MOST_ROWS`], [`MOST_FIELD`], [`FINDINGS_SHOWN`]. Deliberately absent: conflicts
//! with what the store has (only the store can tell), profiles of other formats.

mod canonical;
mod error;
mod fields;
mod statement;
mod sums;

use std::io::Read as _;
use std::path::Path;

pub use canonical::{HEADER, parse};
pub use error::{Finding, IngestErrors};
pub(crate) use fields::finer_than;
pub use statement::{STATEMENT_HEADER, StatementLine, load_statement, parse_statement};
pub use sums::{Sums, by_currency, by_merchant};

use crate::domain::entry::NewEntry;

/// The largest file, in bytes. It is held in memory, with its entries, until it is imported.
pub const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// The most rows of a file.
pub const MOST_ROWS: usize = 2_000_000;
/// The longest field, in bytes, before its own bound is looked at.
pub const MOST_FIELD: usize = 1024;
/// The most findings that are kept; the others are counted.
pub const FINDINGS_SHOWN: usize = 100;

/// A file that was read in full and has nothing wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedFile {
    /// The source that all entries are of.
    pub source: String,
    /// The file's name, without its folders.
    pub file_name: String,
    /// SHA-256 of its bytes, 64 hexadecimal digits.
    pub sha256: String,
    /// Its entries in their order, with the line that each begins on. Ids are unique.
    pub entries: Vec<(u64, NewEntry)>,
    /// The line of the last row, where no line break ends it though others have one: a file that was cut inside its last column
    /// looks like that, and so does a whole one.
    pub open_end: Option<u64>,
}

/// Reads a file's bytes.
///
/// # Errors
/// It cannot be read, or is larger than [`MOST_BYTES`].
pub fn read(path: &Path) -> Result<Vec<u8>, IngestErrors> {
    let refuse = |problem: String| IngestErrors::of_file(&path.display().to_string(), problem);
    let file = std::fs::File::open(path).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(refuse(format!("has more than {MOST_BYTES} bytes; expected fewer: split it")));
    }
    Ok(bytes)
}

/// Reads and parses a file.
///
/// # Errors
/// Everything that is wrong with it, up to [`FINDINGS_SHOWN`].
pub fn load(path: &Path, source: &str) -> Result<ParsedFile, IngestErrors> {
    parse(&path.display().to_string(), source, &read(path)?)
}
