//! Figures that only the store knows, for metrics. Read by the leader every few seconds.

use crate::domain::JobName;
use crate::domain::instruction::InstructionState;
use crate::domain::run::RunState;
use crate::domain::unit::UnitState;

/// A snapshot of counts for one election.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// Open runs by job and state.
    pub runs: Vec<(JobName, RunState, u64)>,
    /// Units of open runs by job and state.
    pub units: Vec<(JobName, UnitState, u64)>,
    /// Instructions by state, final ones left out.
    pub payouts: Vec<(InstructionState, u64)>,
    /// Age of the oldest payout that is pending and could be sent, seconds: its job sends by HTTP, it waits for no release, and
    /// its merchant is not on hold. 0 where there is none.
    pub oldest_payout_seconds: u64,
    /// Receivers that are stopped, of all elections: those that are tried again by themselves, and those that wait for an
    /// operator.
    pub receivers_stopped: (u64, u64),
    /// Runs past their deadline.
    pub runs_overdue: u64,
    /// Age of the oldest pending unit, seconds; 0 where there is none.
    pub oldest_pending_seconds: u64,
    /// So far ahead of the store's clock a job's ticks were evaluated, seconds: it was stepped back, and that job's ticks stand
    /// still for so long. 0 where none is.
    pub ticks_held_back_seconds: u64,
    /// Fencing rejects on record.
    pub fencing_rejects: u64,
    /// Whether the election is halted.
    pub halted: bool,
}
