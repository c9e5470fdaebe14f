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

mod approvals;
mod batches;
mod bounds;
mod call_words;
mod carries;
mod checks;
mod error;
mod figures;
mod holds;
mod pauses;
mod payout_words;
mod payouts;
mod planned;
mod port;
mod preview;
mod readable;
mod receivers;
mod recording;
mod records;
mod report;
mod requests;
mod stories;
mod tenure_port;
mod tries;
mod unit_history;
mod untold;
mod users_statement;
mod views;
mod wishes;

pub mod memory;
pub mod postgres;
pub mod sqlite;

pub use approvals::{
    ActDone, ApprovalState, ApprovalView, DecideOutcome, Decision, DecisionView, FourEyesOutcome, GuardedAct,
};
pub use batches::*;
pub use call_words::{CallWord, resolve_call};
pub use carries::JobCarries;
pub use error::{BatchError, StoreError};
pub use figures::StoreFigures;
pub use holds::*;
pub use pauses::{PauseOutcome, PauseView};
pub use payout_words::*;
pub use payouts::*;
pub use port::*;
pub use preview::PreviewLine;
pub use receivers::*;
pub use records::*;
pub use report::{PAYOUTS_REPORTED, ReportedPayout, RollForward, RunReport};
pub use requests::*;
pub use stories::*;
pub use tenure_port::*;
pub use tries::UnitTry;
pub use unit_history::{UNIT_HISTORY_SHOWN, UnitBatch, UnitEntries, UnitHistory, UnitPosting, UnitRequest};
pub use users_statement::UsersStatement;
pub use views::*;
pub use wishes::*;
