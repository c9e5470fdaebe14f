//! What bursar speaks about, and nothing about how: names, terms, money, units and their legal transitions, netting.
//!
//! Everything here is pure: no clock, no I/O, no tokio, no SQL. Decisions about money ([`netting`], [`payout`]) live here
//! so that every store (PostgreSQL, SQLite, memory) derives the same numbers and the same bytes from the same rows.

pub mod calendar;
pub mod entry;
pub mod instruction;
pub mod job;
pub mod moment;
pub mod money;
pub mod names;
pub mod netting;
pub mod outside;
pub mod pause;
pub mod payout;
pub mod run;
pub mod term;
pub mod unit;
pub mod web_address;

pub use moment::Moment;
pub use names::{ElectionName, JobName, NameError, ReplicaId};
pub use term::{Claim, TenureId, Term};
