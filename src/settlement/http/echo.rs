//! What an answer says about the payment: its echo of key, amount and currency, its reference, and whether it is an error in
//! the clothes of a success.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// The longest reference that is kept, in characters.
const MOST_REFERENCE: usize = 140;
/// Words in `status` that say that no payment was made, whatever the status line says.
const SAYS_NO: [&str; 23] = [
    "failed",
    "failure",
    "rejected",
    "declined",
    "refused",
    "error",
    "cancelled",
    "canceled",
    "returned",
    "denied",
    "unpaid",
    "reversed",
    "expired",
    "blocked",
    "invalid",
    "aborted",
    "void",
    "voided",
    "bounced",
    "unauthorized",
    "forbidden",
    "unprocessable",
    "not_found",
];
/// A number in `status` from here on is that of an error, as problem details give it.
const ERRORS_FROM: i64 = 400;

/// What an echo has to agree with: taken from the stored bytes, so that it is what was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    key: String,
    amount: Option<String>,
    amount_minor: Option<String>,
    currency: Option<String>,
}

impl Expected {
    /// What the stored bytes of an instruction say. A body without an amount (that of a call) has only its key compared.
    #[must_use]
    pub fn of(key: &str, body: &[u8]) -> Self {
        let read: Fields = serde_json::from_slice(body).unwrap_or_default();
        let text = |values: &[Value]| values.first().and_then(as_text);
        Self {
            key: key.to_owned(),
            amount: text(&read.amount),
            amount_minor: text(&read.amount_minor),
            currency: text(&read.currency),
        }
    }
}

/// What a body was found to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Echo {
    /// Nothing that is compared.
    Absent {
        /// The receiver's own name for the payment.
        reference: Option<String>,
    },
    /// What is compared agrees.
    Agrees {
        /// The receiver's own name for the payment.
        reference: Option<String>,
        /// Whether all that can be compared was there.
        whole: bool,
    },
    /// It does not, or it is no answer of this kind: why, without a value.
    Disagrees(&'static str),
}

/// The fields that are looked at, each with every value that the object gives it.
#[derive(Debug, Default)]
struct Fields {
    key: Vec<Value>,
    amount: Vec<Value>,
    amount_minor: Vec<Value>,
    currency: Vec<Value>,
    reference: Vec<Value>,
    status: Vec<Value>,
    error: Vec<Value>,
    success: Vec<Value>,
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Fields::default();
        while let Some(name) = map.next_key::<String>()? {
            let values = match name.as_str() {
                "key" => &mut fields.key,
                "amount" => &mut fields.amount,
                "amount_minor" => &mut fields.amount_minor,
                "currency" => &mut fields.currency,
                "reference" => &mut fields.reference,
                "status" => &mut fields.status,
                "error" | "errors" => &mut fields.error,
                "ok" | "success" => &mut fields.success,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            // Null is how many programs write "absent".
            let value: Value = map.next_value()?;
            if !value.is_null() {
                values.push(value);
            }
        }
        Ok(fields)
    }
}

/// A text, or a whole number as its digits. Anything else is no identity and no amount.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        Value::Number(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads the body of a 2xx.
pub(super) fn echo(body: &[u8], expected: &Expected) -> Echo {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Echo::Absent { reference: None };
    }
    let Ok(fields) = serde_json::from_slice::<Fields>(body) else {
        return Echo::Disagrees("the body is not a JSON object");
    };
    let is_error = |value: &Value| match value {
        Value::Bool(error) => *error,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(items) => !items.is_empty(),
        Value::Number(number) => number.as_i64() != Some(0),
        Value::Null => false,
    };
    if fields.error.iter().any(is_error) {
        return Echo::Disagrees("the body speaks of an error");
    }
    if fields.status.iter().any(says_no) {
        return Echo::Disagrees("the body's status is no payment");
    }
    if fields.success.contains(&Value::Bool(false)) {
        return Echo::Disagrees("the body says that it was no success");
    }
    if !fields.amount.iter().all(|value| is_amount(value, expected)) {
        return Echo::Disagrees("the echo has another amount");
    }
    let key = agrees(&fields.key, Some(&expected.key));
    let amount = agrees(&fields.amount_minor, expected.amount_minor.as_deref());
    let currency = agrees(&fields.currency, expected.currency.as_deref());
    let (key, amount, currency) = match (key, amount, currency) {
        (Err(()), _, _) => return Echo::Disagrees("the echo has another key"),
        (_, Err(()), _) => return Echo::Disagrees("the echo has another amount_minor"),
        (_, _, Err(())) => return Echo::Disagrees("the echo has another currency"),
        (Ok(key), Ok(amount), Ok(currency)) => (key, amount, currency),
    };
    let reference = fields.reference.first().and_then(as_text).and_then(|text| bounded(&text));
    if key || amount || currency {
        let whole = key && (amount || expected.amount_minor.is_none()) && (currency || expected.currency.is_none());
        Echo::Agrees { reference, whole }
    } else {
        Echo::Absent { reference }
    }
}

/// Whether a `status` is that of no payment: a word, or an error's number.
fn says_no(status: &Value) -> bool {
    match status {
        Value::String(word) => SAYS_NO.contains(&word.to_lowercase().as_str()),
        Value::Number(number) => number.as_i64().is_some_and(|number| number >= ERRORS_FROM),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Whether an `amount` is the one that was sent. Some receivers count it in minor units; one that gives it in a shape of its own,
/// as an object does with the currency in it, says nothing that can be compared.
fn is_amount(given: &Value, expected: &Expected) -> bool {
    let (Some(amount), text) = (
        &expected.amount,
        match given {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return true,
        },
    ) else {
        return true;
    };
    let plain = |text: &str| text.contains('.').then(|| text.trim_end_matches('0').trim_end_matches('.').to_owned());
    let same = |other: &str| plain(&text).as_deref().unwrap_or(&text) == plain(other).as_deref().unwrap_or(other);
    same(amount) || expected.amount_minor.as_deref().is_some_and(same)
}

/// Whether every `status` that the body gives is one of these words; none given is fine.
pub(super) fn every_status_is_one_of(body: &[u8], words: &[&str]) -> bool {
    let is_one = |value: &Value| value.as_str().is_some_and(|word| words.contains(&word.to_lowercase().as_str()));
    serde_json::from_slice::<Fields>(body).is_ok_and(|fields| fields.status.iter().all(is_one))
}

/// Whether every value given agrees; `Ok(false)` where none is given, or nothing is known to compare it with.
fn agrees(given: &[Value], expected: Option<&str>) -> Result<bool, ()> {
    let Some(expected) = expected else { return Ok(false) };
    if given.iter().all(|value| as_text(value).as_deref() == Some(expected)) { Ok(!given.is_empty()) } else { Err(()) }
}

/// A reference as it can be stored and shown: no control characters, not longer than [`MOST_REFERENCE`].
fn bounded(text: &str) -> Option<String> {
    let kept: String = text.trim().chars().filter(|c| !c.is_control()).take(MOST_REFERENCE).collect();
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Echo {
        let sent = br#"{"key":"k","merchant":"m","amount":"109.00","amount_minor":"10900","currency":"EUR"}"#;
        echo(body.as_bytes(), &Expected::of("k", sent))
    }

    #[test]
    fn an_echo_agrees_in_all_that_it_says() {
        let reference = || Some("R1".to_owned());
        for (body, expected) in [
            ("", Echo::Absent { reference: None }),
            (" \r\n", Echo::Absent { reference: None }),
            ("{}", Echo::Absent { reference: None }),
            (r#"{"reference":"R1","key":null}"#, Echo::Absent { reference: reference() }),
            (r#"{"key":"k","reference":"R1"}"#, Echo::Agrees { reference: reference(), whole: false }),
            (
                r#"{"key":"k","amount_minor":10900,"currency":"EUR","reference":7,"error":null,"errors":[]}"#,
                Echo::Agrees { reference: Some("7".to_owned()), whole: true },
            ),
            (r#"{"amount_minor":"10900"}"#, Echo::Agrees { reference: None, whole: false }),
            (r#"{"amount":"109.00","status":200,"success":true}"#, Echo::Absent { reference: None }),
            (r#"{"amount":109,"status":"paid"}"#, Echo::Absent { reference: None }),
            (r#"{"amount":109.0}"#, Echo::Absent { reference: None }),
            (r#"{"amount":"10900"}"#, Echo::Absent { reference: None }),
            (r#"{"amount":{"value":"1.00","currency":"EUR"}}"#, Echo::Absent { reference: None }),
        ] {
            assert_eq!(read(body), expected, "{body}");
        }
    }

    #[test]
    fn whatever_is_not_an_agreeing_object_disagrees() {
        for body in [
            "<html>Bad gateway</html>",
            "OK",
            "\"k\"",
            "[]",
            "null",
            "{\"key\":\"k\"",
            "{\"key\":\"k\"} x",
            r#"{"key":"l"}"#,
            r#"{"key":"k","key":"l"}"#,
            r#"{"key":["k"]}"#,
            r#"{"amount_minor":10900.0}"#,
            r#"{"amount_minor":"109.00"}"#,
            r#"{"amount_minor":1090000000000000000000000}"#,
            r#"{"currency":"eur"}"#,
            r#"{"error":"declined"}"#,
            r#"{"errors":[1]}"#,
            r#"{"key":"k","status":"REJECTED"}"#,
            r#"{"key":"k","status":"Denied"}"#,
            r#"{"title":"Internal Server Error","status":500}"#,
            r#"{"key":"k","success":false}"#,
            r#"{"key":"k","ok":false}"#,
            r#"{"key":"k","amount":"1.09"}"#,
            r#"{"key":"k","amount":"109.01"}"#,
            r#"{"key":"k","amount":1090}"#,
        ] {
            assert!(matches!(read(body), Echo::Disagrees(_)), "{body}: {:?}", read(body));
        }
        let deep = format!("{{\"key\":{}}}", "[".repeat(60_000));
        assert!(matches!(read(&deep), Echo::Disagrees(_)));
    }

    #[test]
    fn a_reference_is_bounded_and_clean() {
        let long = format!(r#"{{"reference":" a\u0000\n{} "}}"#, "x".repeat(500));
        let Echo::Absent { reference: Some(reference) } = read(&long) else { panic!("a reference") };
        assert_eq!(reference.len(), MOST_REFERENCE);
        assert!(reference.starts_with("axx"), "{reference}");
    }
}
