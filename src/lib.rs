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
pub mod secret;
pub mod settlement;
pub mod store;
pub mod telemetry;
pub mod tenure;
pub mod tls;
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

/// A deliberate defect of the test build, that its tests have to notice; `tests/it/mutants` lists all of them.
/// `mutant!("name")` is whether it is switched on, `mutant!("name" => statements)` does something wrong besides, and
/// `mutant!("name", instead of SOUND => BROKEN)` replaces a value. Without the feature `chaos` these are `false`, nothing, and
/// `SOUND`. One that is on stays on as long as the process lives: what is pure stays pure.
#[cfg(feature = "chaos")]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        $crate::chaos::mutant($name)
    };
    ($name:literal, instead of $sound:expr => $broken:expr) => {
        if $crate::chaos::mutant($name) { $broken } else { $sound }
    };
    ($name:literal => $($broken:tt)+) => {
        if $crate::chaos::mutant($name) {
            $($broken)+
        }
    };
}

/// `false`, nothing, and `SOUND`: see the one of the test build.
#[cfg(not(feature = "chaos"))]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        false
    };
    ($name:literal, instead of $sound:expr => $broken:expr) => {
        $sound
    };
    ($name:literal => $($broken:tt)+) => {};
}

/// The statement of a file. Here, in the test build, a mutant may break it: [`chaos::sql`](crate::chaos::sql) says which and how.
#[cfg(feature = "chaos")]
#[macro_export]
macro_rules! sql {
    ($file:literal) => {
        $crate::chaos::sql::statement(module_path!(), $file, include_str!($file))
    };
}

/// The statement of a file.
#[cfg(not(feature = "chaos"))]
#[macro_export]
macro_rules! sql {
    ($file:literal) => {
        include_str!($file)
    };
}
