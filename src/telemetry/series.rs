//! The table of all series: name, kind, what it means. The one place that names them.

/// What a series is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// Only grows; kept by the recorder.
    Counter,
    /// Observations in buckets; kept by the recorder.
    Histogram(&'static [f64]),
    /// Looked at when it is scraped.
    Gauge,
}

/// One series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Says the unit where there is one.
    pub(super) help: &'static str,
}

/// For what takes milliseconds: elections, renewals, teardowns, takeovers, batches.
const SHORT: &[f64] = &[0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];
/// For what takes seconds to hours: runs, and the lateness of ticks.
const LONG: &[f64] = &[0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0];

macro_rules! series {
    ($($constant:ident = $name:literal, $kind:expr, $help:literal;)+) => {
        $(pub(super) const $constant: Series = Series { name: concat!("bursar_", $name), kind: $kind, help: $help };)+
        /// All of them, in the order of the page.
        #[cfg_attr(not(test), expect(dead_code, reason = "the tests walk the whole table"))]
        pub(super) const ALL: &[Series] = &[$($constant),+];
        /// Those that the recorder keeps.
        pub(super) const RECORDED: &[Series] = &{
            let mut kept = [LEADER; RECORDED_COUNT];
            let mut n = 0;
            $(if !matches!($constant.kind, Kind::Gauge) { kept[n] = $constant; n += 1; })+
            assert!(n == RECORDED_COUNT);
            kept
        };
        const RECORDED_COUNT: usize = 0 $(+ if matches!($kind, Kind::Gauge) { 0 } else { 1 })+;
    };
}

series! {
    LEADER = "leader", Kind::Gauge,
        "1 while this replica leads the election: fence accepted, session live, deadline ahead. Computed at the scrape.";
    TERM = "term", Kind::Gauge,
        "The highest term of the election that this replica knows of.";
    SESSION_STATE = "session_state", Kind::Gauge,
        "1 for the state that the session with the coordinator is in.";
    SESSION_REMAINING = "session_remaining_seconds", Kind::Gauge,
        "Seconds until the session counts as lost without another renewal; 0 without a session.";
    LEASE_REMAINING = "lease_remaining_seconds", Kind::Gauge,
        "Seconds that a leading tenure may go on without another renewal; 0 where this replica does not lead.";
    TRANSITIONS = "leadership_transitions_total", Kind::Counter,
        "Changes of leadership at this replica, won or given up, by reason.";
    RENEWAL = "lease_renewal_seconds", Kind::Histogram(SHORT),
        "Seconds from sending a renewal to its answer.";
    EXPIRIES = "lease_expiries_total", Kind::Counter,
        "Sessions lost: no renewal before the deadline, or the lease was gone.";
    ELECTION = "election_seconds", Kind::Histogram(SHORT),
        "Seconds from seeing the last leader's end to winning.";
    TAKEOVER = "takeover_seconds", Kind::Histogram(SHORT),
        "Seconds from seeing the last leader's end to the first work of one's own.";
    TEARDOWN = "teardown_seconds", Kind::Histogram(SHORT),
        "Seconds from the order to end a tenure to its end.";
    TEARDOWN_OVERRUNS = "teardown_overruns_total", Kind::Counter,
        "Tenures that had not ended within the teardown budget; each ends the process.";
    REJECTS = "fencing_rejects_total", Kind::Counter,
        "Operations of this process that the store refused because of another claim.";
    REJECTS_RECORDED = "fencing_rejects_recorded", Kind::Gauge,
        "Fencing rejects on record in the store, of all replicas; 0 where this replica does not lead.";
    DUPLICATES = "duplicate_runs_prevented_total", Kind::Counter,
        "Ticks that were found to have their run already.";
    SPANS_DROPPED = "trace_spans_dropped_total", Kind::Counter,
        "Spans that no collector took: it did not answer, or the queue was full.";
    COORDINATOR_UP = "coordinator_up", Kind::Gauge,
        "1 while the coordinator answers.";
    COORDINATOR_MEMBERS = "coordinator_members_reachable", Kind::Gauge,
        "Members of the coordinator that answered when last asked.";
    STORE_UP = "store_up", Kind::Gauge,
        "1 while the store answers and a replica could lead on it.";
    STORE_SKEW = "store_clock_skew_seconds", Kind::Gauge,
        "This machine's wall clock minus the store's, seconds, when the store last answered. Nothing is decided by it.";
    TICKS = "ticks_total", Kind::Counter,
        "Ticks of jobs by what became of them.";
    HELD_BACK = "ticks_held_back_seconds", Kind::Gauge,
        "Seconds for which ticks stand still because the store's clock was stepped back behind them; 0 where this replica does not lead.";
    TICK_LAG = "tick_lag_seconds", Kind::Histogram(LONG),
        "Seconds from a tick's due time to the opening of its run.";
    RUN = "run_seconds", Kind::Histogram(LONG),
        "Seconds from the opening of a run to its end.";
    RUN_OVERDUE = "run_overdue", Kind::Gauge,
        "Open runs past their deadline; 0 where this replica does not lead.";
    RUNS = "runs", Kind::Gauge,
        "Open runs; 0 where this replica does not lead.";
    UNITS = "units", Kind::Gauge,
        "Units of open runs; 0 where this replica does not lead.";
    UNITS_SETTLED = "units_settled_total", Kind::Counter,
        "Units that this process ended as settled, carried or empty.";
    ATTEMPTS = "unit_attempts_total", Kind::Counter,
        "Attempts at units by outcome.";
    BATCH = "batch_seconds", Kind::Histogram(SHORT),
        "Seconds that a batch took, from its claim to the end of its COMMIT.";
    IN_FLIGHT = "in_flight_units", Kind::Gauge,
        "Units that this process is working on right now.";
    OLDEST_PENDING = "oldest_pending_seconds", Kind::Gauge,
        "Seconds since the oldest run with pending units was opened; 0 where there is none or this replica does not lead.";
    PAYOUTS = "payouts", Kind::Gauge,
        "Payouts that are not final; 0 where this replica does not lead.";
    OLDEST_PAYOUT = "oldest_payout_seconds", Kind::Gauge,
        "Seconds since the oldest payout was written that is pending and could be sent over HTTP; 0 where there is none or this replica does not lead.";
    RECEIVERS_STOPPED = "receivers_stopped", Kind::Gauge,
        "Receivers that are stopped, by whether only an operator ends it, of all elections; 0 where this replica does not lead.";
    PAYOUT_ATTEMPTS = "payout_attempts_total", Kind::Counter,
        "Tries at instructions by outcome.";
    SCHEDULE_INFO = "schedule_info", Kind::Gauge,
        "1 for the fingerprint of the schedule in force.";
    RELOADS = "schedule_reloads_total", Kind::Counter,
        "Changes of the schedule file: taken over, or refused while the old schedule goes on.";
    HALTED = "halted", Kind::Gauge,
        "1 while the election is halted, as far as this replica knows.";
    BUILD_INFO = "build_info", Kind::Gauge,
        "1 for the version that runs.";
    START_TIME = "start_time_seconds", Kind::Gauge,
        "When this process started, by this machine's wall clock, seconds since 1970.";
}
