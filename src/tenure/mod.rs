//! Everything that exists only under a term: promotion, timers, ticks, runs, batches, calls, requests, and the end of it all.
//!
//! A *tenure* is one holding of a term and the scope that everything leader-only lives in: tasks, timers, sessions at the
//! store, calls under way. Leadership orders its begin and its end ([`supervisor`]); in between:
//!
//! ```text
//!   begin ─► promotion ─► sweep ──► planner (ticks become runs)          every second, and when a timer wakes it
//!                  │         └────► bringup (the schedule was edited)
//!                  ├────► requests (operators' acts), one after the other
//!                  ├────► work ───► one run ─► batches (in-store) or outside (record, call, record)
//!                  └────► payouts ► one lane per receiver: take, leave, send, record
//!   end ───► teardown: stop, timers down, drain, end the sessions, join every task, say so
//! ```
//!
//! Invariants:
//! - Nothing here is a proof of leadership. Every transaction presents the claim and the store decides ([`scope::Tenure::enter`]).
//! - Every task is spawned on the tenure's tracker, under its token: token cancelled means stopping, tracker empty means
//!   stopped. The timers' thread is joined.
//! - The gate is passed before a transaction begins and before the first byte of a call, never inside a transaction.
//! - Timers are hints. A late, lost or doubled one changes nothing: what is due is read from the store.
//!
//! Deliberately absent: the decision who leads (leadership's machine), which ticks exist and what becomes of them
//! (`schedule`), SQL (`store`), and what an answer of a receiver means (`settlement::http`).

pub mod accepted;
mod admission;
mod backoff;
mod batches;
mod bringup;
mod contradiction;
pub mod edge;
pub mod fate;
mod halving;
mod known;
mod leave;
pub mod observer;
mod outside;
mod pace;
mod payouts;
mod planner;
mod promotion;
mod pulse;
mod requests;
mod run;
pub mod scope;
pub mod settings;
mod store_clock;
pub mod supervisor;
mod sweep;
mod teardown;
#[cfg(test)]
mod tests;
mod timers;
mod trace;
mod work;

pub use accepted::{AcceptedMemory, AcceptedRecord, Forgotten, MemoryError, NoMemory};
pub use edge::{Begin, Ending, Gate, GateClosed, Order, Reports, Win};
pub use observer::{NoObserver, TenureObserver};
pub use settings::{ScheduleInForce, TenureDeps, TenureSettings};
pub use supervisor::Supervisor;
