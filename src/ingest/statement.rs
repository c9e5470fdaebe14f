//! A bank statement: what a bank says that it paid, in a CSV of our own header.
//!
//! The columns stand in any file that a bank's export can be brought into: the key that was the end-to-end id, the bank's own
//! reference, amount in major units (paid out: above 0), currency, value date. One of key and reference may be empty.

use std::path::Path;

use chrono::NaiveDate;

use super::canonical::{MARK, Rows};
use super::error::IngestErrors;
use super::fields::{plain_within, quoted};
use super::{MOST_FIELD, MOST_ROWS, read};
use crate::domain::entry::ID_BYTES;
use crate::domain::money::Currency;

/// The columns, in their order.
pub const STATEMENT_HEADER: [&str; 5] = ["key", "reference", "amount", "currency", "value_date"];

/// One line of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementLine {
    /// The line that it begins on.
    pub line: u64,
    /// The key of a payout, where the bank passed it on.
    pub key: Option<String>,
    /// The bank's own name for it.
    pub reference: Option<String>,
    /// Minor units, above 0.
    pub amount: i64,
    /// Its currency.
    pub currency: Currency,
    /// The day on which the bank booked it.
    pub value_date: NaiveDate,
}

/// Reads and parses a statement.
///
/// # Errors
/// Everything that is wrong with it, up to [`super::FINDINGS_SHOWN`].
pub fn load_statement(path: &Path) -> Result<Vec<StatementLine>, IngestErrors> {
    parse_statement(&path.display().to_string(), &read(path)?)
}

/// Parses a statement's bytes. `name` stands for the file in findings.
///
/// # Errors
/// As [`load_statement`].
pub fn parse_statement(name: &str, bytes: &[u8]) -> Result<Vec<StatementLine>, IngestErrors> {
    let mut errors = IngestErrors::new(name.to_owned());
    let mut lines = Vec::new();
    let mut rows = Rows::new(bytes.strip_prefix(MARK).unwrap_or(bytes));
    let expected = STATEMENT_HEADER.join(",");
    let header = rows
        .next()
        .map(|row| (row.line, row.quoting.is_ok() && row.fields.iter().eq(STATEMENT_HEADER.map(str::as_bytes))));
    match header {
        None => errors.push(None, None, format!("is empty, expected the header {expected}")),
        Some((line, false)) => errors.push(Some(line), None, format!("is not the header {expected}")),
        Some((_, true)) => body(&mut rows, &mut lines, &mut errors),
    }
    if errors.is_empty() { Ok(lines) } else { Err(errors) }
}

fn body(rows: &mut Rows<'_>, lines: &mut Vec<StatementLine>, errors: &mut IngestErrors) {
    let mut count = 0;
    while let Some(row) = rows.next() {
        count += 1;
        let line = row.line;
        if count > MOST_ROWS {
            errors.push(Some(line), None, format!("is row {count}, expected at most {MOST_ROWS}: split the file"));
            return;
        }
        if let Err(problem) = row.quoting {
            errors.push(Some(line), None, problem.to_owned());
            continue;
        }
        if row.fields.len() != STATEMENT_HEADER.len() {
            let (found, expected) = (row.fields.len(), STATEMENT_HEADER.len());
            errors.push(Some(line), None, format!("found {found} fields, expected {expected}"));
            continue;
        }
        let mut fields = [""; STATEMENT_HEADER.len()];
        let mut readable = true;
        for ((bytes, field), column) in row.fields.iter().zip(&mut fields).zip(STATEMENT_HEADER) {
            if let Ok(text) = std::str::from_utf8(bytes) {
                *field = text;
            } else {
                let problem = format!("found {}, which is not UTF-8", quoted(&String::from_utf8_lossy(bytes)));
                errors.push(Some(line), Some(column), problem);
                readable = false;
            }
        }
        if readable
            && let Some(read) = fields_of(line, fields, &mut |column, what| errors.push(Some(line), Some(column), what))
            && errors.is_empty()
        {
            lines.push(read);
        }
    }
}

fn fields_of(
    line: u64,
    [key, reference, amount, currency, value_date]: [&str; 5],
    refuse: &mut dyn FnMut(&'static str, String),
) -> Option<StatementLine> {
    let mut text = |column, text: &str, most| {
        plain_within(text, most)
            .map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()))
            .map_err(|what| refuse(column, what))
            .ok()
    };
    let (key, reference) = (text("key", key, ID_BYTES), text("reference", reference.trim(), MOST_FIELD));
    if (&key, &reference) == (&Some(None), &Some(None)) {
        refuse("key", "found nothing, and no reference either; expected one of them".to_owned());
    }
    let currency = Currency::new(currency).map_err(|error| refuse("currency", error.to_string())).ok();
    let amount = currency.and_then(|currency| match currency.parse(amount) {
        Ok(minor) if minor > 0 => Some(minor),
        Ok(_) => {
            refuse("amount", format!("found {}, expected more than 0: what was paid out", quoted(amount)));
            None
        }
        Err(error) => {
            refuse("amount", error.to_string());
            None
        }
    });
    let date = NaiveDate::parse_from_str(value_date, "%Y-%m-%d").ok().filter(|date| date.to_string() == value_date);
    if date.is_none() {
        refuse("value_date", format!("found {}, expected a date such as 2027-01-31", quoted(value_date)));
    }
    let (key, reference) = (key?, reference?);
    if key.is_none() && reference.is_none() {
        return None;
    }
    Some(StatementLine { line, key, reference, amount: amount?, currency: currency?, value_date: date? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_read_exactly_and_everything_wrong_is_named_with_line_and_column() {
        let good = "key,reference,amount,currency,value_date\r\nbk1,R-1,10900,JPY,2027-01-04\r\n,R-2,18.600,KWD,2027-01-05\r\n";
        let lines = parse_statement("s.csv", good.as_bytes()).expect("nothing is wrong");
        assert_eq!((lines.len(), lines[0].amount, lines[1].amount, lines[1].line), (2, 10_900, 18_600, 3));
        assert_eq!((lines[1].key.as_deref(), lines[1].reference.as_deref()), (None, Some("R-2")));
        let reference = "ü".repeat(140);
        let kept = format!("key,reference,amount,currency,value_date\n, {reference} ,1.00,EUR,2027-01-04\n");
        let lines = parse_statement("s.csv", kept.as_bytes()).expect("as long as references that are kept");
        assert_eq!(lines[0].reference.as_deref(), Some(reference.as_str()));
        let bad = "key,reference,amount,currency,value_date\nb,,10.5,JPY,2027-01-04\n,,1.00,EUR,4.1.2027\nb,,-1.00,XXX\nc,,-1.00,EUR,2027-01-04\n";
        let errors = parse_statement("s.csv", bad.as_bytes()).expect_err("all wrong").to_string();
        for part in [
            "s.csv:2: amount:",
            "s.csv:3: key:",
            "s.csv:3: value_date:",
            "s.csv:4: found 4 fields",
            "s.csv:5: amount: found \"-1.00\", expected more than 0",
        ] {
            assert!(errors.contains(part), "{part}: {errors}");
        }
        for (text, part) in [
            ("", "is empty"),
            ("key;reference\n", "is not the header"),
            ("key,reference,amount,currency,value_date\n\"b,", "never closed"),
        ] {
            assert!(parse_statement("s.csv", text.as_bytes()).expect_err(text).to_string().contains(part), "{text}");
        }
    }
}
