//! A job as the schedule defines it: complete, checked, with every default filled in. The store keeps the definition in
//! force as JSON, so that an edit is told from no edit and a run can be finished under what it was opened with.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::NaiveTime;
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::calendar::BusinessDays;
use super::money::Currency;
use super::outside::{CommandDefinition, HttpDefinition, ReceiverDefinition, SqlDefinition};
use super::{ElectionName, JobName};

/// One schedule entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDefinition {
    /// Unique in the schedule; lasting identity of the job in the store.
    pub name: JobName,
    /// The election whose leader runs it.
    pub election: ElectionName,
    /// When it runs.
    pub timing: Timing,
    /// What settles its units.
    pub handler: HandlerDefinition,
    /// How many units are taken at once.
    pub batch: BatchDefinition,
    /// What happens to a unit that fails.
    pub retry: RetryDefinition,
}

impl JobDefinition {
    /// The election of a job that names none, and of a replica that has no jobs.
    ///
    /// # Panics
    /// Never: the name is valid.
    #[must_use]
    pub fn default_election() -> ElectionName {
        ElectionName::new("settlement").expect("1 to 32 of a-z")
    }

    /// SHA-256 over the canonical JSON, as 64 hexadecimal digits.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint(self)
    }
}

/// SHA-256 over a value's JSON, as 64 hexadecimal digits. Maps are ordered, so equal values have equal fingerprints.
#[must_use]
pub fn fingerprint<T: Serialize>(value: &T) -> String {
    let json = serde_json::to_vec(value).unwrap_or_default();
    data_encoding::HEXLOWER.encode(&Sha256::digest(&json))
}

/// When a job runs, and what becomes of ticks that could not be run at their time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Five fields, or six with seconds first.
    pub cron: String,
    /// The wall clock that the expression is about.
    pub timezone: Tz,
    /// What happens to local times that do not exist.
    pub gap: GapRule,
    /// What happens to local times that exist twice.
    pub fold: FoldRule,
    /// What is done with ticks found past the grace.
    pub misfire: Misfire,
    /// Lateness up to which a tick is on time.
    #[serde(with = "millis")]
    pub misfire_grace: Duration,
    /// Missed ticks older than this are recorded as missed.
    #[serde(with = "millis")]
    pub catch_up_window: Duration,
    /// Caught-up runs that may be open at a time, at least 1.
    pub catch_up_max: u32,
    /// Which of them go first.
    pub catch_up_order: CatchUpOrder,
    /// What is done with a tick while an earlier run of the job is open.
    pub overlap: Overlap,
    /// The cutoff, relative to the due time.
    pub cutoff: CutoffRule,
    /// Which days it runs on; `None`: on every day, and a business day of its cutoff is Monday to Friday.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub business_days: Option<BusinessDays>,
    /// Past it a run is overdue.
    #[serde(with = "optional_millis", default, skip_serializing_if = "Option::is_none")]
    pub run_deadline: Option<Duration>,
}

/// Local times inside a gap of the zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapRule {
    /// Moved forward by the length of the gap.
    Shift,
    /// Left out.
    Skip,
}

/// Local times inside a fold of the zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoldRule {
    /// The earlier of the two.
    First,
    /// The later of the two.
    Last,
    /// Both.
    Both,
}

/// Ticks found past the grace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Misfire {
    /// The newest is run, the others are coalesced into it.
    RunLatest,
    /// All are run, each with its own cutoff.
    RunAll,
    /// None is run; each is recorded.
    Skip,
}

/// The order of caught-up runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUpOrder {
    /// Oldest first.
    Oldest,
    /// Newest first.
    Newest,
}

/// A tick while an earlier run is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Its run waits until the earlier ones have ended.
    Queue,
    /// It is recorded as skipped.
    Skip,
}

/// Where the cutoff lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutoffRule {
    /// That long before the due time.
    Before(#[serde(with = "millis")] Duration),
    /// That many business days before the due day, at a local time.
    BusinessDays {
        /// Business days back, at least 0.
        days: u32,
        /// Local time in the job's zone.
        at: NaiveTime,
    },
}

/// What settles a job's units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandlerDefinition {
    /// Nets entries, posts to the ledger, writes payouts. In-store.
    Ledger(LedgerDefinition),
    /// Statements of the user. In-store.
    Sql(SqlDefinition),
    /// A request per unit. Outside.
    Http(HttpDefinition),
    /// A process per unit. Outside.
    Command(CommandDefinition),
    /// The handler of the tests. In-store or outside, as configured.
    #[cfg(feature = "chaos")]
    Probe(ProbeDefinition),
}

impl HandlerDefinition {
    /// The name in the schedule.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Ledger(_) => "ledger",
            Self::Sql(_) => "sql",
            Self::Http(_) => "http",
            Self::Command(_) => "command",
            #[cfg(feature = "chaos")]
            Self::Probe(_) => "probe",
        }
    }

    /// Whether a call of it whose outcome is unknown may be made again with the same key. `false` for what makes no calls.
    #[must_use]
    pub const fn is_idempotent(&self) -> bool {
        match self {
            Self::Ledger(_) | Self::Sql(_) => false,
            Self::Http(http) => http.receiver.idempotent,
            Self::Command(command) => command.idempotent,
            #[cfg(feature = "chaos")]
            Self::Probe(probe) => probe.idempotent,
        }
    }
}

/// Which entries a ledger job takes and what it does with their net.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerDefinition {
    /// Sources taken; empty: all.
    pub sources: BTreeSet<String>,
    /// Currencies taken; empty: all.
    pub currencies: BTreeSet<Currency>,
    /// Merchants taken; empty: all.
    pub merchants: BTreeSet<String>,
    /// Smallest payout per currency, minor units, at least 0.
    pub minimum_payout: BTreeMap<Currency, i64>,
    /// Payouts above it are held, per currency, minor units.
    pub maximum_payout: BTreeMap<Currency, i64>,
    /// Whether payouts wait for an operator's release.
    pub release: Release,
    /// How payouts leave.
    pub payout: PayoutDefinition,
}

/// Whether payouts wait for an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// Sent as soon as written.
    Auto,
    /// Sent once released.
    Manual,
}

/// How payouts leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayoutDefinition {
    /// They stay in the store for whoever takes them from there.
    None,
    /// A request each.
    Http(Box<ReceiverDefinition>),
}

/// The handler of the tests: what it does, by unit key.
#[cfg(feature = "chaos")]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProbeDefinition {
    /// `in_store` or `outside`.
    pub shape: ProbeShape,
    /// Units per run: keys `unit-00000` and on.
    pub units: u32,
    /// Every unit (outside) or batch (in-store) waits so long, asynchronously, transaction open where in-store.
    pub wait_ms: u64,
    /// Computes so long without yielding, on the blocking pool.
    pub spin_ms: u64,
    /// These keys fail at every attempt.
    pub fail: BTreeSet<String>,
    /// These keys fail at their first attempt only.
    pub fail_once: BTreeSet<String>,
    /// These keys panic.
    pub panic: BTreeSet<String>,
    /// Blocks all worker threads of the runtime for good when this key comes up.
    pub wedge: BTreeSet<String>,
    /// Outside only: appends a line per call to this file (`key term tenure`), the probe's effect.
    pub log_file: Option<String>,
    /// Outside only: whether an unknown outcome may be tried again.
    pub idempotent: bool,
}

/// The shape of the probe.
#[cfg(feature = "chaos")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeShape {
    /// Effect and state in one fenced transaction.
    #[default]
    InStore,
    /// Record, call, record.
    Outside,
}

/// How many units are taken at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BatchDefinition {
    /// Units in one transaction (in-store) or on the wire at once (outside), 1 to 10,000.
    pub size: u32,
    /// Batches at a time, 1 to 8.
    pub concurrency: u32,
}

/// What happens to a unit that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RetryDefinition {
    /// Attempts after which it is set aside, at least 1.
    pub max_attempts: u32,
    /// The shortest wait.
    #[serde(with = "millis")]
    pub backoff_min: Duration,
    /// The longest wait.
    #[serde(with = "millis")]
    pub backoff_max: Duration,
}

impl RetryDefinition {
    /// The wait before the next attempt: exponential between the bounds with full jitter. `attempts` is how many failed,
    /// `random` any number.
    #[must_use]
    pub fn backoff(&self, attempts: u32, random: u64) -> Duration {
        let doubled = self.backoff_min.saturating_mul(1_u32 << attempts.saturating_sub(1).min(20));
        let ceiling = u64::try_from(doubled.min(self.backoff_max).as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(if ceiling == 0 { 0 } else { 1 + random % ceiling })
    }
}

pub(super) mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::domain) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    pub(in crate::domain) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

mod optional_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(super) fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => super::millis::serialize(time, to),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Option::<u64>::deserialize(from).map(|millis| millis.map(Duration::from_millis))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn backoff_stays_between_nothing_and_its_ceiling(attempts in 0u32..100, random: u64) {
            let retry = RetryDefinition {
                max_attempts: 8,
                backoff_min: Duration::from_secs(2),
                backoff_max: Duration::from_mins(5),
            };
            let wait = retry.backoff(attempts, random);
            prop_assert!(wait > Duration::ZERO && wait <= retry.backoff_max);
            if attempts <= 1 {
                prop_assert!(wait <= retry.backoff_min);
            }
        }
    }
}
