//! Putting a claim in force: who wins, what is ended for it, and how long it takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bursar::clock;
use bursar::store::{AdvanceOutcome, Store};
use futures_util::StreamExt;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};

use super::ground::{BOUND, accepted, claim, enter, entered, leader, lives, migrated, open, waiting_for_locks};
use crate::support::eventually;

/// A takeover's share for the fence: ending sessions takes 10 to 30 ms on a quiet machine.
const ENDED_WITHIN: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn of_two_leaders_at_one_term_exactly_one_is_accepted() {
    let database = migrated().await;
    let (here, there) = (open(&database.url()), open(&database.url()));
    for term in 1..=10 {
        let (one, two) = (claim(term), claim(term));
        let leader = leader();
        let (first, second) = tokio::join!(here.advance(&one, &leader, BOUND), there.advance(&two, &leader, BOUND));
        let outcomes = [first.expect("an answer"), second.expect("an answer")];
        let won = outcomes.iter().filter(|outcome| matches!(outcome, AdvanceOutcome::Accepted { .. })).count();
        assert_eq!(won, 1, "{outcomes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_idle_in_its_transaction_is_ended() {
    let database = migrated().await;
    let store = open(&database.url());
    let old = claim(1);
    accepted(&store, &old).await;
    let mut holder = entered(&database, &old).await;
    let began = clock::boottime();
    accepted(&store, &claim(2)).await;
    let took = clock::boottime().since(began);
    assert!(took < ENDED_WITHIN, "{took:?}");
    assert!(!lives(&mut holder).await, "the old session is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_in_a_statement_is_ended() {
    let database = migrated().await;
    let store = open(&database.url());
    let old = claim(1);
    accepted(&store, &old).await;
    let mut holder = entered(&database, &old).await;
    let next = claim(2);
    let (statement, ()) = tokio::join!(
        async { sqlx::raw_sql("select pg_sleep(60)").execute(&mut holder).await.map(|_| ()) },
        accepted(&store, &next)
    );
    assert!(statement.is_err(), "its statement was broken off");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_does_not_read_what_it_asked_for_is_ended() {
    let database = migrated().await;
    let store = open(&database.url());
    let old = claim(1);
    accepted(&store, &old).await;
    let mut holder = entered(&database, &old).await;
    // More rows than fit into the buffers between: the server waits for a client that reads no further.
    let mut rows = sqlx::raw_sql("select repeat('x', 1000) from generate_series(1, 1000000)").fetch(&mut holder);
    assert!(rows.next().await.expect("a row").is_ok());
    eventually(Duration::from_secs(10), "the server waits for its client", async || {
        let waiting: Vec<(i64,)> = database
            .rows("select count(*) from pg_stat_activity where wait_event = 'ClientWrite' and datname = current_database()")
            .await;
        (waiting == [(1,)]).then_some(())
    })
    .await;
    let began = clock::boottime();
    accepted(&store, &claim(2)).await;
    let took = clock::boottime().since(began);
    assert!(took < ENDED_WITHIN, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exclusive_holder_is_ended_only_after_a_second() {
    let database = migrated().await;
    let store = open(&database.url());
    accepted(&store, &claim(1)).await;
    let mut operator = database.connect().await;
    sqlx::raw_sql("begin; select pg_advisory_xact_lock(bursar.gate('settlement'))")
        .execute(&mut operator)
        .await
        .expect("the lock is free");
    let began = clock::boottime();
    accepted(&store, &claim(2)).await;
    let took = clock::boottime().since(began);
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(5), "{took:?}");
    assert!(!lives(&mut operator).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_of_another_role_is_named_and_keeps_no_other_from_being_ended() {
    let database = migrated().await;
    let store = open(&database.url());
    let old = claim(1);
    accepted(&store, &old).await;
    let mut stranger = holding(&database.as_second_role().await, "pg_advisory_xact_lock_shared").await;
    let mut holder = entered(&database, &old).await;
    let pid: i32 =
        sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut stranger).await.expect("it is in its transaction");
    let error = store.advance(&claim(2), &leader(), Duration::from_secs(1)).await.expect_err("the lock is kept");
    let error = error.to_string();
    assert!(error.contains("second_eyes") && error.contains(&format!("pid {pid} ")), "{error}");
    assert!(!lives(&mut holder).await, "the old leader's session is gone");
    assert!(lives(&mut stranger).await, "the other role's is not ours to end");
    sqlx::raw_sql("rollback").execute(&mut stranger).await.expect("it lives");
    accepted(&store, &claim(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_signal_ends_the_holders_of_other_roles() {
    let database = migrated().await;
    let store = open(&database.as_signalling_role().await);
    let second = database.as_second_role().await;
    accepted(&store, &claim(1)).await;
    for (term, lock) in [(2, "pg_advisory_xact_lock_shared"), (3, "pg_advisory_xact_lock")] {
        let mut operator = holding(&second, lock).await;
        accepted(&store, &claim(term)).await;
        assert!(!lives(&mut operator).await, "{lock}");
    }
}

/// A session of that address that holds the gate, as an operator's command that stands still would.
async fn holding(url: &str, lock: &str) -> PgConnection {
    let mut operator = PgConnection::connect(url).await.expect("the server answers");
    let statement = format!("begin; select {lock}(bursar.gate('settlement'))");
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut operator).await.expect("the lock is free");
    operator
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_is_never_ended_and_then_finds_itself_fenced() {
    let database = migrated().await;
    let store = open(&database.url());
    let old = claim(1);
    accepted(&store, &old).await;
    // An operator holds the gate; behind it waits an advance and, behind that, the old term.
    let mut operator = database.connect().await;
    sqlx::raw_sql("begin; select pg_advisory_xact_lock(bursar.gate('settlement'))")
        .execute(&mut operator)
        .await
        .expect("the lock is free");
    let mut waiter = database.connect().await;
    sqlx::raw_sql("begin isolation level read committed").execute(&mut waiter).await.expect("begin");
    let next = claim(2);
    let (outcome, (), ()) = tokio::join!(
        async {
            waiting_for_locks(&database, 1).await;
            enter(&mut waiter, &old).await
        },
        accepted(&store, &next),
        async {
            waiting_for_locks(&database, 2).await;
            // On a busy machine its second may be over, and the advance has ended it.
            let _ended = sqlx::raw_sql("commit").execute(&mut operator).await;
        }
    );
    assert_eq!(outcome.expect("a waiter is never ended"), "fenced");
    assert!(lives(&mut waiter).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_share_lockers_in_a_loop_do_not_starve_an_advance() {
    let database = migrated().await;
    let store = open(&database.url());
    let old = claim(1);
    accepted(&store, &old).await;
    let stop = Arc::new(AtomicBool::new(false));
    let (entries, fenced) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut lockers = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (database, old) = (database.clone(), old.clone());
        let (stop, entries, fenced) = (Arc::clone(&stop), Arc::clone(&entries), Arc::clone(&fenced));
        lockers.spawn(async move {
            let mut connection = database.connect().await;
            while !stop.load(Ordering::SeqCst) {
                let round = async {
                    sqlx::raw_sql("begin isolation level read committed").execute(&mut connection).await?;
                    let outcome = enter(&mut connection, &old).await?;
                    entries.fetch_add(1, Ordering::SeqCst);
                    fenced.fetch_add(u64::from(outcome == "fenced"), Ordering::SeqCst);
                    sqlx::raw_sql("select pg_sleep(0.05); commit").execute(&mut connection).await
                };
                if round.await.is_err() {
                    // Ended by the advance: a stale replica would come back.
                    connection = database.connect().await;
                }
            }
            connection.close().await.ok();
        });
    }
    eventually(Duration::from_secs(10), "all lockers are at it", async || {
        (entries.load(Ordering::SeqCst) > 64).then_some(())
    })
    .await;
    for term in 2..=6 {
        let began = clock::boottime();
        accepted(&store, &claim(term)).await;
        let took = clock::boottime().since(began);
        assert!(took < ENDED_WITHIN, "term {term}: {took:?}");
    }
    eventually(Duration::from_secs(10), "the lockers are refused", async || {
        (fenced.load(Ordering::SeqCst) > 16).then_some(())
    })
    .await;
    stop.store(true, Ordering::SeqCst);
    while lockers.join_next().await.is_some() {}
}
