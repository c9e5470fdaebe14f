//! What the zone data in the binary does not know. It comes with a library that has no newer release; governments go on.
//!
//! A job in one of these zones is warned of by `check` and `plan`, and its ticks are right again with the release that carries
//! newer data. Until then a zone whose clock is the right one can be named. `scripts/ticks` compares with newer data.

use chrono::NaiveDate;
use chrono_tz::Tz;

/// The release of the IANA zone data in the binary, such as `2025b`. A government that changes its clock is right from the
/// release that knows of it on; `scripts/ticks` compares with a newer one.
pub const ZONE_DATA: &str = chrono_tz::IANA_TZDB_VERSION;

/// Zones whose clocks differ from the data of release 2025b, each with the first day on which they do. From the tzdata package 2026.6.
const CHANGED: [(&str, (i32, u32, u32)); 15] = [
    ("Africa/Casablanca", (2026, 9, 20)),
    ("Africa/El_Aaiun", (2026, 9, 20)),
    ("America/Edmonton", (2026, 11, 1)),
    ("America/Havana", (2026, 11, 1)),
    ("America/Inuvik", (2026, 11, 1)),
    ("America/Rainy_River", (2026, 11, 1)),
    ("America/Vancouver", (2026, 11, 1)),
    ("America/Winnipeg", (2026, 11, 1)),
    ("America/Yellowknife", (2026, 11, 1)),
    ("Canada/Central", (2026, 11, 1)),
    ("Canada/Mountain", (2026, 11, 1)),
    ("Canada/Pacific", (2026, 11, 1)),
    ("Cuba", (2026, 11, 1)),
    ("Europe/Chisinau", (2026, 3, 29)),
    ("Europe/Tiraspol", (2026, 3, 29)),
];

/// The day from which on a zone's clock is not what the data in the binary says; `None` where nothing is known against it.
#[must_use]
pub fn wrong_since(zone: Tz) -> Option<NaiveDate> {
    let (_, (year, month, day)) = CHANGED.iter().find(|(name, _)| *name == zone.name())?;
    NaiveDate::from_ymd_opt(*year, *month, *day)
}

/// The same as a sentence for whoever plans by it.
#[must_use]
pub fn warning(zone: Tz) -> Option<String> {
    wrong_since(zone).map(|since| {
        format!(
            "the clock of {zone} is not what this release's zone data ({ZONE_DATA}) says from {since} on: times may be an hour off; until a \
             release with newer data, name a zone that has the right clock"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_belongs_to_the_data_in_the_binary() {
        // With newer data the list is worked out anew.
        assert_eq!(ZONE_DATA, "2025b");
        for (name, _) in CHANGED {
            let zone: Tz = name.parse().expect(name);
            assert!(warning(zone).is_some_and(|warning| warning.contains(name)));
        }
        assert_eq!(wrong_since(chrono_tz::Europe::London), None);
    }
}
