//! Once all faults are over: what is left is finished within a bounded time, by the replicas and by what an operator does.

use std::collections::BTreeMap;
use std::time::Duration;

use bursar::clock::boottime;
use chrono::{DateTime, Utc};
use serde_json::json;

use super::ground::{Ground, command};
use super::history::{History, millis};

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(500);
/// The longest that a look at the database may take.
const ASK: Duration = Duration::from_secs(20);

/// What must be so in the end, each as the number of what is not: `LAST` stands for the last run that counts.
const OPEN: [(&str, &str); 5] = [
    (
        "entries of the feed are in no unit",
        "select count(*) from bursar.entry where unit_id is null and source <> 'bursar'",
    ),
    ("jobs have not been looked at since", "select count(*) from bursar.job where evaluated_until < 'HEALED'"),
    ("elections are halted", "select count(*) from bursar.fence where halted_at is not null"),
    ("runs are open", "select count(*) from bursar.run where state in ('planning', 'open') and id <= LAST"),
    (
        "instructions are not final, nor held",
        // Those of the job that leaves its payouts in the store are for others to take.
        "select count(*) from bursar.instruction i join bursar.job j on j.id = i.job_id
          where i.state in ('pending', 'sending', 'unknown') and i.run_id <= LAST and j.name <> 'keeps'",
    ),
];

/// What quiet has come to.
#[derive(Debug, Default)]
pub struct Quiet {
    /// The last run that counts; later ones may be under way.
    pub last_run: i64,
    /// Units that were set aside by then, by their error, and tried again.
    pub set_aside: BTreeMap<String, i64>,
    /// What was not finished in time.
    pub unfinished: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

/// Waits until all is done that is to be done, at most so long.
pub async fn settle(ground: &Ground, history: &History, within: Duration) -> Quiet {
    let (begun, mut quiet) = (boottime(), Quiet::default());
    let healed: DateTime<Utc> = loop {
        if let Some(now) = one(ground, "select clock_timestamp()").await {
            break now;
        }
        if boottime().since(begun) > within {
            quiet.unfinished.push("the store answers nothing".to_owned());
            return quiet;
        }
        tokio::time::sleep(LOOK).await;
    };
    retry_what_was_set_aside(ground, history, &mut quiet).await;
    loop {
        let left = unfinished(ground, &mut quiet, &healed.to_rfc3339()).await;
        quiet.took = boottime().since(begun);
        if left.is_empty() || quiet.took > within {
            quiet.unfinished = left;
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    history.note("quiet", json!({ "took_ms": millis(quiet.took), "unfinished": quiet.unfinished }));
    quiet
}

/// As an operator does who has read why.
async fn retry_what_was_set_aside(ground: &Ground, history: &History, quiet: &mut Quiet) {
    let query = "select run_id, coalesce(last_error, 'no reason'), count(*) from bursar.unit where state = 'set_aside' group by 1, 2";
    let asked = tokio::time::timeout(ASK, ground.cluster.database().try_rows::<(i64, String, i64)>(query)).await;
    let found = asked.ok().and_then(Result::ok).unwrap_or_default();
    let mut runs: Vec<i64> = found.iter().map(|(run, _, _)| *run).collect();
    runs.sort_unstable();
    runs.dedup();
    for (_, error, count) in found {
        *quiet.set_aside.entry(error).or_default() += count;
    }
    for run in runs {
        let id = run.to_string();
        let args = ["units", "retry", &id, "--all", "--reason", "the faults are over"];
        let (code, said) = command(&ground.operator, &args);
        history.note("retry", json!({ "run": run, "exit": code, "said": said }));
    }
}

async fn unfinished(ground: &Ground, quiet: &mut Quiet, healed: &str) -> Vec<String> {
    let mut left = Vec::new();
    if ground.cluster.leader().await.is_none() {
        left.push("nobody leads".to_owned());
    }
    for (what, query) in OPEN {
        // The last run that counts is the last one that was opened while something before it was not done.
        if query.contains("LAST") && quiet.last_run == 0 {
            if !left.is_empty() {
                break;
            }
            quiet.last_run = one(ground, "select coalesce(max(id), 0) from bursar.run").await.unwrap_or(0);
        }
        let query = query.replace("LAST", &quiet.last_run.to_string()).replace("HEALED", healed);
        match one::<i64>(ground, &query).await {
            Some(0) => {}
            Some(count) => left.push(format!("{count} {what}")),
            None => left.push(format!("the store does not say how many {what}")),
        }
    }
    left
}

/// The one value of a query, where the store answers in time.
async fn one<T>(ground: &Ground, query: &str) -> Option<T>
where
    T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
{
    let asked = tokio::time::timeout(ASK, ground.cluster.database().try_rows::<(T,)>(query)).await;
    asked.ok().and_then(Result::ok)?.into_iter().next().map(|(value,)| value)
}
