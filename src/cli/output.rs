//! What a command says: JSON with `--json`, else tables and lines that stay readable on a narrow terminal.
//!
//! Standard output is the answer, standard error the rest. Money is text in both forms, times are UTC.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write as _};

use chrono::{DateTime, SecondsFormat, Utc};
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::error::CommandError;

/// The width of a table on a terminal that does not say how wide it is.
const USUAL_WIDTH: u16 = 100;
/// Narrower terminals get this width all the same: below it columns would be one letter wide.
const LEAST_WIDTH: u16 = 40;

/// Where the answer goes and in which form.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
    done: bool,
}

impl Output {
    pub(super) const fn new(json: bool) -> Self {
        Self { json, done: false }
    }

    pub(super) const fn is_json(self) -> bool {
        self.json
    }

    /// For what follows an act that is in the store: where it cannot be written, it is said that the act is done.
    pub(super) const fn done(self) -> Self {
        Self { done: true, ..self }
    }

    /// A word beside the answer, on standard error. Where that cannot be written either, nothing is left to say it to.
    #[expect(clippy::unused_self, reason = "who writes has an output in hand")]
    pub(super) fn warn(self, text: &str) {
        complain(&format!("warning: {text}"));
    }

    /// One JSON value, indented.
    pub(super) fn json(self, value: &impl Serialize) -> Result<(), CommandError> {
        let text = serde_json::to_string_pretty(value).map_err(|error| CommandError::Internal(error.into()))?;
        self.line(&text)
    }

    /// One JSON value on one line, for who reads many.
    pub(super) fn json_line(self, value: &impl Serialize) -> Result<(), CommandError> {
        let text = serde_json::to_string(value).map_err(|error| CommandError::Internal(error.into()))?;
        self.line(&text)
    }

    /// Begins the screen anew on a terminal; elsewhere what was said stays above.
    pub(super) fn redraw(self) -> Result<(), CommandError> {
        if self.json || !std::io::stdout().is_terminal() {
            return Ok(());
        }
        // ECMA-48: cursor to the first place, then everything behind it erased.
        self.write("\x1b[H\x1b[2J")
    }

    /// One line, or several.
    pub(super) fn line(self, text: &str) -> Result<(), CommandError> {
        if self.json || !std::io::stdout().is_terminal() { self.write(text) } else { self.write(&seen(text)) }
    }

    fn write(self, text: &str) -> Result<(), CommandError> {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| out.flush())
            .map_err(|source| CommandError::Output { done: self.done, source })
    }

    /// A heading and its table; `none` in place of an empty one.
    pub(super) fn table(
        self,
        heading: &str,
        none: &str,
        columns: &[&str],
        rows: &[Vec<String>],
    ) -> Result<(), CommandError> {
        let mut text = String::new();
        if !heading.is_empty() {
            text.push_str(heading);
            text.push('\n');
        }
        if rows.is_empty() {
            text.push_str(none);
        } else {
            let terminal = width();
            // Before it is laid out: what is escaped is wider.
            let rows: Vec<Vec<String>> = match terminal {
                Some(_) => rows.iter().map(|row| row.iter().map(|cell| seen(cell).into_owned()).collect()).collect(),
                None => rows.to_vec(),
            };
            text.push_str(&render(columns, &rows, terminal));
        }
        self.line(&text)
    }
}

fn render(columns: &[&str], rows: &[Vec<String>], width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(columns.to_vec());
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for row in rows {
        table.add_row(row.clone());
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// The terminal's width; `None` where the output is a file or a pipe, which takes lines of any length.
fn width() -> Option<u16> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    Some(told.unwrap_or(USUAL_WIDTH).max(LEAST_WIDTH))
}

/// Says something on standard error.
pub(super) fn complain(text: &str) {
    let mut err = std::io::stderr().lock();
    let text = if err.is_terminal() { seen(text) } else { Cow::Borrowed(text) };
    let _unwritten = writeln!(err, "{text}");
}

/// A text as a terminal shows all of it: control characters, and those that are invisible or turn the direction of others, as
/// `\u{200b}`. Two ids that differ look different so, and no text moves the cursor.
fn seen(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_hidden(c) { seen.extend(c.escape_unicode()) } else { seen.push(c) }
    }
    Cow::Owned(seen)
}

/// Control characters but the line break, and the format characters of Unicode that have no width or turn the direction.
const fn is_hidden(c: char) -> bool {
    match c {
        '\n' => false,
        '\0'..='\u{1f}'
        | '\u{7f}'..='\u{9f}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

/// A time, to the second, in UTC.
pub(super) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A time that may not be.
pub(super) fn time_or(at: Option<DateTime<Utc>>) -> String {
    at.map_or_else(dash, time)
}

/// What may not be.
pub(super) fn or_dash(text: Option<&str>) -> String {
    text.map_or_else(dash, ToOwned::to_owned)
}

/// Nothing.
pub(super) fn dash() -> String {
    "-".to_owned()
}

/// The first digits of a fingerprint: enough to tell two apart.
pub(super) fn short(fingerprint: &str) -> String {
    fingerprint.chars().take(12).collect()
}

/// Sums by currency on one line.
pub(super) fn sums<'a>(sums: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let all: Vec<String> = sums.into_iter().map(|(currency, amount)| format!("{amount} {currency}")).collect();
    if all.is_empty() { dash() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_hide_is_escaped_and_letters_of_any_script_stay() {
        for (text, shown) in [
            ("acme\u{200b}", "acme\\u{200b}"),
            ("\u{202e}emca", "\\u{202e}emca"),
            ("a\u{1b}[2Jb\u{9b}c", "a\\u{1b}[2Jb\\u{9b}c"),
            ("two\nlines", "two\nlines"),
            ("Caf\u{e9} \u{5d0}\u{5d1} \u{65e5}\u{672c}", "Caf\u{e9} \u{5d0}\u{5d1} \u{65e5}\u{672c}"),
        ] {
            assert_eq!(seen(text), shown);
        }
    }

    #[test]
    fn a_table_fits_a_narrow_terminal_and_is_left_alone_in_a_pipe() {
        let rows = vec![vec!["daily-payouts".to_owned(), "a sentence that is rather long for one column".to_owned()]];
        let narrow = render(&["job", "why"], &rows, Some(40));
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        assert!(narrow.lines().count() > 2, "{narrow}");
        let piped = render(&["job", "why"], &rows, None);
        assert_eq!(piped.lines().count(), 2, "{piped}");
    }
}
