//! Interleavings of a stale transaction with an advance, built step by step on the server: each was seen to let a stale
//! write in under some weaker fence.

use std::time::Duration;

use bursar::store::{AdvanceOutcome, Entered, FenceHolder, SettleOutcome, Store, UnitPick};
use sqlx::Row;

use super::ground::{
    BOUND, accepted, claim, enter, entered, leader, mark, migrated, mine, open, planned, state_of, tenure,
    waiting_for_locks,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_batch_that_waits_on_a_units_row_commits_nothing() {
    let database = migrated().await;
    let store = open(&database.url());
    let old = claim(1);
    let stale = tenure(&store, &old).await;
    let run = planned(stale.as_ref(), "probe", &["a", "b", "c"]).await;
    let units: Vec<(i64,)> = database.rows("select id from bursar.unit order by id").await;
    let mut foreign = database.connect().await;
    sqlx::raw_sql("begin; select id from bursar.unit where key = 'b' for update")
        .execute(&mut foreign)
        .await
        .expect("the row is free");
    let pick = UnitPick::Exactly(units.iter().map(|unit| unit.0).collect());
    let next = claim(2);
    let effect = mark();
    let (settled, ()) = tokio::join!(stale.settle(&run, pick, &effect), async {
        waiting_for_locks(&database, 1).await;
        accepted(&store, &next).await;
        sqlx::raw_sql("commit").execute(&mut foreign).await.expect("commit");
    });
    assert!(!matches!(settled, Ok(Entered::Mine(SettleOutcome::Settled(_)))), "{settled:?}");
    let states: Vec<(String, i64)> = database.rows("select state, count(*) from bursar.unit group by state").await;
    assert_eq!(states, [("pending".to_owned(), 3)]);
    let found = FenceHolder { term: next.term, tenure_id: next.tenure_id };
    let again = stale.settle(&run, UnitPick::Fresh { after: 0, limit: 10 }, &effect).await;
    assert_eq!(again, Ok(Entered::Fenced(Some(found))));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_advance_waits_for_a_holder_that_it_may_not_end_and_sees_all_that_it_wrote() {
    let database = migrated().await;
    let store = open(&database.url());
    let old = claim(1);
    accepted(&store, &old).await;
    // A superuser's session cannot be ended by the product's role.
    let mut holder =
        <sqlx::PgConnection as sqlx::Connection>::connect(&database.superuser_url()).await.expect("answers");
    sqlx::raw_sql("begin isolation level read committed").execute(&mut holder).await.expect("begin");
    assert_eq!(enter(&mut holder, &old).await.expect("an answer"), "mine");
    let short = store.advance(&claim(2), &leader(), Duration::from_millis(500)).await;
    assert!(short.is_err(), "the gate is held: {short:?}");
    let next = claim(3);
    let leader = leader();
    let (outcome, written) = tokio::join!(store.advance(&next, &leader, BOUND), async {
        waiting_for_locks(&database, 1).await;
        let xact: String = sqlx::query("select pg_current_xact_id()::text as xact")
            .fetch_one(&mut holder)
            .await
            .expect("an answer")
            .get("xact");
        sqlx::raw_sql("commit").execute(&mut holder).await.expect("commit");
        xact
    });
    assert_eq!(outcome, Ok(AdvanceOutcome::Accepted { halt: None }));
    let visible: Vec<(bool,)> = database
        .rows(&format!(
            "select pg_visible_in_snapshot('{written}'::xid8, snapshot) from bursar.term_history where term = 3"
        ))
        .await;
    assert_eq!(visible, [(true,)], "the history's snapshot was taken after the lock");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_to_a_savepoint_after_entering_keeps_the_gate() {
    let database = migrated().await;
    let store = open(&database.url());
    let old = claim(1);
    accepted(&store, &old).await;
    let held =
        "select count(*) as held from pg_locks where locktype = 'advisory' and granted and pid = pg_backend_pid()";
    let mut before = entered(&database, &old).await;
    sqlx::raw_sql("savepoint s; select 1; rollback to savepoint s").execute(&mut before).await.expect("a savepoint");
    let count: i64 = sqlx::query(held).fetch_one(&mut before).await.expect("an answer").get("held");
    assert_eq!(count, 1, "entered before the savepoint: kept");
    // Why every transaction enters first: taken after the savepoint, the gate is given back by the rollback to it.
    let mut after = database.connect().await;
    sqlx::raw_sql("begin isolation level read committed; savepoint s").execute(&mut after).await.expect("begin");
    assert_eq!(enter(&mut after, &old).await.expect("an answer"), "mine");
    sqlx::raw_sql("rollback to savepoint s").execute(&mut after).await.expect("a rollback");
    let count: i64 = sqlx::query(held).fetch_one(&mut after).await.expect("an answer").get("held");
    assert_eq!(count, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn under_repeatable_read_as_the_roles_default_a_transaction_that_waited_is_still_fenced() {
    let database = migrated().await;
    database
        .execute(&format!(
            "alter role bursar in database {} set default_transaction_isolation = 'repeatable read'",
            database.name()
        ))
        .await;
    let store = open(&database.url());
    let (old, next) = (claim(1), claim(2));
    let stale = tenure(&store, &old).await;
    mine(stale.pulse().await);
    // Without saying READ COMMITTED the entering function refuses: its read after the lock would be the one before it.
    let mut raw = database.connect().await;
    sqlx::raw_sql("begin").execute(&mut raw).await.expect("begin");
    assert_eq!(state_of(&enter(&mut raw, &old).await.expect_err("refused")), "BU002");
    // The old term begins, waits for the gate, and meanwhile the fence moves on.
    let mut advance = database.connect().await;
    sqlx::raw_sql("begin isolation level read committed; select pg_advisory_xact_lock(bursar.gate('settlement'))")
        .execute(&mut advance)
        .await
        .expect("the lock is free");
    let (answer, ()) = tokio::join!(stale.pulse(), async {
        waiting_for_locks(&database, 1).await;
        sqlx::query("update bursar.fence set term = 2, tenure_id = $1")
            .bind(next.tenure_id.0)
            .execute(&mut advance)
            .await
            .expect("a higher term");
        sqlx::raw_sql("commit").execute(&mut advance).await.expect("commit");
    });
    assert_eq!(answer, Ok(Entered::Fenced(Some(FenceHolder { term: next.term, tenure_id: next.tenure_id }))));
}
