//! `bursar run`: a replica, until it is told to leave.

use clap::Args;

use super::context::Context;
use super::error::{CommandError, Exit};
use crate::app::{self, ReplicaError};
use crate::lifecycle;

/// Run a replica until SIGTERM.
///
/// It stands for its elections, and while it leads it runs the schedule. SIGTERM or SIGINT: it stops claiming, waits for
/// what is under way (coordinator.drain), hands over, and ends with 0. A second signal ends it at once. Where the store or
/// the coordinator is away it says so and waits; it is not ready meanwhile.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// End at once when this process, the one that started it, is gone. For the demo.
    #[arg(long, value_name = "PID", hide = true)]
    dies_with: Option<i32>,
}

impl RunArgs {
    pub(super) fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        if let Some(parent) = self.dies_with {
            lifecycle::die_with(parent)
                .map_err(|source| CommandError::Io { what: "cannot be tied to the demo".to_owned(), source })?;
        }
        let (config, schedule) = context.config_and_schedule()?;
        match app::run_replica(config, schedule) {
            Ok(()) => Ok(Exit::Done),
            Err(error) => {
                // By now there is a log, which may be JSON: a line beside it would be none.
                tracing::error!(%error, "the replica ends");
                Ok(exit(error))
            }
        }
    }
}

fn exit(error: ReplicaError) -> Exit {
    match error {
        ReplicaError::NoElection { .. } | ReplicaError::Web(_) | ReplicaError::OtherCoordinator { .. } => Exit::Config,
        ReplicaError::Store(error) => CommandError::from(error).exit(),
        ReplicaError::System(_)
        | ReplicaError::PartEnded(_)
        | ReplicaError::LeavingTook(_)
        | ReplicaError::Metrics(_) => Exit::Internal,
    }
}
