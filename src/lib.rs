//! bursar: a settlement job runner. N identical replicas elect a leader; only the leader runs the schedule; each tick
//! becomes a durable run of settlement units; every effect is fenced by the leader's term in the store.
//!
//! Invariants, and where they are held:
//! - The lease is for liveness, the fence for safety: no argument for correctness rests on a clock or on "I am the leader"
//!   ([`leadership`], [`store`]).
//! - Every transaction of a tenure enters through the fence first ([`store`]).
//! - Decisions are pure, shells are thin ([`leadership`]'s machine, [`schedule`], [`domain::netting`]).
//! - After demotion nothing of a tenure goes on ([`tenure`]).
//!
//! Read in this order: [`domain`], [`leadership`], [`store`], [`schedule`], [`tenure`], [`settlement`], then [`app`].

pub mod app;
#[cfg(feature = "chaos")]
pub mod chaos;
pub mod cli;
pub mod clock;
pub mod config;
pub mod domain;
pub mod hostproc;
pub mod ingest;
pub mod leadership;
pub mod lifecycle;
pub mod schedule;
pub mod settlement;
pub mod store;
pub mod telemetry;
pub mod tenure;
pub mod web;

/// A named place in the protocol: `point!("name")` waits, `point!("name", error => expression)` returns the error of the
/// expression where the point is set to fail; with `in part` it can also be set for one part alone, as `name:part`.
/// Expands to nothing without the feature `chaos`.
#[macro_export]
macro_rules! point {
    ($name:literal) => {
        #[cfg(feature = "chaos")]
        let _ = $crate::chaos::pass($name).await;
    };
    ($name:literal, in $part:expr, $failed:ident => $error:expr) => {
        #[cfg(feature = "chaos")]
        if let Err($failed) = $crate::chaos::pass_in($name, $part).await {
            return Err($error);
        }
    };
    ($name:literal, $failed:ident => $error:expr) => {
        #[cfg(feature = "chaos")]
        if let Err($failed) = $crate::chaos::pass($name).await {
            return Err($error);
        }
    };
}
