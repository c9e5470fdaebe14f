//! Files of entries in the canonical form, built line by line or in bulk.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::scratch;

/// The header of the canonical form.
pub const HEADER: &str = "id,merchant,currency,kind,amount,fee,occurred_at,available_at,reference";
/// When entries happen unless said otherwise: long past, so that every cutoff takes them.
const LONG_PAST: &str = "2026-01-05T10:00:00Z";

/// One line; every field is written as it stands here, quoted where CSV asks for it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Unique in its source.
    pub id: String,
    /// The merchant.
    pub merchant: String,
    /// ISO 4217, or something wrong.
    pub currency: String,
    /// One of the kinds, or something wrong.
    pub kind: String,
    /// In major units.
    pub amount: String,
    /// In major units, or empty.
    pub fee: String,
    /// RFC 3339.
    pub occurred_at: String,
    /// RFC 3339, or empty.
    pub available_at: String,
    /// Free, or empty.
    pub reference: String,
}

/// A file's lines.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    lines: Vec<Entry>,
    prefix: String,
}

impl Entries {
    /// None yet; ids are `e1`, `e2`, ….
    pub fn new() -> Self {
        Self::with_ids("e")
    }

    /// None yet; ids are the prefix and a number.
    pub fn with_ids(prefix: &str) -> Self {
        Self { lines: Vec::new(), prefix: prefix.to_owned() }
    }

    /// One more line of any kind, without a fee.
    #[must_use]
    pub fn entry(mut self, kind: &str, merchant: &str, currency: &str, amount: &str) -> Self {
        self.lines.push(Entry {
            id: format!("{}{}", self.prefix, self.lines.len() + 1),
            merchant: merchant.to_owned(),
            currency: currency.to_owned(),
            kind: kind.to_owned(),
            amount: amount.to_owned(),
            fee: String::new(),
            occurred_at: LONG_PAST.to_owned(),
            available_at: String::new(),
            reference: String::new(),
        });
        self
    }

    /// A capture.
    #[must_use]
    pub fn capture(self, merchant: &str, currency: &str, amount: &str) -> Self {
        self.entry("capture", merchant, currency, amount)
    }

    /// A refund; the amount has its minus.
    #[must_use]
    pub fn refund(self, merchant: &str, currency: &str, amount: &str) -> Self {
        self.entry("refund", merchant, currency, amount)
    }

    /// Changes the last line: its fee.
    #[must_use]
    pub fn fee(self, fee: &str) -> Self {
        self.last(|entry| fee.clone_into(&mut entry.fee))
    }

    /// Changes the last line: when it happened and, for want of another word, is available.
    #[must_use]
    pub fn at(self, time: &str) -> Self {
        self.last(|entry| time.clone_into(&mut entry.occurred_at))
    }

    /// Changes the last line: when it is available.
    #[must_use]
    pub fn available(self, time: &str) -> Self {
        self.last(|entry| time.clone_into(&mut entry.available_at))
    }

    /// Changes the last line in any way.
    ///
    /// # Panics
    /// Where there is none.
    #[must_use]
    pub fn last(mut self, change: impl FnOnce(&mut Entry)) -> Self {
        change(self.lines.last_mut().expect("there is a line to change"));
        self
    }

    /// `per_merchant` captures in EUR for each of `m00000`, `m00001`, …, of 1.00, 1.01, … by merchant, with a fee of 0.01
    /// each: the net of merchant `i` is `per_merchant * (99 + i)` cents.
    #[must_use]
    pub fn bulk(mut self, merchants: usize, per_merchant: usize) -> Self {
        for merchant in 0..merchants {
            let cents = 100 + merchant;
            let (name, amount) = (format!("m{merchant:05}"), format!("{}.{:02}", cents / 100, cents % 100));
            for _ in 0..per_merchant {
                self = self.capture(&name, "EUR", &amount).fee("0.01");
            }
        }
        self
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for line in &self.lines {
            let fields = [
                &line.id,
                &line.merchant,
                &line.currency,
                &line.kind,
                &line.amount,
                &line.fee,
                &line.occurred_at,
                &line.available_at,
                &line.reference,
            ];
            let quoted: Vec<String> = fields.into_iter().map(|field| quote(field)).collect();
            writeln!(text, "{}", quoted.join(",")).expect("a String takes all");
        }
        text
    }

    /// Writes the file into a folder of its own.
    pub fn write(&self, name: &str) -> PathBuf {
        let path = scratch::folder("entries").join(name);
        self.write_to(&path);
        path
    }

    /// Writes the file there.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write_to(&self, path: &Path) {
        fs::write(path, self.text()).expect("the folder is ours");
    }
}

fn quote(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_in_the_canonical_form() {
        let entries = Entries::new().capture("ACME, \"Ltd\"", "EUR", "10.00").fee("0.30").refund("b", "JPY", "-5");
        let text = format!(
            "{HEADER}\ne1,\"ACME, \"\"Ltd\"\"\",EUR,capture,10.00,0.30,{LONG_PAST},,\ne2,b,JPY,refund,-5,,{LONG_PAST},,\n"
        );
        assert_eq!(entries.text(), text);
        assert_eq!(Entries::new().bulk(3, 2).len(), 6);
        assert!(Entries::new().bulk(101, 1).text().contains("e101,m00100,EUR,capture,2.00,0.01,"));
    }
}
