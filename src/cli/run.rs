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
/// the coordinator is away it says so and waits; it is not ready meanwhile. As process 1 of a container it runs as a child of
/// itself, so that processes that lost their parent are waited for.
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
        if lifecycle::is_first() {
            return stand_before();
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

/// As process 1 this only watches over the replica, which is its child. Ends the process with the replica's exit code.
fn stand_before() -> Result<Exit, CommandError> {
    let failed = |source| CommandError::Io { what: "cannot start the replica below process 1".to_owned(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let code = runtime.block_on(lifecycle::stand_before(std::env::args_os().skip(1))).map_err(failed)?;
    std::process::exit(code)
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
