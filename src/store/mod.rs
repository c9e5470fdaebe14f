//! The store: where the truth is. A port in batches and outcome enums, and its adapters.
//!
//! Why a port: the decision whether a write counts is the database's, not the writer's, and every database makes it in
//! its own way. What they share is this interface, its outcomes and one contract suite.
//!
//! Invariants:
//! - Every operation of [`TenureStore`] enters through the fence before anything else and answers [`Entered`]: mine,
//!   fenced, halted; "nothing due" is an outcome inside of mine. The four are never mistaken for one another.
//! - A conditional update answers with what it found instead.
//! - [`StoreError::Unknown`] is not a failure: the state is read again, rows locked, before anything is decided.
//! - Business time is the store's clock, read in the transaction that acts on it.
//!
//! Deliberately absent: SQL, rows, connections, and anything that lets a caller keep a transaction open.

mod batches;
mod bounds;
mod checks;
mod error;
mod figures;
mod pauses;
mod payouts;
mod planned;
mod port;
mod preview;
mod readable;
mod records;
mod requests;
mod tenure_port;
mod views;

pub mod memory;
pub mod postgres;
pub mod sqlite;

pub use batches::*;
pub use error::{BatchError, StoreError};
pub use figures::StoreFigures;
pub use pauses::{PauseOutcome, PauseView};
pub use payouts::*;
pub use port::*;
pub use preview::PreviewLine;
pub use records::*;
pub use requests::*;
pub use tenure_port::*;
pub use views::*;
