//! What this process counts: counters and histograms, touched at the start so that each exists with 0.
//!
//! Gauges are not kept here: see [`Observation`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use ::metrics::{Counter, Histogram, Key, Label, Level, Metadata, Recorder, SharedString, Unit};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use super::observation::Observation;
use super::series::{self, Kind, Series};
use crate::domain::unit::AttemptOutcome;
use crate::domain::{ElectionName, JobName};

/// The most jobs that get series of their own; ticks of further ones are counted under `other`. Keeps the whole page below
/// a thousand series for any schedule of fewer than fifty jobs, and bounded for any.
pub const MOST_JOBS: usize = 256;

/// The label of what has no series of its own.
const OTHER: &str = "other";
/// What becomes of a tick.
const TICK_OUTCOMES: [&str; 5] = ["run", "caught_up", "skipped", "coalesced", "missed"];
/// What comes of a try at an instruction.
const PAYOUT_OUTCOMES: [&str; 11] = [
    "paid",
    "mismatch",
    "rejected",
    "refused_in_doubt",
    "later",
    "unknown",
    "undone",
    "stopped",
    "fenced",
    "not_sent",
    "not_found",
];

/// The closed sets that the labels come from.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    /// The elections that this replica stands for.
    pub elections: Vec<ElectionName>,
    /// Why leadership changes.
    pub transitions: Vec<&'static str>,
    /// States of a session.
    pub session_states: Vec<&'static str>,
    /// Operations that a fence may refuse.
    pub operations: Vec<&'static str>,
}

/// What became of a changed schedule file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// In force.
    Taken,
    /// It is broken: the old schedule goes on.
    Refused,
}

/// Counters by one label of a closed set.
#[derive(Debug)]
struct Family(BTreeMap<&'static str, Counter>);

/// Everything that is counted in this process. Cheap to report to, from anywhere.
pub struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    labels: Labels,
    jobs: RwLock<BTreeMap<JobName, Family>>,
    transitions: Family,
    rejects: Family,
    attempts: Family,
    payout_attempts: Family,
    reloads: Family,
    other_ticks: Family,
    expiries: Counter,
    overruns: Counter,
    duplicates: Counter,
    spans_dropped: Counter,
    settled: Counter,
    renewal: Histogram,
    election: Histogram,
    takeover: Histogram,
    teardown: Histogram,
    tick_lag: Histogram,
    run: Histogram,
    batch: Histogram,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("labels", &self.labels).finish_non_exhaustive()
    }
}

static METADATA: Metadata<'static> = Metadata::new("bursar", Level::INFO, None);

fn family(recorder: &PrometheusRecorder, series: Series, label: &'static str, values: &[&'static str]) -> Family {
    let counter = |value: &&'static str| {
        let key = Key::from_parts(series.name, vec![Label::new(label, *value)]);
        let counter = recorder.register_counter(&key, &METADATA);
        counter.increment(0);
        (*value, counter)
    };
    Family(values.iter().map(counter).collect())
}

impl Family {
    /// Counts under a value of the set; anything else is counted under `other` where there is such a value.
    fn add(&self, value: &str, n: u64) {
        if let Some(counter) = self.0.get(value).or_else(|| self.0.get(OTHER)) {
            counter.increment(n);
        }
    }
}

impl Metrics {
    /// Makes every series of this process, all at 0.
    ///
    /// # Errors
    /// A histogram without buckets: a defect of the table of series.
    pub fn new(labels: Labels) -> Result<Self, BuildError> {
        let mut builder = PrometheusBuilder::new();
        for series in series::RECORDED {
            if let Kind::Histogram(buckets) = series.kind {
                builder = builder.set_buckets_for_metric(Matcher::Full(series.name.to_owned()), buckets)?;
            }
        }
        let recorder = builder.build_recorder();
        describe(&recorder);
        let counter = |series: Series| {
            let counter = recorder.register_counter(&Key::from_static_name(series.name), &METADATA);
            counter.increment(0);
            counter
        };
        let histogram = |series: Series| recorder.register_histogram(&Key::from_static_name(series.name), &METADATA);
        let attempts = AttemptOutcome::ALL.map(AttemptOutcome::as_str);
        let mut operations = labels.operations.clone();
        operations.push(OTHER);
        Ok(Self {
            handle: recorder.handle(),
            jobs: RwLock::default(),
            transitions: family(&recorder, series::TRANSITIONS, "reason", &labels.transitions),
            rejects: family(&recorder, series::REJECTS, "operation", &operations),
            attempts: family(&recorder, series::ATTEMPTS, "outcome", &attempts),
            payout_attempts: family(&recorder, series::PAYOUT_ATTEMPTS, "outcome", &PAYOUT_OUTCOMES),
            reloads: family(&recorder, series::RELOADS, "outcome", &["taken", "refused"]),
            other_ticks: job_family(&recorder, OTHER),
            expiries: counter(series::EXPIRIES),
            overruns: counter(series::TEARDOWN_OVERRUNS),
            duplicates: counter(series::DUPLICATES),
            spans_dropped: counter(series::SPANS_DROPPED),
            settled: counter(series::UNITS_SETTLED),
            renewal: histogram(series::RENEWAL),
            election: histogram(series::ELECTION),
            takeover: histogram(series::TAKEOVER),
            teardown: histogram(series::TEARDOWN),
            tick_lag: histogram(series::TICK_LAG),
            run: histogram(series::RUN),
            batch: histogram(series::BATCH),
            labels,
            recorder,
        })
    }

    /// The closed sets.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Makes the series of these jobs, at 0, up to [`MOST_JOBS`] in all. Those of jobs that are gone stay.
    pub fn know_jobs<'a>(&self, jobs: impl IntoIterator<Item = &'a JobName>) {
        let mut known = self.jobs.write().unwrap_or_else(PoisonError::into_inner);
        for job in jobs {
            if known.len() < MOST_JOBS && !known.contains_key(job) {
                known.insert(job.clone(), job_family(&self.recorder, job.as_str()));
            }
        }
    }

    /// The jobs that have series.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobName> {
        self.jobs.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Leadership changed hands at this replica. `reason` is one of [`Labels::transitions`].
    pub fn transition(&self, reason: &str) {
        self.transitions.add(reason, 1);
    }

    /// A renewal was answered after this long.
    pub fn renewal_took(&self, time: Duration) {
        self.renewal.record(time);
    }

    /// A session was lost.
    pub fn lease_expired(&self) {
        self.expiries.increment(1);
    }

    /// From the last leader's end seen to the win.
    pub fn election_took(&self, time: Duration) {
        self.election.record(time);
    }

    /// From the last leader's end seen to the first work.
    pub fn takeover_took(&self, time: Duration) {
        self.takeover.record(time);
    }

    /// From the order to end a tenure to its end.
    pub fn teardown_took(&self, time: Duration) {
        self.teardown.record(time);
    }

    /// A tenure did not end in time.
    pub fn teardown_overran(&self) {
        self.overruns.increment(1);
    }

    /// The store refused an operation, one of [`Labels::operations`].
    pub fn fencing_reject(&self, operation: &str) {
        self.rejects.add(operation, 1);
    }

    /// Spans that no collector took.
    pub fn spans_dropped(&self, n: u64) {
        self.spans_dropped.increment(n);
    }

    /// Ticks had their run already.
    pub fn duplicates_prevented(&self, n: u64) {
        self.duplicates.increment(n);
    }

    /// Ticks of a job with what became of them, as `TickFate` names it.
    pub fn ticks(&self, job: &JobName, outcome: &str, n: u64) {
        if !self.jobs.read().unwrap_or_else(PoisonError::into_inner).contains_key(job) {
            self.know_jobs([job]);
        }
        let jobs = self.jobs.read().unwrap_or_else(PoisonError::into_inner);
        jobs.get(job).unwrap_or(&self.other_ticks).add(outcome, n);
    }

    /// From a tick's due time to the opening of its run.
    pub fn tick_lag(&self, time: Duration) {
        self.tick_lag.record(time);
    }

    /// A run ended after this long.
    pub fn run_took(&self, time: Duration) {
        self.run.record(time);
    }

    /// Attempts at units.
    pub fn attempts(&self, outcome: AttemptOutcome, n: u64) {
        self.attempts.add(outcome.as_str(), n);
    }

    /// Units ended settled, carried or empty.
    pub fn units_settled(&self, n: u64) {
        self.settled.increment(n);
    }

    /// A batch took this long.
    pub fn batch_took(&self, time: Duration) {
        self.batch.record(time);
    }

    /// Tries at payouts, one of the closed set.
    pub fn payout_attempt(&self, outcome: &str, n: u64) {
        self.payout_attempts.add(outcome, n);
    }

    /// The schedule file changed.
    pub fn schedule_reloaded(&self, outcome: ReloadOutcome) {
        let outcome = match outcome {
            ReloadOutcome::Taken => "taken",
            ReloadOutcome::Refused => "refused",
        };
        self.reloads.add(outcome, 1);
    }

    /// Moves observations into their buckets, so that they do not pile up between scrapes. Call every few seconds.
    pub fn upkeep(&self) {
        self.handle.run_upkeep();
    }

    /// The whole page. What is looked at (`observe`) is looked at last, so that nothing stale follows it.
    #[must_use]
    pub fn render(&self, observe: impl FnOnce() -> Observation) -> String {
        let mut page = self.handle.render();
        observe().render(&mut page, self);
        page
    }
}

fn job_family(recorder: &PrometheusRecorder, job: &str) -> Family {
    let job: SharedString = job.to_owned().into();
    let counter = |outcome: &'static str| {
        let labels = vec![Label::new("job", job.clone()), Label::new("outcome", outcome)];
        let counter = recorder.register_counter(&Key::from_parts(series::TICKS.name, labels), &METADATA);
        counter.increment(0);
        (outcome, counter)
    };
    Family(TICK_OUTCOMES.into_iter().map(counter).collect())
}

fn describe(recorder: &PrometheusRecorder) {
    for series in series::RECORDED {
        let (name, help) = (series.name.into(), series.help.into());
        let unit = series.name.ends_with("_seconds").then_some(Unit::Seconds);
        match series.kind {
            Kind::Counter => recorder.describe_counter(name, unit, help),
            Kind::Histogram(_) => recorder.describe_histogram(name, unit, help),
            Kind::Gauge => recorder.describe_gauge(name, unit, help),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels() -> Labels {
        Labels {
            elections: vec![ElectionName::new("settlement").expect("valid")],
            transitions: vec!["won", "drain"],
            session_states: vec!["live", "lost"],
            operations: vec!["settle"],
        }
    }

    fn job(name: &str) -> JobName {
        JobName::new(name).expect("valid")
    }

    #[test]
    fn every_series_exists_from_the_start_with_nothing_in_it() {
        let metrics = Metrics::new(labels()).expect("the table is sound");
        metrics.know_jobs([&job("daily")]);
        let observation = Observation { schedule_fingerprint: "f00".to_owned(), ..Observation::default() };
        let page = metrics.render(|| observation);
        for series in series::ALL {
            let name = match series.kind {
                Kind::Histogram(_) => format!("{}_bucket", series.name),
                Kind::Counter | Kind::Gauge => series.name.to_owned(),
            };
            let of_it = |line: &&str| line.split(['{', ' ']).next() == Some(name.as_str());
            let lines: Vec<&str> = page.lines().filter(of_it).collect();
            assert!(!lines.is_empty(), "{name} is missing in\n{page}");
            assert!(page.contains(&format!("# HELP {} ", series.name)), "{name} has no help");
            assert_eq!(page.matches(&format!("# TYPE {} ", series.name)).count(), 1, "{name} has no type, or two");
            if !["bursar_schedule_info", "bursar_build_info"].contains(&series.name) {
                assert!(lines.iter().all(|line| line.ends_with(" 0")), "{lines:?}");
            }
        }
    }

    #[test]
    fn jobs_are_bounded_and_what_is_beyond_is_counted_together() {
        let metrics = Metrics::new(labels()).expect("the table is sound");
        for n in 0..MOST_JOBS + 10 {
            metrics.ticks(&job(&format!("job-{n}")), "run", 1);
        }
        let page = metrics.render(Observation::default);
        assert!(page.contains("bursar_ticks_total{job=\"other\",outcome=\"run\"} 10\n"), "{page}");
        assert_eq!(metrics.jobs().len(), MOST_JOBS);
    }

    #[test]
    fn what_is_counted_is_shown() {
        let metrics = Metrics::new(labels()).expect("the table is sound");
        metrics.transition("won");
        metrics.fencing_reject("settle");
        metrics.fencing_reject("never heard of");
        metrics.batch_took(Duration::from_millis(30));
        metrics.upkeep();
        let page = metrics.render(Observation::default);
        for line in [
            "bursar_leadership_transitions_total{reason=\"won\"} 1",
            "bursar_fencing_rejects_total{operation=\"settle\"} 1",
            "bursar_fencing_rejects_total{operation=\"other\"} 1",
            "bursar_batch_seconds_bucket{le=\"0.025\"} 0",
            "bursar_batch_seconds_bucket{le=\"0.05\"} 1",
            "bursar_batch_seconds_count 1",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} is missing in\n{page}");
        }
    }
}
