//! Ticks become runs, each once, whoever fires and however often.

use std::time::Duration;

use bursar::domain::JobName;
use bursar::domain::job::{Misfire, ProbeDefinition};
use bursar::store::Store;
use bursar::tenure::Ending;
use chrono::{DateTime, DurationRound, TimeDelta, Utc};

use super::ground::{Ground, NEVER, SOON, job};
use crate::support::eventually;

const EVERY_SECOND: &str = "* * * * * *";

fn units(count: u32) -> ProbeDefinition {
    ProbeDefinition { units: count, ..ProbeDefinition::default() }
}

async fn runs(ground: &Ground, state: &str) -> i64 {
    ground.database.value(&format!("select count(*) from bursar.run where state = '{state}'")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tick_has_one_run_and_none_is_early() {
    let ground = Ground::with(vec![job(EVERY_SECOND, units(3))]).await;
    let claim = ground.lead(1).await;
    eventually(SOON, "five runs are complete", async || (runs(&ground, "complete").await >= 5).then_some(())).await;
    ground.end(&claim, Ending::Planned { drain: Duration::from_secs(10) }).await;
    let gaps: i64 = ground
        .database
        .value(
            "select count(*) from (select tick - lag(tick) over (order by tick) as gap from bursar.run) g
             where gap is distinct from interval '1 second' and gap is not null",
        )
        .await;
    assert_eq!(gaps, 0, "ticks follow one another, none twice, none left out");
    let early: i64 = ground.database.value("select count(*) from bursar.run where opened_at < due_at").await;
    assert_eq!(early, 0);
    let late: Vec<(f64,)> = ground
        .database
        .rows("select extract(epoch from opened_at - due_at)::float8 from bursar.run order by 1 desc limit 1")
        .await;
    assert!(late[0].0 < 1.0, "a tick was {} s late", late[0].0);
    assert_eq!(ground.counter.count("duplicates"), 0);
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ticks_missed_while_nobody_led_are_taken_as_the_policy_says() {
    for (misfire, open, coalesced, skipped) in
        [(Misfire::RunLatest, 1, 4, 0), (Misfire::RunAll, 5, 0, 0), (Misfire::Skip, 0, 0, 5)]
    {
        // The first five minutes of an hour two hours ago: none falls due during the test.
        let hour = hours_ago(2).await;
        let mut missed = job(&hour.format("0 0-4 %-H %-d %-m *").to_string(), units(2));
        missed.timing.misfire = misfire;
        missed.timing.misfire_grace = Duration::from_secs(1);
        let ground = Ground::with(vec![missed]).await;
        let first = ground.lead(1).await;
        eventually(SOON, "the job is in force", async || {
            (ground.database.value::<i64>("select count(*) from bursar.job").await == 1).then_some(())
        })
        .await;
        ground.end(&first, Ending::Abrupt).await;
        // As if nobody had led since the second before the first of them.
        let before = hour - TimeDelta::seconds(1);
        ground.database.execute(&format!("update bursar.job set evaluated_until = '{}'", before.to_rfc3339())).await;
        let second = ground.lead(2).await;
        eventually(SOON, "all runs have ended", async || {
            let ended = runs(&ground, "complete").await;
            let without = runs(&ground, "coalesced").await + runs(&ground, "skipped").await;
            (ended == open && without == coalesced + skipped).then_some(())
        })
        .await;
        assert_eq!(runs(&ground, "coalesced").await, coalesced, "{misfire:?}");
        let disorder: i64 = ground
            .database
            .value(
                "select count(*) from (select finished_at < lag(finished_at) over (order by tick) as wrong
                 from bursar.run where state = 'complete') o where wrong",
            )
            .await;
        assert_eq!(disorder, 0, "caught-up runs go one at a time, oldest first");
        ground.end(&second, Ending::Abrupt).await;
        ground.leave().await;
    }
}

/// The beginning of an hour, by the shared server's clock.
async fn hours_ago(hours: i64) -> DateTime<Utc> {
    let store = super::ground::open(&super::ground::migrated().await.url());
    let now = store.now().await.expect("an answer");
    store.close().await;
    now.duration_trunc(TimeDelta::hours(1)).expect("in range") - TimeDelta::hours(hours)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_adds_changes_and_removes_jobs_and_fires_nothing_in_the_past() {
    let ground = Ground::with(vec![job(NEVER, units(1))]).await;
    let claim = ground.lead(1).await;
    let in_force = async || -> Vec<(String,)> {
        ground.database.rows("select definition #>> '{timing,cron}' from bursar.job where removed_at is null").await
    };
    eventually(SOON, "the job is in force", async || (in_force().await.len() == 1).then_some(())).await;
    // Earlier on every day of the year: all of its ticks up to now lie in the past.
    ground.edit(vec![job("0 0 0 * * *", units(1))]);
    eventually(SOON, "the edit is in force", async || {
        (in_force().await == [("0 0 0 * * *".to_owned(),)]).then_some(())
    })
    .await;
    let opened: i64 = ground
        .database
        .value("select count(*) from bursar.run where state not in ('skipped', 'coalesced', 'missed')")
        .await;
    assert_eq!(opened, 0);
    let mut other = job(NEVER, units(1));
    other.name = JobName::new("other").expect("a name");
    ground.edit(vec![other]);
    eventually(SOON, "the job is gone", async || (in_force().await == [(NEVER.to_owned(),)]).then_some(())).await;
    // As where the schedule's file is missing at a start.
    ground.edit(vec![]);
    ground.edit(vec![job(EVERY_SECOND, units(1))]);
    eventually(SOON, "it came back", async || (runs(&ground, "complete").await >= 1).then_some(())).await;
    ground.end(&claim, Ending::Abrupt).await;
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_that_cannot_be_recorded_keeps_back_no_other_of_its_instant() {
    // Enough for two transactions.
    const TOGETHER: i64 = 520;
    let hour = hours_ago(2).await;
    let jobs = (0..TOGETHER).map(|n| {
        let mut due = job(&hour.format("0 0 %-H %-d %-m *").to_string(), units(1));
        due.name = JobName::new(format!("job-{n}")).expect("a name");
        due.timing.misfire = Misfire::Skip;
        due.timing.misfire_grace = Duration::from_secs(1);
        due
    });
    let ground = Ground::with(jobs.collect()).await;
    let first = ground.lead(1).await;
    let there = "select count(*) from bursar.job";
    eventually(SOON, "the jobs are in force", async || {
        (ground.database.value::<i64>(there).await == TOGETHER).then_some(())
    })
    .await;
    ground.end(&first, Ending::Abrupt).await;
    let before = (hour - TimeDelta::seconds(1)).to_rfc3339();
    ground
        .database
        .execute(&format!(
            "update bursar.job set evaluated_until = '{before}';
             create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
             create trigger refuses before insert on bursar.run for each row when (new.job = 'job-7') execute function refuse()"
        ))
        .await;
    let second = ground.lead(2).await;
    let recorded = "select count(*) from bursar.run where state = 'skipped'";
    let are_recorded = async |count: i64| {
        eventually(SOON, "ticks are recorded", async || {
            (ground.database.value::<i64>(recorded).await == count).then_some(())
        })
        .await;
    };
    are_recorded(TOGETHER - 1).await;
    let kept = format!("select count(*) from bursar.job where evaluated_until = '{before}' and name = 'job-7'");
    assert_eq!(ground.database.value::<i64>(&kept).await, 1, "its tick is owed");
    let twice = "select count(*) from (select from bursar.run group by job having count(*) > 1) d";
    assert_eq!(ground.database.value::<i64>(twice).await, 0);
    ground.database.execute("drop trigger refuses on bursar.run").await;
    are_recorded(TOGETHER).await;
    assert_eq!(ground.counter.count("tick skipped"), TOGETHER);
    assert_eq!(ground.counter.count("duplicates"), 0);
    ground.end(&second, Ending::Planned { drain: Duration::from_secs(10) }).await;
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jobs_row_that_somebody_holds_keeps_back_no_other_job() {
    let named = |name: &str| {
        let mut every = job(EVERY_SECOND, units(1));
        every.name = JobName::new(name).expect("a name");
        every
    };
    let ground = Ground::with(vec![named("free"), named("held")]).await;
    let claim = ground.lead(1).await;
    let of = async |name: &str| {
        ground.database.value::<i64>(&format!("select count(*) from bursar.run where job = '{name}'")).await
    };
    let reaches = async |name: &str, count: i64| {
        eventually(SOON, "runs are opened", async || (of(name).await >= count).then_some(())).await;
    };
    reaches("held", 1).await;
    let mut holder = ground.database.connect().await;
    let hold = "begin; select from bursar.job where name = 'held' for update";
    sqlx::raw_sql(hold).execute(&mut holder).await.expect("the row is held");
    let (before, free) = (of("held").await, of("free").await);
    reaches("free", free + 3).await;
    assert_eq!(of("held").await, before, "its ticks are owed");
    sqlx::raw_sql("commit").execute(&mut holder).await.expect("let go");
    reaches("held", before + 3).await;
    ground.end(&claim, Ending::Planned { drain: Duration::from_secs(10) }).await;
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_that_cannot_be_recorded_keeps_back_no_other() {
    let hour = hours_ago(2).await;
    let jobs = ["first", "second"].map(|name| {
        // Sixty ticks, an hour and more ago.
        let mut late = job(&hour.format("* %-H %-d %-m *").to_string(), units(1));
        late.name = JobName::new(name).expect("a name");
        late.timing.misfire = Misfire::Skip;
        late
    });
    let ground = Ground::with(jobs.to_vec()).await;
    let first = ground.lead(1).await;
    eventually(SOON, "the jobs are in force", async || {
        (ground.database.value::<i64>("select count(*) from bursar.job").await == 2).then_some(())
    })
    .await;
    ground.end(&first, Ending::Abrupt).await;
    let before = (hour - TimeDelta::seconds(1)).to_rfc3339();
    ground
        .database
        .execute(&format!(
            "update bursar.job set evaluated_until = '{before}';
             create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
             create trigger refuses before insert on bursar.run for each row
                when (new.job = 'first') execute function refuse()"
        ))
        .await;
    let second = ground.lead(2).await;
    eventually(SOON, "the other is recorded", async || (runs(&ground, "skipped").await == 60).then_some(())).await;
    ground.database.execute("drop trigger refuses on bursar.run").await;
    eventually(SOON, "so is this one", async || (runs(&ground, "skipped").await == 120).then_some(())).await;
    ground.end(&second, Ending::Planned { drain: Duration::from_secs(10) }).await;
    ground.leave().await;
}
