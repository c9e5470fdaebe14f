//! Telemetry: the log, one [`Metrics`] value that every part reports to, and [`Traces`], off unless they are asked for.
//!
//! Why one value and no globals: what a test or a second replica in one process counts is its own.
//!
//! Invariants:
//! - Labels come from small closed sets (election, job, operation, reason, state, outcome); never a merchant, a unit, a run.
//! - Every series exists from the start, with 0.
//! - Whether a replica leads is looked at when it is asked ([`Observation`]), never remembered here.
//! - No log line and no series holds an amount, a merchant id or a receiver's body.
//!
//! Deliberately absent: who leads and how that is found out. This module is told.

mod lines;
mod logging;
mod metrics;
mod observation;
mod series;
mod traces;

pub use logging::{Format, init_logging, log_panics};
pub use metrics::{Labels, MOST_JOBS, Metrics, ReloadOutcome};
pub use observation::{ElectionObservation, Observation};
pub use traces::{Span, TraceExport, Traces, Work, traces};
