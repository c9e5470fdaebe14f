//! What a leader keeps in the store beside settling: jobs, ticks, runs, requests, and what it finds of the terms before.

mod faults;

use bursar::store::{JobChange, JobChangeOutcome, JobRow, RequestKind, Store, TickFate, UnitPick};
use chrono::TimeDelta;

use crate::fence::ground::{actor, claim, job, migrated, mine, open, tenure};

const OPEN: TickFate = TickFate::Open { caught_up: false };
const ALL: UnitPick = UnitPick::Fresh { after: 0, limit: 100 };

fn change(row: &JobRow) -> JobChange {
    JobChange {
        name: row.definition.name.clone(),
        definition: Some(row.definition.clone()),
        expected: Some(row.clone()),
        settled: Vec::new(),
        evaluated_until: row.evaluated_until,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_counts_while_the_stores_clock_is_behind_what_was_evaluated() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    job(tenure.as_ref(), "probe").await;
    database.execute("update bursar.job set evaluated_until = evaluated_until + interval '1 hour'").await;
    let row = mine(tenure.jobs().await).jobs.remove(0);
    let mut edit = change(&row);
    edit.definition.as_mut().expect("a definition").batch.size = 7;
    let JobChangeOutcome::Changed(Some(changed)) = mine(tenure.change_job(edit).await) else { panic!("it is lost") };
    assert_eq!((changed.definition.batch.size, changed.evaluated_until), (7, row.evaluated_until));
    let mut ahead = change(&changed);
    ahead.evaluated_until += TimeDelta::minutes(1);
    let outcome = mine(tenure.change_job(ahead).await);
    assert!(matches!(outcome, JobChangeOutcome::NotYet { .. }), "no further into the future: {outcome:?}");
}

async fn retry(store: &bursar::store::postgres::PgStore, run: i64, keys: &[&str]) -> uuid::Uuid {
    let kind = RequestKind::RetryUnits { run, keys: keys.iter().map(|&key| key.to_owned()).collect() };
    store.request(&kind, &actor(), Some("looked into")).await.expect("filed")
}
