//! One `[[job]]` table.

use std::ops::RangeInclusive;
use std::time::Duration;

use chrono::NaiveTime;
use chrono_tz::{TZ_VARIANTS, Tz};

use super::calendar::Calendars;
use super::error::Scope;
use super::ledger::ledger;
use super::reader::{Checked, Context, Reported, TableReader};
use super::ticks::rules_of;
use super::tree::{Node, Value};
use super::values::{
    Read, choice, did_you_mean, duration, duration_allowed, duration_text, nearest, parsed, quoted, text, whole_u32,
};
use crate::domain::calendar::{BusinessDays, Roll};
use crate::domain::job::{
    BatchDefinition, CatchUpOrder, CutoffRule, FoldRule, GapRule, HandlerDefinition, JobDefinition, Misfire, Overlap,
    RetryDefinition, Timing,
};
use crate::domain::{ElectionName, JobName};

const DAY: Duration = Duration::from_hours(24);
/// Bounds of `misfire_grace`.
const GRACE: RangeInclusive<Duration> = Duration::from_secs(1)..=DAY;
/// Bounds of `catch_up_window`: ticks are looked for a month back.
const CATCH_UP_WINDOW: RangeInclusive<Duration> = Duration::from_mins(1)..=Duration::from_hours(31 * 24);
/// Bounds of `catch_up_max`.
const CATCH_UP_MAX: RangeInclusive<u32> = 1..=100;
/// Bounds of `run_deadline`.
const RUN_DEADLINE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(31 * 24);
/// Bounds of `cutoff`, backwards.
const CUTOFF: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_hours(31 * 24);
/// Business days that a cutoff may lie back.
const CUTOFF_DAYS: RangeInclusive<u32> = 0..=31;
/// Bounds of `batch.size`.
const BATCH_SIZE: RangeInclusive<u32> = 1..=10_000;
/// Bounds of `batch.concurrency`.
const BATCH_CONCURRENCY: RangeInclusive<u32> = 1..=8;
/// Bounds of `retry.max_attempts`.
const MAX_ATTEMPTS: RangeInclusive<u32> = 1..=100;
/// Bounds of both ends of `retry.backoff`.
const BACKOFF: RangeInclusive<Duration> = Duration::from_millis(1)..=DAY;
/// Tables of handlers, each with the tables that belong to it.
const TABLES: [(&str, &[&str]); 5] = [
    ("ledger", &["ledger", "payout"]),
    ("sql", &["sql"]),
    ("http", &["http"]),
    ("command", &["command"]),
    // Outside the test build it is a key like any other unknown one.
    ("probe", &["probe"]),
];

/// Reads one job. An error means that findings were recorded.
pub(super) fn job(context: &Context<'_>, number: usize, node: &Node, calendars: &Calendars) -> Checked<JobDefinition> {
    let mut table = TableReader::new(context, path_of(number, node), node)?;
    let name = table.required("name", "a name of a-z, 0-9 and '-'", |node| parsed(node, |name| JobName::new(name)));
    let election = table.optional("election", |node| parsed(node, |name| ElectionName::new(name)));
    let timing = timing(&mut table, calendars);
    let batch = table.table("batch").and_then(batch);
    let retry = table.table("retry").and_then(retry);
    let handler = handler(&mut table);
    table.not_yet(&["statement_timeout"], "the one in the [database] table of the configuration holds for all jobs");
    table.finish();
    Ok(JobDefinition {
        name: name?,
        election: election?.unwrap_or_else(JobDefinition::default_election),
        timing: timing?,
        handler: handler?,
        batch: batch?,
        retry: retry?,
    })
}

/// How findings name the job: by its name where it has one, else by its number from 1.
fn path_of(number: usize, node: &Node) -> String {
    if let Value::Table(table) = &node.value
        && let Some(Node { value: Value::Text(name), .. }) = table.get("name")
        && JobName::new(name.as_str()).is_ok()
    {
        return format!("job[{name}]");
    }
    format!("job[#{}]", number + 1)
}

fn timing(table: &mut TableReader<'_>, calendars: &Calendars) -> Checked<Timing> {
    let cron = table.required("cron", "five fields, or six with seconds first", |node| {
        let cron = text(node)?;
        rules_of(cron).map(|rules| (cron.trim().to_owned(), rules))
    });
    let timezone = table.or("timezone", Tz::UTC, timezone);
    let dst = table.table("dst").and_then(dst);
    let misfire = table.or("misfire", Misfire::RunLatest, |node| {
        choice(node, &[("run_latest", Misfire::RunLatest), ("run_all", Misfire::RunAll), ("skip", Misfire::Skip)])
    });
    let grace = table.or("misfire_grace", Duration::from_mins(1), |node| duration(node, &GRACE));
    let window = table.or("catch_up_window", 2 * DAY, |node| duration(node, &CATCH_UP_WINDOW));
    if let (Ok(grace), Ok(window)) = (grace, window)
        && window < grace
    {
        table.refuse("catch_up_window", "shorter than misfire_grace, expected at least as long", Scope::Whole);
    }
    let catch_up_max = table.or("catch_up_max", 1, |node| whole_u32(node, CATCH_UP_MAX));
    let catch_up_order = table.or("catch_up_order", CatchUpOrder::Oldest, |node| {
        choice(node, &[("oldest", CatchUpOrder::Oldest), ("newest", CatchUpOrder::Newest)])
    });
    let overlap =
        table.or("overlap", Overlap::Queue, |node| choice(node, &[("queue", Overlap::Queue), ("skip", Overlap::Skip)]));
    let cutoff = table.or("cutoff", CutoffRule::Before(Duration::ZERO), cutoff);
    let run_deadline = table.optional("run_deadline", |node| duration(node, &RUN_DEADLINE));
    let business_days = business_days(table, calendars);
    let ((cron, (gap, fold)), (own_gap, own_fold)) = (cron?, dst?);
    Ok(Timing {
        cron,
        timezone: timezone?,
        gap: own_gap.unwrap_or(gap),
        fold: own_fold.unwrap_or(fold),
        misfire: misfire?,
        misfire_grace: grace?,
        catch_up_window: window?,
        catch_up_max: catch_up_max?,
        catch_up_order: catch_up_order?,
        overlap: overlap?,
        cutoff: cutoff?,
        business_days: business_days?,
        run_deadline: run_deadline?,
    })
}

/// The calendar, and what becomes of ticks on its days off.
fn business_days(table: &mut TableReader<'_>, calendars: &Calendars) -> Checked<Option<BusinessDays>> {
    let calendar = table.optional("calendar", |node| calendars.named(node));
    let roll = table.optional("roll", |node| {
        let words =
            [Roll::Following, Roll::ModifiedFollowing, Roll::Preceding, Roll::Skip].map(|roll| (roll.as_str(), roll));
        choice(node, &words)
    });
    match (calendar?, roll?) {
        (Some(calendar), roll) => Ok(Some(BusinessDays { calendar: calendar?, roll: roll.unwrap_or(Roll::Following) })),
        (None, Some(_)) => {
            Err(table.refuse("roll", "says nothing without a calendar; expected one in `calendar`", Scope::Whole))
        }
        (None, None) => Ok(None),
    }
}

fn timezone(node: &Node) -> Read<Tz> {
    let name = text(node)?;
    name.parse().map_err(|_| {
        let near = did_you_mean(nearest(name, TZ_VARIANTS.iter().map(|zone| zone.name())));
        format!("found {}, expected a zone of the IANA database such as \"Europe/London\"{near}", quoted(name))
    })
}

fn dst(mut table: TableReader<'_>) -> Checked<(Option<GapRule>, Option<FoldRule>)> {
    let gap = table.optional("gap", |node| choice(node, &[("shift", GapRule::Shift), ("skip", GapRule::Skip)]));
    let fold = table.optional("fold", |node| {
        choice(node, &[("first", FoldRule::First), ("last", FoldRule::Last), ("both", FoldRule::Both)])
    });
    table.finish();
    Ok((gap?, fold?))
}

/// `-30m` before the due time, or `-1bd 17:00`: business days back, at a local time.
fn cutoff(node: &Node) -> Read<CutoffRule> {
    let written = text(node)?;
    let rule = match written.strip_prefix('-').unwrap_or(written).split_once("bd ") {
        Some((days, at)) => days.parse().ok().filter(|days| CUTOFF_DAYS.contains(days)).and_then(|days| {
            let at = NaiveTime::parse_from_str(at, if at.len() == 5 { "%H:%M" } else { "%H:%M:%S" }).ok()?;
            let whole = at.format("%H:%M:%S").to_string();
            let back = written.starts_with('-') || days == 0;
            let rule = CutoffRule::BusinessDays { days, at };
            (back && whole.starts_with(written.split_once(' ').map_or("", |(_, at)| at))).then_some(rule)
        }),
        None => match written.strip_prefix('-') {
            Some(before) => duration_text(before),
            None => duration_text(written).filter(|time| *time == Duration::ZERO),
        }
        .filter(|time| CUTOFF.contains(time))
        .map(CutoffRule::Before),
    };
    rule.ok_or_else(|| {
        format!(
            "found {}, expected a time before the due time such as \"-30m\" ({}), or business days back and a local \
             time such as \"-1bd 17:00\" (up to {} days)",
            quoted(written),
            duration_allowed(&CUTOFF),
            CUTOFF_DAYS.end()
        )
    })
}

fn batch(mut table: TableReader<'_>) -> Checked<BatchDefinition> {
    let size = table.or("size", 2000, |node| whole_u32(node, BATCH_SIZE));
    let concurrency = table.or("concurrency", 2, |node| whole_u32(node, BATCH_CONCURRENCY));
    table.finish();
    Ok(BatchDefinition { size: size?, concurrency: concurrency? })
}

fn retry(mut table: TableReader<'_>) -> Checked<RetryDefinition> {
    let max_attempts = table.or("max_attempts", 8, |node| whole_u32(node, MAX_ATTEMPTS));
    let backoff = table.or("backoff", (Duration::from_secs(2), Duration::from_mins(5)), |node| {
        let written = text(node)?;
        let ends = written.split_once("..").and_then(|(min, max)| Some((duration_text(min)?, duration_text(max)?)));
        ends.filter(|(min, max)| min <= max && BACKOFF.contains(min) && BACKOFF.contains(max)).ok_or_else(|| {
            format!(
                "found {}, expected the shortest and the longest wait such as \"2s..5m\", each {}",
                quoted(written),
                duration_allowed(&BACKOFF)
            )
        })
    });
    table.finish();
    let (backoff_min, backoff_max) = backoff?;
    Ok(RetryDefinition { max_attempts: max_attempts?, backoff_min, backoff_max })
}

/// What the word at `handler` means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Handler {
    Ledger,
    Sql,
    Http,
    Command,
    #[cfg(feature = "chaos")]
    Probe,
}

const HANDLERS: &[(&str, Handler)] = &[
    ("ledger", Handler::Ledger),
    ("sql", Handler::Sql),
    ("http", Handler::Http),
    ("command", Handler::Command),
    #[cfg(feature = "chaos")]
    ("probe", Handler::Probe),
];

fn handler(table: &mut TableReader<'_>) -> Checked<HandlerDefinition> {
    let handler =
        table.required("handler", "\"ledger\", \"sql\", \"http\" or \"command\"", |node| choice(node, HANDLERS));
    let Ok(handler) = handler else {
        // Where it is not known which was meant, the tables of none are judged.
        known_tables().for_each(|(_, tables)| table.pass_over(tables));
        return Err(Reported);
    };
    let own = match handler {
        Handler::Ledger => {
            let (own, payout) = (table.table("ledger"), table.optional_table("payout"));
            own.and_then(|own| ledger(own, payout?)).map(HandlerDefinition::Ledger)
        }
        Handler::Sql => table.table("sql").and_then(super::outside::sql).map(HandlerDefinition::Sql),
        Handler::Http => table.table("http").and_then(super::outside::http).map(HandlerDefinition::Http),
        Handler::Command => table.table("command").and_then(super::outside::command).map(HandlerDefinition::Command),
        #[cfg(feature = "chaos")]
        Handler::Probe => table.table("probe").and_then(super::probe::probe).map(HandlerDefinition::Probe),
    };
    other_handlers(table, handler);
    own
}

fn known_tables() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    TABLES.into_iter().filter(|(name, _)| HANDLERS.iter().any(|(word, _)| word == name))
}

/// Tables of other handlers than the job's own.
fn other_handlers(table: &mut TableReader<'_>, own: Handler) {
    let own = HANDLERS.iter().find(|(_, handler)| *handler == own).map_or("", |(word, _)| *word);
    for (name, tables) in known_tables() {
        if name != own {
            // The finding stands; nothing else depends on these tables.
            let _reported = table.not_here(tables, &format!("belongs to another handler; this job's is \"{own}\""));
        }
    }
}
