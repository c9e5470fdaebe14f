//! A COMMIT whose answer does not come: unknown, never taken for done or undone, and safe to repeat.

use std::time::Duration;

use bursar::store::{BatchCounts, Entered, SettleOutcome, StoreError, TickFate, TicksOutcome, TicksRecord, UnitPick};
use chrono::{DateTime, Utc};

use super::ground::{claim, job, mark, migrated, migrated_on, mine, open, planned, tenure, tick};
use crate::support::{Database, Postgres, Proxy, eventually};

const ALL: UnitPick = UnitPick::Fresh { after: 0, limit: 100 };

/// Makes every commit of a batch last a while on the server.
async fn slow_commits(database: &Database) {
    database
        .execute(
            "create function public.slow() returns trigger language plpgsql as $$
               begin perform pg_sleep(1); return null; end $$;
             create constraint trigger slow after insert on bursar.batch deferrable initially deferred
               for each row execute function public.slow()",
        )
        .await;
}

async fn committing(database: &Database) {
    eventually(Duration::from_secs(10), "a session commits", async || {
        let sleeping: i64 = database
            .value(
                "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()",
            )
            .await;
        (sleeping == 1).then_some(())
    })
    .await;
}

async fn settled_units(database: &Database) -> (i64, i64) {
    database
        .rows::<(i64, i64)>(
            "select count(*) filter (where state = 'settled'), (select count(*) from bursar.batch) from bursar.unit",
        )
        .await[0]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_happened_and_was_not_answered_is_unknown_and_repeating_it_finds_nothing_to_do() {
    let database = migrated().await;
    let proxy = Proxy::to(database.port());
    let store = open(&database.url_through(proxy.port()));
    let tenure = tenure(&store, &claim(1)).await;
    let run = planned(tenure.as_ref(), "probe", &["a", "b", "c"]).await;
    slow_commits(&database).await;
    let effect = mark();
    let (answer, ()) = tokio::join!(tenure.settle(&run, ALL, &effect), async {
        committing(&database).await;
        proxy.cut_answers();
        eventually(Duration::from_secs(10), "the commit is through", async || {
            (settled_units(&database).await == (3, 1)).then_some(())
        })
        .await;
        proxy.reset();
        proxy.heal();
    });
    assert!(matches!(answer, Err(StoreError::Unknown { operation: "settle", .. })), "{answer:?}");
    assert_eq!(mine(tenure.settle(&run, ALL, &effect).await), SettleOutcome::Nothing);
    assert_eq!(settled_units(&database).await, (3, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_under_way_whose_session_is_lost_is_unknown_and_final_before_it_is_said() {
    let database = migrated().await;
    let proxy = Proxy::to(database.port());
    let store = open(&database.url_through(proxy.port()));
    let tenure = tenure(&store, &claim(1)).await;
    let run = planned(tenure.as_ref(), "probe", &["a", "b", "c"]).await;
    slow_commits(&database).await;
    let effect = mark();
    let (answer, ()) = tokio::join!(tenure.settle(&run, ALL, &effect), async {
        committing(&database).await;
        proxy.reset();
    });
    assert!(matches!(answer, Err(StoreError::Unknown { .. })), "{answer:?}");
    let found = settled_units(&database).await;
    assert!(found == (0, 0) || found == (3, 1), "{found:?}");
    let repeated = tenure.settle(&run, ALL, &effect).await;
    let nothing = Ok(Entered::Mine(SettleOutcome::Nothing));
    let all = matches!(&repeated, Ok(Entered::Mine(SettleOutcome::Settled(BatchCounts { settled: 3, .. }))));
    assert!(if found.0 == 0 { all } else { repeated == nothing }, "{found:?}: {repeated:?}");
    assert_eq!(settled_units(&database).await, (3, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_the_server_refuses_is_not_unknown() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let run = planned(tenure.as_ref(), "probe", &["a"]).await;
    database
        .execute(
            "create function public.refuse() returns trigger language plpgsql as $$
               begin raise exception 'no' using errcode = '40001'; end $$;
             create constraint trigger refuse after insert on bursar.batch deferrable initially deferred
               for each row execute function public.refuse()",
        )
        .await;
    let answer = tenure.settle(&run, ALL, &mark()).await;
    assert!(matches!(&answer, Err(StoreError::TryAgain { code, .. }) if code == "40001"), "{answer:?}");
    database.execute("drop trigger refuse on bursar.batch").await;
    assert!(matches!(mine(tenure.settle(&run, ALL, &mark()).await), SettleOutcome::Settled(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_is_where_it_was_when_the_run_of_its_tick_could_not_be_written() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let job = job(tenure.as_ref(), "probe").await;
    let marked = "select evaluated_until from bursar.job";
    let before: DateTime<Utc> = database.value(marked).await;
    database
        .execute(
            "create function public.refuse() returns trigger language plpgsql as $$
               begin raise exception 'no' using errcode = '40001'; end $$;
             create trigger refuse before insert on bursar.run for each row execute function public.refuse()",
        )
        .await;
    let due = job.evaluated_until;
    let ticks = vec![tick(due, TickFate::Open { caught_up: false })];
    let record = TicksRecord { evaluated_until: due, ticks, job };
    let refused = tenure.record_ticks(record.clone()).await;
    assert!(matches!(&refused, Err(StoreError::TryAgain { code, .. }) if code == "40001"), "{refused:?}");
    assert_eq!(database.value::<DateTime<Utc>>(marked).await, before, "the tick would never be looked at again");
    database.execute("drop trigger refuse on bursar.run").await;
    let recorded = mine(tenure.record_ticks(record).await);
    assert!(matches!(&recorded, TicksOutcome::Recorded { opened, duplicates: 0 } if opened.len() == 1), "{recorded:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_succeeds_with_a_warning_is_unknown() {
    let server = Postgres::start();
    let database = migrated_on(&server).await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let run = planned(tenure.as_ref(), "probe", &["a"]).await;
    // A synchronous standby that is not there: COMMIT waits for it, and a cancel makes it succeed with a warning.
    server.psql("alter system set synchronous_standby_names = 'nobody'");
    server.psql("select pg_reload_conf()");
    // Whether commits wait is the checkpointer's to say: with its answer it has read the new settings.
    server.psql("checkpoint");
    let effect = mark();
    let (answer, ()) = tokio::join!(tenure.settle(&run, ALL, &effect), async {
        eventually(Duration::from_secs(20), "COMMIT waits for its standby", async || {
            let cancelled: i64 = database
                .value("select count(pg_cancel_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep'")
                .await;
            (cancelled == 1).then_some(())
        })
        .await;
    });
    assert!(
        matches!(&answer, Err(StoreError::Unknown { detail, .. }) if detail.contains("synchronous replication")),
        "{answer:?}"
    );
    assert_eq!(settled_units(&database).await, (1, 1));
}
