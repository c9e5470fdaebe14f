//! Statements of a user's, as a schedule has them.

/// A statement of a job's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsersStatement<'a> {
    /// The query for units: columns `key` and `payload`.
    Units(&'a str),
    /// What settles a batch of the handler `sql`, over `bursar_batch`.
    Settle(&'a str),
}
