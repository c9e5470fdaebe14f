//! The canonical CSV: rows out of bytes, each with the line that it begins on.
//!
//! The `csv` crate takes the fields apart. Three things are looked at here, because it is lenient or silent about them: a
//! quote that is never closed (it would swallow the rest of a file that was cut short), quotes in the middle of a field, and
//! the true line of a row after CRLF or blank lines.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::error::IngestErrors;
use super::fields::{entry, quoted};
use super::{MOST_ROWS, ParsedFile};
use crate::domain::entry::{NewEntry, source_name};

/// The columns, in their order.
pub const HEADER: [&str; 9] =
    ["id", "merchant", "currency", "kind", "amount", "fee", "occurred_at", "available_at", "reference"];

/// The mark that some programs put at the start of UTF-8 text.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// Parses a file's bytes. `name` stands for the file in findings.
///
/// # Errors
/// Everything that is wrong with it, up to [`super::FINDINGS_SHOWN`].
pub fn parse(name: &str, source: &str, bytes: &[u8]) -> Result<ParsedFile, IngestErrors> {
    let mut errors = IngestErrors::new(name.to_owned());
    if let Err(problem) = source_name(source) {
        errors.push(None, None, format!("cannot be imported: {problem}"));
    }
    let mut entries: Vec<(u64, NewEntry)> = Vec::new();
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        errors.push(None, None, "is UTF-16 text, expected UTF-8".to_owned());
    } else {
        let mut rows = Rows::new(bytes.strip_prefix(MARK).unwrap_or(bytes));
        if header(&mut rows, &mut errors) {
            body(&mut rows, &mut entries, &mut errors);
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let is_open = !bytes.ends_with(b"\n") && !bytes.ends_with(b"\r");
    let open_end = entries.last().map(|(line, _)| *line).filter(|_| is_open);
    let file_name = Path::new(name).file_name().map_or_else(|| name.into(), |name| name.to_string_lossy());
    Ok(ParsedFile {
        source: source.to_owned(),
        file_name: file_name.into_owned(),
        sha256: data_encoding::HEXLOWER.encode(&Sha256::digest(bytes)),
        entries,
        open_end,
    })
}

/// Whether the header is as it must be; without it no row can be read.
fn header(rows: &mut Rows<'_>, errors: &mut IngestErrors) -> bool {
    let expected = HEADER.join(",");
    let Some(row) = rows.next() else {
        errors.push(None, None, format!("is empty, expected the header {expected}"));
        return false;
    };
    let found: Vec<_> = row.fields.iter().map(String::from_utf8_lossy).collect();
    if row.quoting.is_ok() && found == HEADER {
        return true;
    }
    let hint = match found.as_slice() {
        [one] if one.contains(';') => "; columns are separated by commas, not by ';'".to_owned(),
        [one] if one.contains('\t') => "; columns are separated by commas, not by tabs".to_owned(),
        found => {
            let differs = |(n, column): (usize, &&str)| found.get(n).is_none_or(|found| found != *column);
            match HEADER.iter().enumerate().position(differs) {
                Some(n) => format!(
                    "; column {} is {}, expected {}",
                    n + 1,
                    found.get(n).map_or_else(|| "missing".to_owned(), |found| quoted(found)),
                    HEADER[n]
                ),
                None => format!("; there are {} columns too many", found.len() - HEADER.len()),
            }
        }
    };
    errors.push(Some(row.line), None, format!("is not the header {expected}{hint}"));
    false
}

fn body(rows: &mut Rows<'_>, entries: &mut Vec<(u64, NewEntry)>, errors: &mut IngestErrors) {
    let mut seen: HashMap<String, u64> = HashMap::new();
    let mut count = 0;
    while let Some(row) = rows.next() {
        count += 1;
        if count > MOST_ROWS {
            errors.push(Some(row.line), None, format!("is row {count}, expected at most {MOST_ROWS}: split the file"));
            return;
        }
        let line = row.line;
        let Some(fields) = texts(&row, errors) else { continue };
        // Also a row with other findings takes its id, so that everything is found in one go.
        match seen.entry(fields[0].to_owned()) {
            Entry::Occupied(first) if !fields[0].is_empty() => {
                let (id, first) = (quoted(fields[0]), first.get());
                errors.push(
                    Some(line),
                    Some("id"),
                    format!("found {id}, which line {first} has too; expected each once"),
                );
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(place) => {
                place.insert(line);
            }
        }
        if let Some(entry) = entry(fields, &mut |column, problem| errors.push(Some(line), Some(column), problem))
            && errors.is_empty()
        {
            entries.push((line, entry));
        }
    }
}

/// A row's fields as text, where it has as many as the header and all of them can be read.
fn texts<'a>(row: &Row<'a>, errors: &mut IngestErrors) -> Option<[&'a str; HEADER.len()]> {
    if let Err(problem) = row.quoting {
        errors.push(Some(row.line), None, problem.to_owned());
        return None;
    }
    if row.fields.len() != HEADER.len() {
        let problem = format!("found {} fields, expected {}", row.fields.len(), HEADER.len());
        errors.push(Some(row.line), None, problem);
        return None;
    }
    let mut fields = [""; HEADER.len()];
    let mut readable = true;
    for ((bytes, field), column) in row.fields.iter().zip(&mut fields).zip(HEADER) {
        if let Ok(text) = std::str::from_utf8(bytes) {
            *field = text;
        } else {
            let problem = format!("found {}, which is not UTF-8", quoted(&String::from_utf8_lossy(bytes)));
            errors.push(Some(row.line), Some(column), problem);
            readable = false;
        }
    }
    readable.then_some(fields)
}

pub(super) struct Row<'a> {
    pub(super) line: u64,
    pub(super) fields: &'a csv::ByteRecord,
    pub(super) quoting: Result<(), &'static str>,
}

/// The rows of a text in memory.
pub(super) struct Rows<'a> {
    bytes: &'a [u8],
    reader: csv::Reader<&'a [u8]>,
    record: csv::ByteRecord,
    /// Line endings are counted up to this offset.
    counted: usize,
    line: u64,
}

impl<'a> Rows<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
        Self { bytes, reader, record: csv::ByteRecord::new(), counted: 0, line: 1 }
    }

    pub(super) fn next(&mut self) -> Option<Row<'_>> {
        let before = self.offset();
        // Reading from memory fails at nothing, and rows of any length are allowed: so an error is the end too.
        if !self.reader.read_byte_record(&mut self.record).unwrap_or(false) {
            return None;
        }
        let blank =
            self.bytes.get(before..).unwrap_or_default().iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        let start = before + blank;
        self.count_to(start);
        let raw = self.bytes.get(start..self.offset()).unwrap_or_default();
        Some(Row { line: self.line, fields: &self.record, quoting: quoting(raw) })
    }

    fn offset(&self) -> usize {
        usize::try_from(self.reader.position().byte()).unwrap_or(usize::MAX)
    }

    /// Counts LF, CRLF and a lone CR as one line ending each.
    fn count_to(&mut self, offset: usize) {
        while self.counted < offset {
            let ends = match self.bytes[self.counted] {
                b'\n' => true,
                b'\r' => self.bytes.get(self.counted + 1) != Some(&b'\n'),
                _ => false,
            };
            self.line += u64::from(ends);
            self.counted += 1;
        }
    }
}

/// Whether quotes stand only around whole fields, and every one is closed.
fn quoting(raw: &[u8]) -> Result<(), &'static str> {
    #[derive(Clone, Copy)]
    enum At {
        Start,
        Plain,
        Quoted,
        Closed,
    }
    let mut at = At::Start;
    for byte in raw {
        at = match (at, byte) {
            (At::Quoted, b'"') => At::Closed,
            (At::Start | At::Closed, b'"') | (At::Quoted, _) => At::Quoted,
            (At::Start | At::Plain | At::Closed, b',') => At::Start,
            (At::Start | At::Plain | At::Closed, b'\r' | b'\n') => return Ok(()),
            (At::Plain, b'"') => {
                return Err("has a quote in the middle of a field; expected the field in quotes, the quote doubled");
            }
            (At::Closed, _) => return Err("has text after a closing quote; expected a comma"),
            (At::Start | At::Plain, _) => At::Plain,
        };
    }
    match at {
        At::Quoted => Err("opens a quote that is never closed: the file may be cut short"),
        At::Start | At::Plain | At::Closed => Ok(()),
    }
}
