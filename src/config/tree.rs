//! What was written, with its places: TOML read strictly, before anything is interpreted.
//!
//! Invariants: a value keeps the type that it was written in (nothing is coerced), and every key and value knows its line.
//! Keys are restricted to letters, digits, `_` and `-`, so that a path of keys is never ambiguous.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Place, Scope};

/// One value and where it was written.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Where its key stands (a list's item: the item).
    pub(super) key_place: Place,
    /// Where it stands itself.
    pub(super) place: Place,
    pub(super) value: Value,
}

/// A table's content, by key.
pub(super) type Table = BTreeMap<String, Node>;

/// A value as it was written.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Flag(bool),
    /// What no key takes: a number with a point, a whole number beyond 64 bits, a date. As it was written.
    Other(String),
    List(Vec<Node>),
    Table(Table),
    /// The text of an environment variable: read as what its key takes, as strictly as the file.
    Variable(String),
}

/// Reads a TOML document. All syntax errors are found in one go; what could be read in spite of them is returned too.
pub(super) fn read_toml(source: &str, text: &str) -> (Node, Vec<ConfigError>) {
    let lines = Lines::new(source, text);
    let (table, syntax) = DeTable::parse_recoverable(text);
    let mut errors: Vec<ConfigError> = syntax
        .iter()
        .map(|error| ConfigError {
            place: error.span().map_or_else(|| lines.whole.clone(), |span| lines.place(&span)),
            key: String::new(),
            problem: format!("not valid TOML: {}", error.message().trim().replace('\n', "; ")),
            scope: Scope::Key,
        })
        .collect();
    let place = lines.whole.clone();
    let value = Value::Table(convert_table(table.get_ref(), "", &lines, &mut errors));
    (Node { key_place: place.clone(), place, value }, errors)
}

fn convert_table(table: &DeTable<'_>, path: &str, lines: &Lines<'_>, errors: &mut Vec<ConfigError>) -> Table {
    let mut converted = Table::new();
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let key_place = lines.place(&key.span());
        let full = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
            errors.push(ConfigError {
                place: key_place,
                key: if path.is_empty() { format!("{name:?}") } else { format!("{path}.{name:?}") },
                problem: "not a key: expected letters, digits, '_' and '-'".to_owned(),
                scope: Scope::Key,
            });
            continue;
        }
        let value = convert(value, key_place, &full, lines, errors);
        converted.insert(name.to_owned(), value);
    }
    converted
}

fn convert(
    value: &Spanned<DeValue<'_>>,
    key_place: Place,
    path: &str,
    lines: &Lines<'_>,
    errors: &mut Vec<ConfigError>,
) -> Node {
    let place = lines.place(&value.span());
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(whole) => i64::from_str_radix(whole.as_str(), whole.radix())
            .map_or_else(|_| Value::Other(whole.to_string()), Value::Whole),
        DeValue::Float(float) => Value::Other(float.to_string()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(date) => Value::Other(date.to_string()),
        DeValue::Array(items) => Value::List(
            items
                .iter()
                .enumerate()
                .map(|(n, item)| convert(item, lines.place(&item.span()), &format!("{path}[{n}]"), lines, errors))
                .collect(),
        ),
        DeValue::Table(table) => Value::Table(convert_table(table, path, lines, errors)),
    };
    Node { key_place, place, value }
}

/// Turns byte offsets into lines and columns.
struct Lines<'a> {
    whole: Place,
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(source: &str, text: &'a str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(n, _)| n + 1);
        Self { whole: Place::of(source), text, starts: std::iter::once(0).chain(newlines).collect() }
    }

    fn place(&self, span: &Range<usize>) -> Place {
        let offset = span.start.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let column = self.text.get(start..offset).map_or(offset - start, |before| before.chars().count()) + 1;
        self.whole.at(u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(node: &Node) -> &Table {
        match &node.value {
            Value::Table(table) => table,
            other => panic!("a table, not {other:?}"),
        }
    }

    #[test]
    fn every_key_and_value_knows_its_line_and_column() {
        let (root, errors) = read_toml("a.toml", "x = 1\n\n[\"ä\"]\n[t]\n  \"é\" = 2\n  y = [ \"a\",\n  5.7]\n");
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert_eq!(errors[0].place.to_string(), "a.toml:5:3");
        assert_eq!(errors[1].place.to_string(), "a.toml:3:2");
        let t = &table(&root)["t"];
        assert_eq!(t.key_place.to_string(), "a.toml:4:2");
        let y = &table(t)["y"];
        assert_eq!((y.key_place.to_string(), y.place.to_string()), ("a.toml:6:3".into(), "a.toml:6:7".into()));
        let Value::List(items) = &y.value else { panic!("a list") };
        assert_eq!(items[1].place.to_string(), "a.toml:7:3");
        assert!(matches!(&items[1].value, Value::Other(found) if found == "5.7"));
    }

    #[test]
    fn all_syntax_errors_are_found_in_one_go() {
        let (root, errors) = read_toml("a.toml", "a = \nb = 1\nb = 2\nc = \"open\nd = 4\n");
        let lines: Vec<_> = errors.iter().map(|e| e.place.line()).collect();
        assert_eq!(lines, [Some(1), Some(3), Some(4)], "{errors:?}");
        assert!(matches!(table(&root)["d"].value, Value::Whole(4)));
    }
}
