//! How one value is read as what its key takes: strictly, and with a sentence that says what was found and what is allowed.
//!
//! A variable of the environment is always text, so it is read by the same grammar as the text of a file; for whole numbers
//! and flags, which a file writes without quotes, it must be exactly the decimal digits, or `true` or `false`.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::tree::{Node, Value};

/// What one value was read as, or the sentence about it.
pub(super) type Read<T> = Result<T, String>;

/// The longest text of a key, in bytes.
pub(super) const MOST_TEXT: usize = 4096;

/// Says what stands there, cut short where it is long.
pub(super) fn found(node: &Node) -> String {
    match &node.value {
        Value::Text(text) | Value::Variable(text) => format!("the text {}", quoted(text)),
        Value::Whole(whole) => whole.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Other(other) => shortened(other),
        Value::List(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    }
}

/// Says what kind of value stands there, and not which.
pub(super) const fn kind(node: &Node) -> &'static str {
    match &node.value {
        Value::Text(_) | Value::Variable(_) => "a text",
        Value::Whole(_) => "a whole number",
        Value::Flag(_) => "true or false",
        Value::Other(_) => "a fraction, a date or a number out of range",
        Value::List(_) => "a list",
        Value::Table(_) => "a table",
    }
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// A text in quotes, cut short where it is long.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}

fn refused<T>(node: &Node, allowed: impl Display) -> Read<T> {
    Err(format!("found {}, expected {allowed}", found(node)))
}

/// Any text of 1 to [`MOST_TEXT`] bytes without control characters.
pub(super) fn text(node: &Node) -> Read<&str> {
    match &node.value {
        Value::Text(text) | Value::Variable(text) => {
            if text.is_empty() {
                Err("found an empty text, expected one".to_owned())
            } else if text.len() > MOST_TEXT {
                Err(format!("found {} bytes, expected at most {MOST_TEXT}", text.len()))
            } else if let Some(control) = text.chars().find(|c| c.is_control()) {
                Err(format!("found the control character {control:?}, expected none"))
            } else {
                Ok(text)
            }
        }
        Value::Whole(_) | Value::Flag(_) | Value::Other(_) | Value::List(_) | Value::Table(_) => {
            refused(node, "a text in quotes")
        }
    }
}

/// A text that `parse` takes; its error says what is allowed.
pub(super) fn parsed<T, E: Display>(node: &Node, parse: impl FnOnce(&str) -> Result<T, E>) -> Read<T> {
    parse(text(node)?).map_err(|error| error.to_string())
}

/// A whole number within bounds.
pub(super) fn whole(node: &Node, bounds: &RangeInclusive<i64>) -> Read<i64> {
    let number = match &node.value {
        Value::Whole(number) => Some(*number),
        Value::Variable(text) => text.parse().ok().filter(|number: &i64| number.to_string() == *text),
        Value::Text(_) | Value::Flag(_) | Value::Other(_) | Value::List(_) | Value::Table(_) => None,
    };
    match number {
        Some(number) if bounds.contains(&number) => Ok(number),
        Some(_) | None => refused(node, format_args!("a whole number from {} to {}", bounds.start(), bounds.end())),
    }
}

/// A whole number within bounds that fit 32 bits.
pub(super) fn whole_u32(node: &Node, bounds: RangeInclusive<u32>) -> Read<u32> {
    let wide = i64::from(*bounds.start())..=i64::from(*bounds.end());
    whole(node, &wide).and_then(|number| u32::try_from(number).map_err(|error| error.to_string()))
}

/// `true` or `false`.
pub(super) fn flag(node: &Node) -> Read<bool> {
    match &node.value {
        Value::Flag(flag) => Ok(*flag),
        Value::Variable(text) if text == "true" => Ok(true),
        Value::Variable(text) if text == "false" => Ok(false),
        Value::Variable(_) | Value::Text(_) | Value::Whole(_) | Value::Other(_) | Value::List(_) | Value::Table(_) => {
            refused(node, "true or false, without quotes")
        }
    }
}

/// One of some words.
pub(super) fn choice<T: Copy>(node: &Node, words: &[(&str, T)]) -> Read<T> {
    let written = match &node.value {
        Value::Text(text) | Value::Variable(text) => Some(text.as_str()),
        Value::Whole(_) | Value::Flag(_) | Value::Other(_) | Value::List(_) | Value::Table(_) => None,
    };
    if let Some((_, meant)) = words.iter().find(|(word, _)| Some(*word) == written) {
        return Ok(*meant);
    }
    let all: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
    let near = written.and_then(|text| nearest(text, words.iter().map(|(word, _)| *word)));
    refused(node, format_args!("{}{}", all.join(" or "), did_you_mean(near)))
}

/// A duration such as `90s` within bounds, in whole milliseconds.
pub(super) fn duration(node: &Node, bounds: &RangeInclusive<Duration>) -> Read<Duration> {
    let written = match &node.value {
        Value::Text(text) | Value::Variable(text) => duration_text(text),
        Value::Whole(_) | Value::Flag(_) | Value::Other(_) | Value::List(_) | Value::Table(_) => None,
    };
    match written {
        Some(time) if bounds.contains(&time) => Ok(time),
        Some(_) | None => refused(node, duration_allowed(bounds)),
    }
}

/// Says which durations are allowed.
pub(super) fn duration_allowed(bounds: &RangeInclusive<Duration>) -> String {
    let show = humantime::format_duration;
    format!("a duration from {} to {} such as \"90s\" or \"5m\"", show(*bounds.start()), show(*bounds.end()))
}

/// Reads `1h 30m`: numbers with units, in whole milliseconds.
pub(super) fn duration_text(text: &str) -> Option<Duration> {
    let time = humantime::parse_duration(text).ok()?;
    (time.subsec_nanos() % 1_000_000 == 0 && text.trim() == text).then_some(time)
}

/// The nearest of some names, where one is near enough to be what was meant: a third of it, at most, is mistyped.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    known
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min()
        .map(|(_, candidate)| candidate)
}

/// The end of a sentence that suggests a name.
pub(super) fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::error::Place;
    use super::*;

    fn node(value: Value) -> Node {
        let place = Place::of("x");
        Node { key_place: place.clone(), place, value }
    }

    #[test]
    fn nothing_is_coerced() {
        for value in [
            Value::Text("5".into()),
            Value::Other("5.0".into()),
            Value::Flag(true),
            Value::Variable("05".into()),
            Value::Variable("+5".into()),
            Value::Variable(" 5".into()),
            Value::Variable("5.0".into()),
            Value::Variable("true".into()),
            Value::Variable(String::new()),
        ] {
            assert!(whole(&node(value.clone()), &(0..=9)).is_err(), "{value:?}");
        }
        assert_eq!(whole(&node(Value::Variable("5".into())), &(0..=9)), Ok(5));
        for value in
            [Value::Whole(1), Value::Text("true".into()), Value::Variable("1".into()), Value::Variable("TRUE".into())]
        {
            assert!(flag(&node(value.clone())).is_err(), "{value:?}");
        }
        for value in [Value::Whole(5), Value::Text("5".into()), Value::Text("5 s ".into()), Value::Text("1us".into())] {
            assert!(duration(&node(value.clone()), &(Duration::ZERO..=Duration::MAX)).is_err(), "{value:?}");
        }
        assert!(text(&node(Value::Whole(5))).is_err());
    }

    #[test]
    fn the_nearest_name_is_near() {
        let known = ["lease_ttl", "prefix", "kind"];
        assert_eq!(nearest("lease_ttI", known.into_iter()), Some("lease_ttl"));
        assert_eq!(nearest("leasettl", known.into_iter()), Some("lease_ttl"));
        assert_eq!(nearest("PREFIX", known.into_iter()), Some("prefix"));
        assert_eq!(nearest("something", known.into_iter()), None);
    }

    proptest! {
        #[test]
        fn durations_are_read_as_they_are_printed(millis in 0u64..400_000_000_000) {
            let time = Duration::from_millis(millis);
            prop_assert_eq!(duration_text(&humantime::format_duration(time).to_string()), Some(time));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,40}") {
            let _ = duration_text(&text);
            let _ = whole(&node(Value::Variable(text.clone())), &(i64::MIN..=i64::MAX));
            let _ = nearest(&text, ["lease_ttl"].into_iter());
        }
    }
}
