//! `Retry-After`, in both of its forms.

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, Utc};

/// The longest wait that a receiver can ask for.
pub const MOST_RETRY_AFTER: Duration = Duration::from_hours(24);
/// The longest value that is looked at, in bytes.
const MOST_TEXT: usize = 64;

/// How long to wait, at most [`MOST_RETRY_AFTER`]; `None` where the header says nothing that can be understood.
///
/// A date is compared with the answer's own `Date`, so that only one clock counts; with the store's time where there is
/// none.
#[must_use]
pub fn retry_after(value: &str, date: Option<&str>, store_now: DateTime<Utc>) -> Option<Duration> {
    let value = value.trim();
    if value.is_empty() || value.len() > MOST_TEXT {
        return None;
    }
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Too many digits for a number is a long time all the same.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)).min(MOST_RETRY_AFTER));
    }
    let at = http_date(value)?;
    let now = date.filter(|date| date.len() <= MOST_TEXT).and_then(|date| http_date(date.trim())).unwrap_or(store_now);
    Some((at - now).to_std().unwrap_or(Duration::ZERO).min(MOST_RETRY_AFTER))
}

/// The three forms of a date in HTTP (RFC 9110, 5.6.7).
fn http_date(text: &str) -> Option<DateTime<Utc>> {
    ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"]
        .into_iter()
        .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
        .map(|time| time.and_utc())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn now() -> DateTime<Utc> {
        "1994-11-06T08:49:00Z".parse().expect("a time")
    }

    #[test]
    fn both_forms_are_understood_and_garbage_is_not() {
        let seconds = |text, date| retry_after(text, date, now()).map(|wait| wait.as_secs());
        for (text, expected) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("86401", Some(86400)),
            ("99999999999999999999999999", Some(86400)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(37)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(37)),
            ("Sun Nov  6 08:49:37 1994", Some(37)),
            ("Sun, 06 Nov 1994 08:48:37 GMT", Some(0)),
            ("Wed, 06 Nov 2069 08:49:37 GMT", Some(86400)),
            ("Mon, 06 Nov 1994 08:49:37 GMT", None),
            ("-1", None),
            ("1.5", None),
            ("", None),
            ("soon", None),
        ] {
            assert_eq!(seconds(text, None), expected, "{text}");
        }
        let date = Some("Sun, 06 Nov 1994 08:49:30 GMT");
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT", date), Some(7));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT", Some("yesterday")), Some(37));
    }

    proptest! {
        #[test]
        fn any_text_is_bounded_or_passed_over(text in ".{0,80}", date in proptest::option::of(".{0,80}")) {
            if let Some(wait) = retry_after(&text, date.as_deref(), now()) {
                prop_assert!(wait <= MOST_RETRY_AFTER);
            }
        }
    }
}
