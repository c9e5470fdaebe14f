//! Whether a user's text is one statement of a kind that leaves the transaction alone. Pure.
//!
//! Why: the driver runs every statement of a text one after the other, and SQLite lets a COMMIT through like any other. So
//! the text is read as SQLite reads it, as far as strings, names in quotes and comments go.

/// What a query may begin with.
pub(super) const READS: [&str; 3] = ["select", "with", "values"];
/// What a statement over a batch may begin with.
pub(super) const WRITES: [&str; 7] = ["select", "with", "values", "insert", "replace", "update", "delete"];

/// The statement without what ends it.
///
/// # Errors
/// What was found and what is expected.
pub(super) fn one_statement<'a>(text: &'a str, allowed: &[&str]) -> Result<&'a str, String> {
    let mut first = None;
    let mut end = None;
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = token(rest, next);
        let is_gap = next.is_whitespace() || rest.starts_with("--") || rest.starts_with("/*");
        if next == ';' {
            end = end.or(Some(at));
        } else if !is_gap {
            if end.is_some() {
                return Err("found more than one statement, expected one".to_owned());
            }
            first = first.or(Some(&rest[..length]));
        }
        at += length;
    }
    let first = first.unwrap_or("").to_ascii_lowercase();
    if !allowed.contains(&first.as_str()) {
        return Err(format!("found a statement that begins with {first:?}, expected one of {}", allowed.join(", ")));
    }
    Ok(&text[..end.unwrap_or(text.len())])
}

/// How long the token at the start of `rest` is, in bytes; at least that of its first character.
fn token(rest: &str, first: char) -> usize {
    let until = |end: &str, from: usize| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
    match first {
        // A doubled quote inside ends one token and begins the next, which comes to the same.
        '\'' | '"' | '`' => until(first.encode_utf8(&mut [0; 4]), 1),
        '[' => until("]", 1),
        '-' if rest.starts_with("--") => until("\n", 2),
        '/' if rest.starts_with("/*") => until("*/", 2),
        _ if first.is_alphanumeric() || first == '_' => {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        }
        _ => first.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_is_let_through_without_what_ends_it() {
        for (text, kept) in [
            ("select 1", "select 1"),
            ("update a set b = ';' where c = 'it''s;';\n -- done; really\n", "update a set b = ';' where c = 'it''s;'"),
            ("/* a; */ INSERT INTO \"x;y\" SELECT 1;;", "/* a; */ INSERT INTO \"x;y\" SELECT 1"),
            ("delete from [a;b] -- c; d", "delete from [a;b] -- c; d"),
            ("select 'ünï;' /* open;", "select 'ünï;' /* open;"),
        ] {
            assert_eq!(one_statement(text, &WRITES), Ok(kept), "{text}");
        }
    }

    #[test]
    fn what_ends_a_transaction_or_brings_another_statement_along_is_refused() {
        for text in
            ["commit", "select 1; commit", "-- select\nrollback", "update a set b = 1;/**/end", "", ";", "'select'"]
        {
            assert!(one_statement(text, &WRITES).is_err(), "{text}");
        }
        assert!(one_statement("update a set b = 1", &READS).is_err());
    }
}
