//! What can go wrong with a store, by what the caller does about it.

use std::time::Duration;

/// A fault of the store or of the way to it; never a verdict on a unit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No connection, or it was lost before COMMIT was sent: nothing was done.
    #[error("{operation}: the store cannot be reached: {detail}")]
    Unreachable {
        /// What was tried.
        operation: &'static str,
        /// The driver's words.
        detail: String,
    },
    /// The database ended the transaction for a reason of its own (40001, 40P01, 55P03, 25P03, 57P0x, or it
    /// is in trouble itself: 53, 58, XX): nothing was done,
    /// the whole batch may be tried again, and it is no attempt.
    #[error("{operation}: {} ({code}): {detail}", trouble(code))]
    TryAgain {
        /// What was tried.
        operation: &'static str,
        /// SQLSTATE.
        code: String,
        /// The database's words.
        detail: String,
    },
    /// Our own statement time-out (57014): nothing was done; the batch counts as failed.
    #[error("{operation}: the statement took longer than its time-out: {detail}")]
    StatementTimeout {
        /// What was tried.
        operation: &'static str,
        /// The database's words.
        detail: String,
    },
    /// No connection or answer within the bound.
    #[error("{operation}: no answer within {within:?}")]
    TimedOut {
        /// What was tried.
        operation: &'static str,
        /// The bound.
        within: Duration,
    },
    /// COMMIT was sent and not answered, answered with a warning, or something was cancelled meanwhile: it may have
    /// happened.
    #[error("{operation}: the outcome of the commit is unknown: {detail}")]
    Unknown {
        /// What was tried.
        operation: &'static str,
        /// What is known.
        detail: String,
    },
    /// A standby, or `default_transaction_read_only`.
    #[error("{operation}: the database is read-only: {detail}")]
    ReadOnly {
        /// What was tried.
        operation: &'static str,
        /// What was found.
        detail: String,
    },
    /// The schema is not the one of this release.
    #[error(
        "the database has schema {found}, this release needs {expected}: run `bursar migrate` with the newer release"
    )]
    Schema {
        /// What was found; 0 where there is none.
        found: i64,
        /// What is needed.
        expected: i64,
    },
    /// The store forgot what it had acknowledged: another system, another timeline, or an earlier position.
    #[error("the database forgot, it is not the one it was: {detail}")]
    Forgot {
        /// What differs.
        detail: String,
    },
    /// The way to the database or its settings break a guarantee (a pooler in transaction mode, a missing privilege).
    #[error("the database cannot be used: {detail}")]
    Unfit {
        /// What was found, what is expected, what to do.
        detail: String,
    },
    /// The tenure's connections were ended.
    #[error("{operation}: the tenure has ended")]
    Ended {
        /// What was tried.
        operation: &'static str,
    },
    /// A statement failed in a way that no retry mends.
    #[error("{operation}: {detail}")]
    Broken {
        /// What was tried.
        operation: &'static str,
        /// SQLSTATE and the database's words.
        detail: String,
    },
}

/// What a SQLSTATE says of the database, in words.
fn trouble(code: &str) -> &'static str {
    match code.get(..2) {
        Some("XX") => "the database is damaged, or has a defect",
        Some("53" | "58") => "the database is in trouble",
        Some(_) | None => "the database asks to try again",
    }
}

impl StoreError {
    /// Whether what the database keeps is damaged, by its own word (SQLSTATE class XX): nobody mends that by trying again.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::TryAgain { code, .. } if code.starts_with("XX"))
    }

    /// The same error, of another operation: what a person asked for, where the store was asked for something else first.
    #[must_use]
    pub fn during(self, operation: &'static str) -> Self {
        match self {
            Self::Unreachable { detail, .. } => Self::Unreachable { operation, detail },
            Self::TryAgain { code, detail, .. } => Self::TryAgain { operation, code, detail },
            Self::StatementTimeout { detail, .. } => Self::StatementTimeout { operation, detail },
            Self::TimedOut { within, .. } => Self::TimedOut { operation, within },
            Self::Unknown { detail, .. } => Self::Unknown { operation, detail },
            Self::ReadOnly { detail, .. } => Self::ReadOnly { operation, detail },
            Self::Ended { .. } => Self::Ended { operation },
            Self::Broken { detail, .. } => Self::Broken { operation, detail },
            other @ (Self::Schema { .. } | Self::Forgot { .. } | Self::Unfit { .. }) => other,
        }
    }

    /// Whether the database says that it lacks something itself (no room, I/O: SQLSTATE classes 53, 58). However often it says so,
    /// that is no verdict on what was tried. A defect (XX) that stays may be one unit's: a damaged row, a function that raises it.
    #[must_use]
    pub fn is_trouble_of_the_store(&self) -> bool {
        match self {
            Self::TryAgain { code, .. } => ["53", "58"].iter().any(|class| code.starts_with(class)),
            Self::Unreachable { .. }
            | Self::StatementTimeout { .. }
            | Self::TimedOut { .. }
            | Self::Unknown { .. }
            | Self::ReadOnly { .. }
            | Self::Schema { .. }
            | Self::Forgot { .. }
            | Self::Unfit { .. }
            | Self::Ended { .. }
            | Self::Broken { .. } => false,
        }
    }

    /// Of a statement of the user's: the words for what it did wrong.
    ///
    /// # Errors
    /// The error itself, where the store is at fault and not the statement.
    pub(super) fn of_a_users_statement(self) -> Result<String, Self> {
        match self {
            Self::Broken { detail, .. } | Self::StatementTimeout { detail, .. } => Ok(detail),
            Self::Unreachable { .. }
            | Self::TryAgain { .. }
            | Self::TimedOut { .. }
            | Self::Unknown { .. }
            | Self::ReadOnly { .. }
            | Self::Schema { .. }
            | Self::Forgot { .. }
            | Self::Unfit { .. }
            | Self::Ended { .. } => Err(self),
        }
    }

    /// Whether trying the same again may succeed without anybody doing anything.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TryAgain { .. } | Self::TimedOut { .. } | Self::Unknown { .. } => true,
            Self::StatementTimeout { .. }
            | Self::ReadOnly { .. }
            | Self::Schema { .. }
            | Self::Forgot { .. }
            | Self::Unfit { .. }
            | Self::Ended { .. }
            | Self::Broken { .. } => false,
        }
    }
}

/// Why a batch was rolled back as a verdict on its units: it is halved until the unit at fault stands alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchError {
    /// For a person; kept with the unit. No amounts, no merchant ids.
    pub message: String,
    /// Whether another attempt may succeed. Where not, the unit is set aside at once.
    pub permanent: bool,
}
