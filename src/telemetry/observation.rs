//! What is looked at when a scrape asks: leading, the session, the store's figures. Nothing of it is remembered between
//! scrapes, so nothing of it can outlive the tenure that it was about.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::metrics::Metrics;
use super::series::{self, Series};
use crate::domain::instruction::InstructionState;
use crate::domain::run::RunState;
use crate::domain::unit::UnitState;
use crate::domain::{ElectionName, JobName, Term};
use crate::store::StoreFigures;

/// One election as this replica sees it now.
#[derive(Debug, Clone, PartialEq)]
pub struct ElectionObservation {
    /// Its name.
    pub election: ElectionName,
    /// Whether this replica leads: fence accepted, session live, deadline ahead.
    pub leading: bool,
    /// The highest term known here.
    pub term: Term,
    /// What is left of the lease where it leads, else zero.
    pub lease_remaining: Duration,
    /// Whether it is halted, as far as is known.
    pub halted: bool,
    /// The store's figures, where it leads and they were read in this tenure.
    pub figures: Option<StoreFigures>,
}

/// Everything that is looked at.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observation {
    /// The elections that this replica stands for.
    pub elections: Vec<ElectionObservation>,
    /// One of [`Labels::session_states`](super::Labels::session_states).
    pub session_state: &'static str,
    /// Until the session counts as lost.
    pub session_remaining: Duration,
    /// Whether the coordinator answers.
    pub coordinator_up: bool,
    /// Its members that answered.
    pub coordinator_members: u32,
    /// Whether the store answers and could be led on.
    pub store_up: bool,
    /// Wall clock here minus the store's, milliseconds.
    pub store_skew_ms: i64,
    /// Units being worked on.
    pub in_flight_units: u64,
    /// The schedule in force; empty before there is one.
    pub schedule_fingerprint: String,
    /// When this process started, by its wall clock, seconds since 1970.
    pub started_seconds: i64,
}

/// Writes one family after the other in Prometheus' text format.
struct Page<'a>(&'a mut String);

impl Page<'_> {
    fn family(&mut self, series: Series) {
        let Series { name, help, kind: _ } = series;
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} gauge");
    }

    fn sample(&mut self, series: Series, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0.push_str(series.name);
        for (n, (key, text)) in labels.iter().enumerate() {
            let start = if n == 0 { '{' } else { ',' };
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{start}{key}=\"{text}\"");
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    fn one(&mut self, series: Series, value: impl std::fmt::Display) {
        self.family(series);
        self.sample(series, &[], value);
        self.0.push('\n');
    }

    fn by<'l>(&mut self, series: Series, label: &str, values: impl IntoIterator<Item = (&'l str, f64)>) {
        self.family(series);
        for (text, value) in values {
            self.sample(series, &[(label, text)], value);
        }
        self.0.push('\n');
    }

    fn by_job(&mut self, series: Series, counts: &BTreeMap<(&str, &str), u64>) {
        self.family(series);
        for ((job, state), count) in counts {
            self.sample(series, &[("job", job), ("state", state)], count);
        }
        self.0.push('\n');
    }
}

const fn flag(yes: bool) -> f64 {
    if yes { 1.0 } else { 0.0 }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts beyond 2^53 lose digits that no chart shows; no money among them"
)]
const fn number(count: u64) -> f64 {
    count as f64
}

impl Observation {
    /// Writes every gauge.
    pub(super) fn render(&self, page: &mut String, metrics: &Metrics) {
        let jobs = metrics.jobs();
        let labels = metrics.labels();
        let mut page = Page(page);
        self.render_leadership(&mut page, metrics);
        let state = |state: &&'static str| (*state, flag(*state == self.session_state));
        page.by(series::SESSION_STATE, "state", labels.session_states.iter().map(state));
        page.one(series::SESSION_REMAINING, self.session_remaining.as_secs_f64());
        page.one(series::COORDINATOR_UP, flag(self.coordinator_up));
        page.one(series::COORDINATOR_MEMBERS, self.coordinator_members);
        page.one(series::STORE_UP, flag(self.store_up));
        let (sign, skew) = (if self.store_skew_ms < 0 { "-" } else { "" }, self.store_skew_ms.unsigned_abs());
        page.one(
            series::STORE_SKEW,
            match skew {
                0 => "0".to_owned(),
                skew => format!("{sign}{}.{:03}", skew / 1000, skew % 1000),
            },
        );
        page.one(series::IN_FLIGHT, self.in_flight_units);
        self.render_figures(&mut page, &jobs);
        page.by(series::SCHEDULE_INFO, "fingerprint", [(self.schedule_fingerprint.as_str(), 1.0)]);
        page.by(series::BUILD_INFO, "version", [(env!("CARGO_PKG_VERSION"), 1.0)]);
        page.one(series::START_TIME, self.started_seconds);
    }

    fn election(&self, name: &ElectionName) -> Option<&ElectionObservation> {
        self.elections.iter().find(|seen| seen.election == *name)
    }

    fn render_leadership(&self, page: &mut Page<'_>, metrics: &Metrics) {
        let mut by_election = |series: Series, value: fn(&ElectionObservation) -> f64| {
            let of = |name: &ElectionName| self.election(name).map_or(0.0, value);
            page.by(series, "election", metrics.labels().elections.iter().map(|name| (name.as_str(), of(name))));
        };
        by_election(series::LEADER, |seen| flag(seen.leading));
        by_election(series::TERM, |seen| number(u64::try_from(seen.term.get()).unwrap_or(0)));
        by_election(
            series::LEASE_REMAINING,
            |seen| {
                if seen.leading { seen.lease_remaining.as_secs_f64() } else { 0.0 }
            },
        );
        by_election(series::HALTED, |seen| flag(seen.halted));
        by_election(series::RUN_OVERDUE, |seen| seen.figures().map_or(0.0, |figures| number(figures.runs_overdue)));
        by_election(series::OLDEST_PENDING, |seen| {
            seen.figures().map_or(0.0, |figures| number(figures.oldest_pending_seconds))
        });
        by_election(series::OLDEST_PAYOUT, |seen| {
            seen.figures().map_or(0.0, |figures| number(figures.oldest_payout_seconds))
        });
        by_election(series::HELD_BACK, |seen| {
            seen.figures().map_or(0.0, |figures| number(figures.ticks_held_back_seconds))
        });
    }

    fn render_figures(&self, page: &mut Page<'_>, jobs: &[JobName]) {
        let figures: Vec<&StoreFigures> = self.elections.iter().filter_map(ElectionObservation::figures).collect();
        let mut runs: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        let mut units: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for job in jobs {
            for state in RunState::ALL.into_iter().filter(|state| state.is_open()) {
                runs.insert((job.as_str(), state.as_str()), 0);
            }
            for state in UnitState::ALL {
                units.insert((job.as_str(), state.as_str()), 0);
            }
        }
        // Jobs beyond the bound of series are left out: the map has no place for them.
        for (job, state, count) in figures.iter().flat_map(|figures| &figures.runs) {
            runs.entry((job.as_str(), state.as_str())).and_modify(|sum| *sum += count);
        }
        for (job, state, count) in figures.iter().flat_map(|figures| &figures.units) {
            units.entry((job.as_str(), state.as_str())).and_modify(|sum| *sum += count);
        }
        page.by_job(series::RUNS, &runs);
        page.by_job(series::UNITS, &units);
        let open = InstructionState::ALL.into_iter().filter(|state| !state.is_final());
        let payouts = |state: InstructionState| {
            let of = |figures: &&StoreFigures| {
                figures.payouts.iter().filter(|(s, _)| *s == state).map(|(_, count)| *count).sum::<u64>()
            };
            (state.as_str(), number(figures.iter().map(of).sum()))
        };
        page.by(series::PAYOUTS, "state", open.map(payouts));
        // The store's records of receivers and of rejects are of all elections: every leader reads the same numbers.
        let stopped = figures.iter().map(|figures| figures.receivers_stopped).max().unwrap_or_default();
        let by_end = [("false", number(stopped.0)), ("true", number(stopped.1))];
        page.by(series::RECEIVERS_STOPPED, "needs_resume", by_end);
        let rejects = figures.iter().map(|figures| figures.fencing_rejects).max().unwrap_or(0);
        page.one(series::REJECTS_RECORDED, rejects);
    }
}

impl ElectionObservation {
    /// The store's figures belong to leading: none where this replica does not.
    fn figures(&self) -> Option<&StoreFigures> {
        self.figures.as_ref().filter(|_| self.leading)
    }
}

#[cfg(test)]
mod tests {
    use super::super::metrics::Labels;
    use super::*;

    fn seen(leading: bool) -> Observation {
        let job = JobName::new("daily").expect("valid");
        let figures = StoreFigures {
            runs: vec![(job.clone(), RunState::Open, 2)],
            units: vec![(job, UnitState::Pending, 7)],
            payouts: vec![(InstructionState::Pending, 3)],
            oldest_payout_seconds: 1200,
            receivers_stopped: (2, 1),
            runs_overdue: 1,
            oldest_pending_seconds: 9,
            ticks_held_back_seconds: 3600,
            fencing_rejects: 4,
            halted: false,
        };
        let election = ElectionObservation {
            election: ElectionName::new("settlement").expect("valid"),
            leading,
            term: Term::new(5).expect("valid"),
            lease_remaining: Duration::from_millis(1500),
            halted: true,
            figures: Some(figures),
        };
        Observation {
            elections: vec![election],
            session_state: "live",
            store_skew_ms: -1250,
            schedule_fingerprint: "a\"b".into(),
            started_seconds: 1_800_000_000,
            ..Observation::default()
        }
    }

    fn page(leading: bool) -> String {
        let metrics = Metrics::new(Labels {
            elections: vec![ElectionName::new("settlement").expect("valid")],
            session_states: vec!["live", "lost"],
            ..Labels::default()
        })
        .expect("the table is sound");
        metrics.know_jobs([&JobName::new("daily").expect("valid")]);
        metrics.render(|| seen(leading))
    }

    fn assert_lines(page: &str, expected: &[&str]) {
        for line in expected {
            assert!(page.lines().any(|l| l == *line), "{line} is missing in\n{page}");
        }
    }

    #[test]
    fn a_leader_shows_its_lease_and_the_stores_figures() {
        assert_lines(
            &page(true),
            &[
                "bursar_leader{election=\"settlement\"} 1",
                "bursar_lease_remaining_seconds{election=\"settlement\"} 1.5",
                "bursar_runs{job=\"daily\",state=\"open\"} 2",
                "bursar_units{job=\"daily\",state=\"pending\"} 7",
                "bursar_units{job=\"daily\",state=\"set_aside\"} 0",
                "bursar_payouts{state=\"pending\"} 3",
                "bursar_oldest_payout_seconds{election=\"settlement\"} 1200",
                "bursar_receivers_stopped{needs_resume=\"false\"} 2",
                "bursar_receivers_stopped{needs_resume=\"true\"} 1",
                "bursar_start_time_seconds 1800000000",
                "bursar_fencing_rejects_recorded 4",
                "bursar_ticks_held_back_seconds{election=\"settlement\"} 3600",
                "bursar_store_clock_skew_seconds -1.250",
                "bursar_session_state{state=\"live\"} 1",
                "bursar_session_state{state=\"lost\"} 0",
                "bursar_schedule_info{fingerprint=\"a\\\"b\"} 1",
            ],
        );
    }

    #[test]
    fn after_a_demotion_every_gauge_of_leading_is_nothing_at_once() {
        assert_lines(
            &page(false),
            &[
                "bursar_leader{election=\"settlement\"} 0",
                "bursar_term{election=\"settlement\"} 5",
                "bursar_halted{election=\"settlement\"} 1",
                "bursar_lease_remaining_seconds{election=\"settlement\"} 0",
                "bursar_run_overdue{election=\"settlement\"} 0",
                "bursar_oldest_pending_seconds{election=\"settlement\"} 0",
                "bursar_ticks_held_back_seconds{election=\"settlement\"} 0",
                "bursar_runs{job=\"daily\",state=\"open\"} 0",
                "bursar_units{job=\"daily\",state=\"pending\"} 0",
                "bursar_payouts{state=\"pending\"} 0",
                "bursar_oldest_payout_seconds{election=\"settlement\"} 0",
                "bursar_receivers_stopped{needs_resume=\"false\"} 0",
                "bursar_receivers_stopped{needs_resume=\"true\"} 0",
                "bursar_start_time_seconds 1800000000",
                "bursar_fencing_rejects_recorded 0",
            ],
        );
    }
}
