//! What `check` asks the store: whether it understands the queries of jobs.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::error::CommandError;
use crate::app;
use crate::config::{Config, ScheduleFile};
use crate::domain::job::{HandlerDefinition, JobDefinition};
use crate::store::{Store, StoreError, UsersStatement};

/// How long the store is waited for.
const REACH_WITHIN: Duration = Duration::from_secs(5);

/// What became of the queries.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Queries {
    /// The store was asked about so many, and understands them.
    Asked { understood: usize },
    /// It was not asked.
    LeftOut { left_out: String },
}

/// A query of a job's, with the table and key that it stands under.
struct Query<'a> {
    job: &'a JobDefinition,
    table: &'static str,
    key: &'static str,
    statement: UsersStatement<'a>,
}

fn queries(jobs: &[JobDefinition]) -> Vec<Query<'_>> {
    let mut found = Vec::new();
    for job in jobs {
        let mut units = |table, query| {
            found.push(Query { job, table, key: "units", statement: UsersStatement::Units(query) });
        };
        match &job.handler {
            HandlerDefinition::Sql(sql) => {
                units("sql", &sql.units);
                let statement = UsersStatement::Settle(&sql.settle);
                found.push(Query { job, table: "sql", key: "settle", statement });
            }
            HandlerDefinition::Http(http) => units("http", &http.units),
            HandlerDefinition::Command(command) => units("command", &command.units),
            HandlerDefinition::Ledger(_) => {}
            #[cfg(feature = "chaos")]
            HandlerDefinition::Probe(_) => {}
        }
    }
    found
}

/// Whether any job has a query.
pub(super) fn are_in(jobs: &[JobDefinition]) -> bool {
    !queries(jobs).is_empty()
}

/// Asks the store about every query. One that it does not understand is an error, all of them in one go.
pub(super) async fn ask(config: &Config, jobs: &[JobDefinition]) -> Result<Queries, CommandError> {
    let queries = queries(jobs);
    if queries.is_empty() {
        return Ok(Queries::Asked { understood: 0 });
    }
    let left_out = |why: String| Ok(Queries::LeftOut { left_out: why });
    let store = match app::store_for_command(config) {
        Ok(store) => store,
        Err(error) => return left_out(error.to_string()),
    };
    let asked = tokio::time::timeout(REACH_WITHIN, ask_all(store.as_ref(), &config.schedule, &queries)).await;
    store.close().await;
    match asked {
        Err(_elapsed) => left_out(format!("the store gave no answer within {REACH_WITHIN:?}")),
        Ok(Err(error)) => left_out(error.to_string()),
        Ok(Ok(wrong)) if wrong.is_empty() => Ok(Queries::Asked { understood: queries.len() }),
        Ok(Ok(wrong)) => Err(CommandError::Unfit(wrong.join("\n"))),
    }
}

async fn ask_all(store: &dyn Store, schedule: &Path, queries: &[Query<'_>]) -> Result<Vec<String>, StoreError> {
    if let Err(error @ (StoreError::Schema { .. } | StoreError::Unreachable { .. })) = store.health().await {
        return Err(error);
    }
    let mut wrong = Vec::new();
    for query in queries {
        if let Some(why) = store.understands(query.statement).await? {
            let name = query.job.name.as_str();
            let place = ScheduleFile::place_of(schedule, name, query.table, query.key);
            let (table, key) = (query.table, query.key);
            wrong.push(format!("{place}: job[{name}].{table}.{key}: the store does not understand it: {why}"));
        }
    }
    Ok(wrong)
}
