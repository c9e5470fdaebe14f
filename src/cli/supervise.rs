//! Not for people: the supervisor of a `command` handler's process, started by a replica.

use crate::settlement::command;

use super::error::{CommandError, Exit};

/// Without arguments: the supervisor, with its orders on standard input.
#[derive(Debug, clap::Args)]
pub struct SuperviseArgs {
    /// Become the program, under the supervisor with this process id.
    #[arg(long, value_name = "PID", requires = "program")]
    execute: Option<i32>,

    /// What the supervisor takes for the proof that the program was not begun; the program never sees it.
    #[arg(long, value_name = "TEXT", requires = "execute")]
    proof: Option<String>,

    /// The program and its arguments.
    #[arg(last = true, requires = "execute")]
    program: Vec<String>,
}

impl SuperviseArgs {
    pub(super) fn execute(self) -> Result<Exit, CommandError> {
        let failed = match (self.execute, self.program.split_first()) {
            (Some(supervisor), Some((program, args))) => {
                format!("{}{}", self.proof.unwrap_or_default(), command::execute(supervisor, program, args))
            }
            (None, _) | (_, None) => match command::supervise() {
                Ok(()) => return Ok(Exit::Done),
                Err(why) => why,
            },
        };
        Err(CommandError::Internal(anyhow::anyhow!("not started: {failed}")))
    }
}
