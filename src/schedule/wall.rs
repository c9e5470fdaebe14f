//! Local times on the time line: where a zone's clock is set forward, some do not exist; where it is set back, some exist
//! twice. Each job says what it wants then ([`GapRule`], [`FoldRule`]).
//!
//! The time line is walked in pieces of constant offset. Inside a piece local time and elapsed time are the same, so the
//! expression's local times come out in order. After a gap the times that fell into it, moved forward by its length, are
//! merged with those of the piece: two that meet are one tick. In a fold each rule cuts off one side. So the ticks are
//! strictly increasing whatever the zone does: half an hour (Lord Howe), a whole day (Apia 2011), two turns within a
//! month (Casablanca).
//!
//! Bounds: a change of at most [`LONGEST_CHANGE`]; no two changes of a zone within [`SAMPLE`] of each other (the zone
//! data has none since 1970; `scripts/ticks` checks it); instants are whole seconds.
//!
//! Deliberately absent: leap seconds, which neither cron nor the zone data know.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;

use super::cron::Cron;
use crate::domain::job::{FoldRule, GapRule};

/// The longest change of a zone's offset, seconds: a day was left out in Apia, Kwajalein and Kiritimati; two hours more.
pub const LONGEST_CHANGE: i64 = 26 * HOUR;
/// Offsets are looked at this often, seconds.
pub const SAMPLE: i64 = 3 * HOUR;
/// A piece is known so far ahead, seconds.
const PIECE: i64 = 48 * HOUR;
const HOUR: i64 = 3600;

/// What the zone did to a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TickNote {
    /// The local time does not exist: moved forward by the length of the gap.
    Shifted {
        /// The local time that was named.
        from: NaiveDateTime,
    },
    /// A local time that does not exist was moved onto this tick, which was there already: one tick for both.
    Joined {
        /// The local time that was moved.
        from: NaiveDateTime,
    },
    /// The local time exists twice; this is the first of them.
    FirstOfTwo,
    /// The local time exists twice; this is the second of them.
    SecondOfTwo,
}

/// A local time of an expression, placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placed {
    /// Seconds since 1970.
    pub(super) second: i64,
    pub(super) note: Option<TickNote>,
}

/// Places one local time: forward by the gap's length where it does not exist, the first where it exists twice. For
/// cutoffs; `None` out of chrono's range.
#[must_use]
pub fn place(zone: Tz, wall: NaiveDateTime) -> Option<DateTime<Utc>> {
    if let Some(found) = zone.from_local_datetime(&wall).earliest() {
        return Some(found.to_utc());
    }
    // No zone is further from UTC than 15 hours, so this instant lies before the change, if barely.
    let before = wall.and_utc().timestamp().checked_sub(16 * HOUR)?;
    instant(wall.and_utc().timestamp() - offset_at(zone, before)?)
}

/// An instant of whole seconds; `None` out of chrono's range.
pub(super) const fn instant(second: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(second, 0)
}

fn offset_at(zone: Tz, second: i64) -> Option<i64> {
    let utc = instant(second)?.naive_utc();
    Some(i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc()))
}

/// The local time at an instant; `None` out of chrono's range.
pub(super) fn local(zone: Tz, at: DateTime<Utc>) -> Option<NaiveDateTime> {
    wall_at(at.timestamp(), offset_at(zone, at.timestamp())?)
}

/// The local day at an instant; `None` out of chrono's range.
pub(super) fn local_day(zone: Tz, at: DateTime<Utc>) -> Option<NaiveDate> {
    local(zone, at).map(|local| local.date())
}

fn wall_at(second: i64, offset: i64) -> Option<NaiveDateTime> {
    instant(second.checked_add(offset)?).map(|local| local.naive_utc())
}

/// A change of a zone's offset.
#[derive(Debug, Clone, Copy)]
struct Change {
    /// The first second with the new offset.
    at: i64,
    /// The offset on the other side.
    offset: i64,
}

/// A stretch of the time line with one offset, as far as it matters.
#[derive(Debug, Clone, Copy)]
struct Piece {
    from: i64,
    /// The first second that is no longer part of it.
    until: i64,
    offset: i64,
    /// The change that it began with, where that is near enough to matter.
    before: Option<Change>,
    /// The change that it ends with, where it ends with one.
    after: Option<Change>,
}

impl Piece {
    /// The piece that holds a second, from there on.
    fn around(zone: Tz, second: i64) -> Option<Self> {
        let offset = offset_at(zone, second)?;
        let mut piece = Self { from: second, until: second + PIECE, offset, before: None, after: None };
        let mut at = second;
        while at > second - LONGEST_CHANGE {
            let earlier = at - SAMPLE;
            let found = offset_at(zone, earlier)?;
            if found != offset {
                piece.before = Some(Change { at: change_between(zone, earlier, at, offset)?, offset: found });
                break;
            }
            at = earlier;
        }
        // A fold's first turn begins before the change: look so much further than the piece reaches.
        let mut at = second;
        while at < second + PIECE + LONGEST_CHANGE {
            let later = at + SAMPLE;
            let found = offset_at(zone, later)?;
            if found != offset {
                let change = change_between(zone, at, later, found)?;
                piece.until = change;
                piece.after = Some(Change { at: change, offset: found });
                break;
            }
            at = later;
        }
        Some(piece)
    }

    /// The local times of a fold, if `change` is one: from (included) and to (not included), in seconds of local time.
    const fn fold(before: i64, after: i64, at: i64) -> Option<(i64, i64)> {
        if after < before { Some((at + after, at + before)) } else { None }
    }

    /// The fold that this piece is the second turn of.
    fn second_turn(&self) -> Option<(i64, i64)> {
        self.before.and_then(|change| Self::fold(change.offset, self.offset, change.at))
    }

    /// The fold that this piece is the first turn of.
    fn first_turn(&self) -> Option<(i64, i64)> {
        self.after.and_then(|change| Self::fold(self.offset, change.offset, change.at))
    }
}

/// The first second in (low, high] with the offset of `high`.
fn change_between(zone: Tz, low: i64, high: i64, offset: i64) -> Option<i64> {
    let (mut low, mut high) = (low, high);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if offset_at(zone, middle)? == offset {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// A walk along the time line from tick to tick.
#[derive(Debug, Clone)]
pub(super) struct Walk<'a> {
    cron: &'a Cron,
    zone: Tz,
    gap: GapRule,
    fold: FoldRule,
    /// The first second not looked at yet.
    next: i64,
    /// The last second that may be returned.
    last: i64,
    piece: Option<Piece>,
}

impl<'a> Walk<'a> {
    /// Walks over the seconds from `first` to `last`, both included.
    pub(super) const fn new(cron: &'a Cron, zone: Tz, gap: GapRule, fold: FoldRule, first: i64, last: i64) -> Self {
        Self { cron, zone, gap, fold, next: first, last, piece: None }
    }

    /// The expression's first local time from `wall` on (seconds of local time), to the end of the day of `last`.
    fn named_from(&self, wall: i64, last: i64) -> Option<i64> {
        let last_day = wall_at(last, 0)?.date();
        self.cron.first_from(wall_at(wall, 0)?, last_day).map(|found| found.and_utc().timestamp())
    }

    /// The next local time that exists in the piece and that the fold rule lets through.
    fn regular(&self, piece: &Piece) -> Option<Placed> {
        let mut from = self.next + piece.offset;
        if let (FoldRule::First, Some((_, end))) = (self.fold, piece.second_turn()) {
            from = from.max(end);
        }
        let wall = self.named_from(from, self.last + LONGEST_CHANGE)?;
        let first_turn = piece.first_turn().filter(|(start, _)| wall >= *start);
        if let (FoldRule::Last, Some(_)) = (self.fold, first_turn) {
            // Whatever comes after it in this piece is cut off too.
            return Some(Placed { second: piece.until, note: None });
        }
        let note = match (first_turn, piece.second_turn()) {
            (Some(_), _) => Some(TickNote::FirstOfTwo),
            (None, Some((_, end))) if wall < end => Some(TickNote::SecondOfTwo),
            (None, Some(_) | None) => None,
        };
        Some(Placed { second: wall - piece.offset, note })
    }

    /// The next local time of the gap before the piece, moved forward.
    fn shifted(&self, piece: &Piece) -> Option<Placed> {
        match self.gap {
            GapRule::Skip => return None,
            GapRule::Shift => {}
        }
        let change = piece.before.filter(|change| change.offset < piece.offset)?;
        let end = change.at + piece.offset;
        let wall = self.named_from(self.next.max(change.at) + change.offset, end)?;
        (wall < end).then(|| Placed {
            second: wall - change.offset,
            note: wall_at(wall, 0).map(|from| TickNote::Shifted { from }),
        })
    }

    fn step(&mut self) -> Option<Placed> {
        while self.next <= self.last {
            let piece = match self.piece {
                Some(piece) if piece.from <= self.next && self.next < piece.until => piece,
                Some(_) | None => *self.piece.insert(Piece::around(self.zone, self.next)?),
            };
            let regular = self.regular(&piece);
            let found = match (regular, self.shifted(&piece)) {
                (Some(regular), Some(shifted)) if regular.second == shifted.second => {
                    let from = wall_at(shifted.second, piece.before.map_or(piece.offset, |change| change.offset))?;
                    Some(Placed { note: Some(TickNote::Joined { from }), ..regular })
                }
                (Some(regular), Some(shifted)) => Some(if regular.second < shifted.second { regular } else { shifted }),
                (found, None) | (None, found) => found,
            };
            match found.filter(|placed| placed.second < piece.until) {
                Some(placed) if placed.second <= self.last => {
                    self.next = placed.second + 1;
                    return Some(placed);
                }
                Some(_) => return None,
                None => self.next = Self::beyond(&piece, regular)?,
            }
        }
        None
    }

    /// Where to go on after a piece without a tick. Past a change: right there. Otherwise no tick can lie further before
    /// the expression's next local time than the longest change, so a job that runs once a year is found in few steps.
    fn beyond(piece: &Piece, regular: Option<Placed>) -> Option<i64> {
        match piece.after {
            Some(_) => Some(piece.until),
            None => regular.map(|placed| piece.until.max(placed.second - LONGEST_CHANGE)),
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Placed;

    fn next(&mut self) -> Option<Placed> {
        let found = self.step();
        if found.is_none() {
            self.next = i64::MAX;
        }
        found
    }
}
