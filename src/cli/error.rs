//! How a command ends: the exit codes are an interface (sysexits' numbers), and every error says what to do.

use std::process::ExitCode;

use crate::config::ConfigErrors;
use crate::store::StoreError;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// Refused, or something was found: an audit's violation, an import's conflict, a request that the leader refused.
    Refused,
    /// The command line is wrong.
    Usage,
    /// A defect of bursar, or of the store's contents: a damaged file, too.
    Internal,
    /// The store, the coordinator or a leader is away, or the machine is short of something (a port that is held): the same again
    /// may work.
    Temporary,
    /// Standard output could not be written.
    Unwritten,
    /// The configuration, the schedule or the store's set-up is wrong.
    Config,
    /// A signal ended a demo before it was done.
    Interrupted,
}

impl Exit {
    /// The number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Refused => 1,
            Self::Usage => 64,
            Self::Internal => 70,
            Self::Unwritten => 74,
            Self::Temporary => 75,
            Self::Config => 78,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Everything that is wrong with configuration or schedule, one to a line.
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    /// The store.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// What was asked for does not exist or may not be done.
    #[error("{0}")]
    Refused(String),
    /// Arguments that do not go together.
    #[error("{0}")]
    Usage(String),
    /// Something needed is away.
    #[error("{0}")]
    Away(String),
    /// The set-up does not fit.
    #[error("{0}")]
    Unfit(String),
    /// Standard output cannot be written.
    #[error("{}standard output could not be written: {source}", if *done { "done, but " } else { "" })]
    Output {
        /// An act is in the store already.
        done: bool,
        /// The system's words.
        source: std::io::Error,
    },
    /// Not everything could be done.
    #[error("{what}: {source}")]
    Partly {
        /// What was left, by its names.
        what: String,
        /// The first error.
        source: Box<CommandError>,
    },
    /// Files, threads.
    #[error("{what}: {source}")]
    Io {
        /// What was tried, with the file's name.
        what: String,
        /// The system's words.
        source: std::io::Error,
    },
    /// A defect.
    #[error("{0:#}")]
    Internal(anyhow::Error),
}

impl CommandError {
    /// The exit code that tells a script what kind of failure it is.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::Unfit(_) => Exit::Config,
            Self::Store(error) => store_exit(error),
            Self::Usage(_) => Exit::Usage,
            Self::Away(_) => Exit::Temporary,
            // A reader that left (`| head`) is no failure.
            Self::Io { source, .. } | Self::Output { source, .. }
                if source.kind() == std::io::ErrorKind::BrokenPipe =>
            {
                Exit::Done
            }
            Self::Output { .. } => Exit::Unwritten,
            Self::Refused(_) | Self::Io { .. } => Exit::Refused,
            Self::Internal(_) => Exit::Internal,
            Self::Partly { source, .. } => source.exit(),
        }
    }
}

impl Exit {
    /// This verdict, once its words were written. It stands also where their reader has left (`| head`): what was found was found.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(super) fn after(self, written: Result<(), CommandError>) -> Result<Self, CommandError> {
        match written {
            Err(CommandError::Output { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => Ok(self),
            written => written.map(|()| self),
        }
    }
}

fn store_exit(error: &StoreError) -> Exit {
    match error {
        damaged if damaged.is_damage() => Exit::Internal,
        StoreError::Unreachable { .. }
        | StoreError::TryAgain { .. }
        | StoreError::TimedOut { .. }
        | StoreError::StatementTimeout { .. }
        | StoreError::Unknown { .. }
        | StoreError::ReadOnly { .. } => Exit::Temporary,
        StoreError::Schema { .. } | StoreError::Unfit { .. } => Exit::Config,
        StoreError::Forgot { .. } | StoreError::Ended { .. } | StoreError::Broken { .. } => Exit::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_store_is_not_asked_again_and_one_in_trouble_is() {
        let of = |code: &str| {
            CommandError::Store(StoreError::TryAgain {
                operation: "connect",
                code: code.to_owned(),
                detail: "a detail".to_owned(),
            })
        };
        for (code, exit, says) in [
            ("XX001", Exit::Internal, "connect: the database is damaged, or has a defect (XX001): a detail"),
            ("53100", Exit::Temporary, "connect: the database is in trouble (53100): a detail"),
            ("40001", Exit::Temporary, "connect: the database asks to try again (40001): a detail"),
        ] {
            let error = of(code);
            assert_eq!((error.exit(), error.to_string().as_str()), (exit, says));
        }
    }

    #[test]
    fn an_act_whose_answer_cannot_be_written_is_said_to_be_done() {
        let full = |done| CommandError::Output { done, source: std::io::ErrorKind::StorageFull.into() };
        assert_eq!((full(true).exit(), full(true).exit().code()), (Exit::Unwritten, 74));
        assert!(full(true).to_string().starts_with("done, but standard output could not be written: "));
        assert!(full(false).to_string().starts_with("standard output could not be written: "));
        let left = CommandError::Output { done: true, source: std::io::ErrorKind::BrokenPipe.into() };
        assert_eq!(left.exit(), Exit::Done, "a reader that left is no failure");
        assert!(matches!(Exit::Refused.after(Err(left)), Ok(Exit::Refused)), "nor does it take back what was found");
        assert!(Exit::Refused.after(Err(full(false))).is_err());
        assert!(matches!(Exit::Refused.after(Ok(())), Ok(Exit::Refused)));
    }
}
