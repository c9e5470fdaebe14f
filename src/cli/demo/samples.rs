//! Sample entries, made by the program: the same for the same arguments. Pure.
//!
//! They come in waves: those of one wave become available at one time, so that each tick finds new ones. Captures with
//! fees, refunds, chargebacks and fees of their own, in currencies with no, two and three digits after the point; some
//! merchants end below zero or below the minimum and are carried.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use crate::domain::money::{Currency, MoneyError};
use crate::ingest::HEADER;

/// Merchants; each has a home currency, and now and then an entry in another.
const MERCHANTS: u64 = 520;
/// Code, weight, a usual amount in minor units.
const CURRENCIES: [(&str, u64, i64); 6] = [
    ("EUR", 36, 4_200),
    ("GBP", 22, 3_600),
    ("USD", 18, 4_900),
    ("JPY", 12, 5_400),
    ("KWD", 6, 12_700),
    ("SEK", 6, 39_900),
];
const NAMES: [&str; 8] =
    ["shop", "Café Zoé", "Bäckerei Groß", "Łódź Sklep", "Магазин", "さくら堂", "Smith & Sons", "Việt Quán"];

/// splitmix64.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n.max(1)
    }

    fn amount(&mut self, below: i64) -> i64 {
        i64::try_from(self.below(u64::try_from(below).unwrap_or(1))).unwrap_or(0)
    }

    fn currency(&mut self) -> (&'static str, i64) {
        let mut at = self.below(CURRENCIES.iter().map(|(_, weight, _)| weight).sum());
        for (code, weight, usual) in CURRENCIES {
            if at < weight {
                return (code, usual);
            }
            at -= weight;
        }
        (CURRENCIES[0].0, CURRENCIES[0].2)
    }
}

/// What one entry is worth: kind, amount and fee in minor units.
fn worth(numbers: &mut Numbers, usual: i64) -> (&'static str, i64, Option<i64>) {
    let amount = 1 + numbers.amount(2 * usual);
    match numbers.below(100) {
        0..=7 => ("refund", -amount, None),
        8..=9 => ("chargeback", -amount, Some(usual / 10)),
        10..=12 => ("fee", -(amount / 20), None),
        13..=15 => ("adjustment", amount / 4 - usual / 4, None),
        _ => ("capture", amount, Some(amount * (90 + numbers.amount(200)) / 10_000)),
    }
}

/// The file's text: `waves` times `entries`, the first wave available at `first`, each later one after another `every`.
///
/// # Errors
/// A currency of the table is unknown, or the text cannot be written: neither happens.
pub(super) fn csv(first: DateTime<Utc>, every: TimeDelta, waves: u32, entries: u32) -> anyhow::Result<String> {
    let mut numbers = Numbers(2027);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER)?;
    let mut available = first;
    let mut count = 0_u64;
    for _ in 0..waves {
        for _ in 0..entries {
            writer.write_record(row(&mut numbers, count, available)?)?;
            count += 1;
        }
        available += every;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn row(numbers: &mut Numbers, count: u64, available: DateTime<Utc>) -> Result<[String; 9], MoneyError> {
    let n = numbers.below(MERCHANTS);
    let name = NAMES.get(usize::try_from(n).unwrap_or(0) % NAMES.len()).copied().unwrap_or(NAMES[0]);
    // A merchant's home currency is always the same.
    let (home, usual) = Numbers(n).currency();
    let (code, usual) = if numbers.below(5) == 0 { numbers.currency() } else { (home, usual) };
    let currency = Currency::new(code)?;
    let (kind, amount, fee) = worth(numbers, usual);
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    let occurred = available - TimeDelta::hours(i64::try_from(24 + numbers.below(72)).unwrap_or(24));
    Ok([
        format!("psp-{:06}", count + 1),
        format!("{name} {}", 1 + n / NAMES.len() as u64),
        code.to_owned(),
        kind.to_owned(),
        currency.format(amount),
        fee.map_or_else(String::new, |fee| currency.format(fee)),
        time(occurred),
        time(available),
        format!("order {}", count + 1),
    ])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::ingest;

    fn first() -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
    }

    #[test]
    fn they_can_be_imported_and_are_the_same_each_time() {
        let text = csv(first(), TimeDelta::seconds(2), 3, 500).expect("made");
        assert_eq!(text, csv(first(), TimeDelta::seconds(2), 3, 500).expect("made"));
        let parsed = ingest::parse("entries.csv", "demo", text.as_bytes()).expect("nothing is wrong with them");
        assert_eq!(parsed.entries.len(), 1500);
        let currencies: BTreeSet<_> = parsed.entries.iter().map(|(_, entry)| entry.currency).collect();
        assert_eq!(currencies.len(), CURRENCIES.len());
        let available: BTreeSet<_> = parsed.entries.iter().map(|(_, entry)| entry.available_at).collect();
        assert_eq!(available, BTreeSet::from([0, 2, 4].map(|after| first() + TimeDelta::seconds(after))));
        assert!(parsed.entries.iter().any(|(_, entry)| entry.amount < 0), "refunds");
    }

    #[test]
    fn a_wave_has_enough_units_to_be_caught_in_the_middle() {
        let text = csv(first(), TimeDelta::seconds(2), 1, 600).expect("made");
        let parsed = ingest::parse("entries.csv", "demo", text.as_bytes()).expect("nothing is wrong with them");
        let units: BTreeSet<_> =
            parsed.entries.iter().map(|(_, entry)| (entry.currency, entry.merchant.clone())).collect();
        assert!(units.len() > 350, "{}", units.len());
    }
}
