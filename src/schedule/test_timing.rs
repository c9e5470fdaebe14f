//! Timings for tests.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::cron::{Cron, default_rules};
use super::plan::Schedule;
use crate::domain::job::{CatchUpOrder, CutoffRule, Misfire, Overlap, Timing};

/// A timing with the defaults of the product and the DST rules of its expression.
pub(super) fn timing(cron: &str, zone: &str) -> Timing {
    let (gap, fold) = default_rules(&Cron::parse(cron).expect(cron));
    Timing {
        cron: cron.to_owned(),
        timezone: zone.parse().expect(zone),
        gap,
        fold,
        misfire: Misfire::RunLatest,
        misfire_grace: Duration::from_mins(1),
        catch_up_window: Duration::from_hours(48),
        catch_up_max: 1,
        catch_up_order: CatchUpOrder::Oldest,
        overlap: Overlap::Queue,
        cutoff: CutoffRule::Before(Duration::ZERO),
        business_days: None,
        run_deadline: None,
    }
}

/// Its schedule.
pub(super) fn schedule(cron: &str, zone: &str) -> Schedule {
    Schedule::new(&timing(cron, zone)).expect(cron)
}

/// An instant from RFC 3339.
pub(super) fn at(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).expect(text).to_utc()
}
