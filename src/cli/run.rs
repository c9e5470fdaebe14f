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
        ReplicaError::Web(error) if error.is_passing() => Exit::Temporary,
        ReplicaError::NoElection { .. } | ReplicaError::Web(_) | ReplicaError::OtherCoordinator { .. } => Exit::Config,
        ReplicaError::Store(error) => CommandError::from(error).exit(),
        // What the machine is short of it may have in a moment.
        ReplicaError::System(_) => Exit::Temporary,
        ReplicaError::PartEnded(_) | ReplicaError::LeavingTook(_) | ReplicaError::Metrics(_) => Exit::Internal,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use rustix::io::Errno;

    use super::*;
    use crate::web::WebError;

    #[test]
    fn only_what_an_edit_mends_keeps_a_replica_from_being_started_again() {
        let listen = |errno: Errno| {
            let listen = "127.0.0.1:9464".parse().expect("an address");
            exit(ReplicaError::Web(WebError::Listen { listen, source: errno.into() }))
        };
        assert_eq!(listen(Errno::ADDRINUSE), Exit::Temporary, "the process before it may still hold the port");
        assert_eq!(listen(Errno::MFILE), Exit::Temporary);
        assert_eq!(exit(ReplicaError::Web(WebError::Thread(Error::from(Errno::AGAIN)))), Exit::Temporary);
        assert_eq!(exit(ReplicaError::System(Errno::AGAIN.into())), Exit::Temporary);
        assert_eq!(listen(Errno::ADDRNOTAVAIL), Exit::Config);
        assert_eq!(listen(Errno::ACCESS), Exit::Config);
    }
}
