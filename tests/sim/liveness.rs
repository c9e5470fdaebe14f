//! What must have come to an end some time after trouble is over: ticks, runs, units, instructions, terms.

use std::time::Duration;

use bursar::domain::instruction::InstructionState;
use bursar::store::Store as _;
use chrono::TimeDelta;
use futures_util::FutureExt as _;

use crate::facts::Views;
use crate::world::World;

/// What was there when trouble ended and is not over yet; nothing where all is.
pub fn what_is_left(world: &World, calm: Duration) -> Vec<String> {
    let views = Views::read(&world.judge).now_or_never().expect("memory answers at once");
    let status = world.judge.status().now_or_never().expect("memory answers at once").expect("the judge has no faults");
    let since = TimeDelta::from_std(world.now().saturating_sub(calm)).expect("short");
    let calm = world.store_time() - since;
    let mut left = Vec::new();
    if status.jobs.is_empty() {
        left.push("liveness: nobody has brought up the jobs".to_owned());
    }
    for job in &status.jobs {
        // L3; a second is the precision of ticks.
        if job.evaluated_until < calm - TimeDelta::seconds(1) {
            left.push(format!("liveness: the ticks of {} are evaluated until {} only", job.job, job.evaluated_until));
        }
    }
    for run in views.runs.iter().filter(|run| run.state.is_open() && run.opened_at <= calm) {
        left.push(format!(
            "liveness: run {} of {} is {:?}, with {} units pending",
            run.id, run.job, run.state, run.units.pending
        ));
    }
    for payout in views.payouts.iter().filter(|payout| payout.created_at <= calm) {
        let is_over = match payout.state {
            InstructionState::Pending | InstructionState::Sending | InstructionState::Unknown => {
                // A job that pays nobody leaves them to whoever takes them from the store.
                payout.state == InstructionState::Pending && !world.state().facts.book.habits.contains_key("bank.test")
            }
            InstructionState::Held => payout.reason.is_some(),
            InstructionState::Paid | InstructionState::Rejected | InstructionState::Returned => true,
        };
        if !is_over {
            left.push(format!("liveness: {} is {:?} after {} tries", payout.key, payout.state, payout.attempts));
        }
    }
    left
}
