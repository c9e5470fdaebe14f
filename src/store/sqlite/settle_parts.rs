//! One statement of what a batch writes, with its values and how many rows it must change.

use sqlx::Sqlite;
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;

/// A value of a statement.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// A number.
    Number(i64),
    /// A text, also a list of rows as JSON.
    Text(String),
    /// A text that may be missing.
    MaybeText(Option<String>),
}

impl Value {
    /// Binds it next.
    pub(super) fn bind<'q>(&'q self, query: Query<'q, Sqlite, SqliteArguments>) -> Query<'q, Sqlite, SqliteArguments> {
        match self {
            Self::Number(number) => query.bind(*number),
            Self::Text(text) => query.bind(text.as_str()),
            Self::MaybeText(text) => query.bind(text.as_deref()),
        }
    }
}

/// One statement of a batch.
#[derive(Debug)]
pub(super) struct Part {
    /// What it writes, for a person.
    pub(super) what: &'static str,
    pub(super) statement: &'static str,
    pub(super) values: Vec<Value>,
    /// The rows that it must change; 0: it is not run.
    pub(super) expected: u64,
}
