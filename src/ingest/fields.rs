//! One row's fields to one entry.

use chrono::{DateTime, Datelike as _, Timelike as _, Utc};

use super::MOST_FIELD;
use crate::domain::entry::{EntryKind, ID_BYTES, NewEntry, merchant_id};
use crate::domain::money::Currency;

/// Years that a time may lie in.
const YEARS: std::ops::RangeInclusive<i32> = 1970..=9999;

/// What one field was read as, or the sentence about it.
type Read<T> = Result<T, String>;

/// Reads a row of nine fields in the order of the header; `refuse` takes a finding about a column. Every wrong field of the
/// row is named; one that depends on another (amount and fee on the currency, signs on the kind) only where that one is right.
pub(super) fn entry(fields: [&str; 9], refuse: &mut dyn FnMut(&'static str, String)) -> Option<NewEntry> {
    let mut short = |column, text| within(text).map_err(|problem| refuse(column, problem)).ok();
    let [id, merchant, currency, kind, amount, fee, occurred_at, available_at, reference] = [
        short("id", fields[0]),
        short("merchant", fields[1]),
        short("currency", fields[2]),
        short("kind", fields[3]),
        short("amount", fields[4]),
        short("fee", fields[5]),
        short("occurred_at", fields[6]),
        short("available_at", fields[7]),
        short("reference", fields[8]),
    ];
    let id = id.and_then(|text| self::id(text).map_err(|problem| refuse("id", problem)).ok());
    let merchant = merchant.and_then(|text| merchant_id(text).map_err(|problem| refuse("merchant", problem)).ok());
    let currency =
        currency.and_then(|text| Currency::new(text).map_err(|error| refuse("currency", error.to_string())).ok());
    let kind = kind.and_then(|text| self::kind(text).map_err(|problem| refuse("kind", problem)).ok());
    let mut money = |column, text: Option<&str>, empty: Option<i64>| {
        let (currency, text) = (currency?, text?);
        match empty {
            Some(value) if text.is_empty() => Some(value),
            Some(_) | None => currency.parse(text).map_err(|error| refuse(column, error.to_string())).ok(),
        }
    };
    let (amount, fee) = (money("amount", amount, None), money("fee", fee, Some(0)));
    let mut signs = Some(());
    if let (Some(kind), Some(currency), Some(amount), Some(fee)) = (kind, currency, amount, fee)
        && let Err(allowed) = kind.check(amount, fee)
    {
        let fee_is_wrong = kind.check(amount, 0).is_ok();
        let (column, found) = if fee_is_wrong { ("fee", fee) } else { ("amount", amount) };
        refuse(column, format!("found {}, expected another: {allowed}", currency.format(found)));
        signs = None;
    }
    let mut time = |column, text: Option<&str>| {
        text.and_then(|text| self::time(text).map_err(|problem| refuse(column, problem)).ok())
    };
    let occurred_at = time("occurred_at", occurred_at);
    let available_at = match available_at {
        Some("") => occurred_at,
        given => time("available_at", given),
    };
    let reference =
        reference.and_then(|text| self::reference(text).map_err(|problem| refuse("reference", problem)).ok());
    signs?;
    Some(NewEntry {
        id: id?.to_owned(),
        merchant: merchant?,
        currency: currency?,
        kind: kind?,
        amount: amount?,
        fee: fee?,
        occurred_at: occurred_at?,
        available_at: available_at?,
        reference: reference?,
    })
}

/// A text in quotes, cut short where it is long.
pub(super) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

fn within(text: &str) -> Read<&str> {
    if text.len() > MOST_FIELD {
        Err(format!("found {} bytes, expected at most {MOST_FIELD}", text.len()))
    } else {
        Ok(text)
    }
}

pub(super) fn plain(text: &str) -> Read<&str> {
    plain_within(text, ID_BYTES)
}

pub(super) fn plain_within(text: &str, most: usize) -> Read<&str> {
    if text.len() > most {
        return Err(format!("found {} bytes, expected at most {most}", text.len()));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(control) => Err(format!("found the control character {control:?}, expected none")),
        None => Ok(text),
    }
}

/// Compared by byte, so white space around it would make another id of it.
fn id(text: &str) -> Read<&str> {
    if text.is_empty() {
        Err(format!("found nothing, expected 1 to {ID_BYTES} bytes"))
    } else if text.trim() != text {
        Err(format!("found {}, expected no white space around it", quoted(text)))
    } else {
        plain(text)
    }
}

fn reference(text: &str) -> Read<Option<String>> {
    plain(text).map(|text| (!text.is_empty()).then(|| text.to_owned()))
}

fn kind(text: &str) -> Read<EntryKind> {
    let importable = || EntryKind::ALL.into_iter().filter(|kind| *kind != EntryKind::Carry);
    match EntryKind::parse(text) {
        Some(EntryKind::Carry) => Err("found \"carry\", which bursar writes itself; expected another kind".to_owned()),
        Some(kind) => Ok(kind),
        None => {
            let all: Vec<&str> = importable().map(EntryKind::as_str).collect();
            Err(format!("found {}, expected {}", quoted(text), all.join(", ")))
        }
    }
}

fn time(text: &str) -> Read<DateTime<Utc>> {
    let refused = |what: &str| Err(format!("found {}, expected {what}", quoted(text)));
    let Ok(time) = DateTime::parse_from_rfc3339(text) else {
        return refused("a time in RFC 3339 with its offset such as 2027-01-31T17:05:00Z");
    };
    let time = time.with_timezone(&Utc);
    if !YEARS.contains(&time.year()) {
        return refused("a year from 1970 to 9999");
    }
    if time.nanosecond() >= 1_000_000_000 {
        return refused("no leap second");
    }
    if finer_than(text, 6) {
        return refused("at most six digits of a second");
    }
    Ok(time)
}

/// Whether a time in RFC 3339 has more than zeros behind so many digits of a second. Told from the text: what is read of it drops
/// the digits behind the ninth.
pub(crate) fn finer_than(text: &str, digits: usize) -> bool {
    let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
    fraction.bytes().take_while(u8::is_ascii_digit).skip(digits).any(|digit| digit != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_at_most_six_digits_of_a_second_that_say_something() {
        for fine in ["00Z", "00.5Z", "00.123456Z", "00.1234560000000+02:00"] {
            assert!(time(&format!("2027-01-31T17:05:{fine}")).is_ok(), "{fine}");
        }
        // The second is read as none at all.
        for finer in ["00.1234567Z", "00.0000000009Z"] {
            let refused = time(&format!("2027-01-31T17:05:{finer}")).expect_err(finer);
            assert!(refused.contains(finer) && refused.contains("at most six digits"), "{refused}");
        }
    }
}
