//! The database's own guards: they hold whoever writes, also past the product.

use bursar::domain::Claim;
use sqlx::AssertSqlSafe;

use super::ground::{accepted, claim, mark, migrated, mine, open, planned, state_of, tenure};
use crate::support::Database;

/// What a statement of the product's role is refused with.
async fn refusal(database: &Database, statement: &str) -> String {
    let mut connection = database.connect().await;
    let outcome = sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await;
    state_of(&outcome.map(|_| ()).expect_err(statement))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fence_is_never_lowered_or_deleted() {
    let database = migrated().await;
    let store = open(&database.url());
    accepted(&store, &claim(5)).await;
    for statement in [
        "update bursar.fence set term = 4",
        "update bursar.fence set tenure_id = gen_random_uuid()",
        "update bursar.fence set election = 'other'",
        "delete from bursar.fence",
        "truncate bursar.fence",
    ] {
        assert_eq!(refusal(&database, statement).await, "BU001", "{statement}");
    }
    let terms: Vec<(i64,)> = database.rows("select term from bursar.fence").await;
    assert_eq!(terms, [(5,)]);
}

async fn settled(database: &Database) -> Claim {
    let store = open(&database.url());
    let old = claim(1);
    let tenure = tenure(&store, &old).await;
    let run = planned(tenure.as_ref(), "probe", &["a", "b"]).await;
    mine(tenure.settle(&run, bursar::store::UnitPick::Fresh { after: 0, limit: 1 }, &mark()).await);
    accepted(&store, &claim(2)).await;
    old
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_insert_into_journal_or_instruction_is_refused() {
    let database = migrated().await;
    settled(&database).await;
    let journal = "insert into bursar.journal (unit_id, run_id, kind, election, term) \
                   select id, run_id, 'settle', 'settlement', TERM from bursar.unit where key = 'b'";
    let instruction = "insert into bursar.instruction (unit_id, run_id, job_id, election, kind, idempotency_key, body, term) \
                       select u.id, u.run_id, r.job_id, 'settlement', 'call', 'k', '', TERM \
                         from bursar.unit u join bursar.run r on r.id = u.run_id where u.key = 'b'";
    for statement in [journal, instruction] {
        for term in ["1", "3"] {
            assert_eq!(refusal(&database, &statement.replace("TERM", term)).await, "BU003", "term {term}: {statement}");
        }
        let mut connection = database.connect().await;
        sqlx::raw_sql(AssertSqlSafe(statement.replace("TERM", "2")))
            .execute(&mut connection)
            .await
            .expect("the term in force may");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_never_changed() {
    let database = migrated().await;
    settled(&database).await;
    database
        .execute(
            "insert into bursar.journal (unit_id, run_id, kind, election, term)
               select id, run_id, 'settle', 'settlement', 2 from bursar.unit where key = 'b';
             insert into bursar.posting select id, 1, 'payable', 'm', 'fees', '', 'EUR', 5 from bursar.journal;
             insert into bursar.instruction (unit_id, run_id, job_id, election, kind, idempotency_key, body, term, in_doubt)
               select u.id, u.run_id, r.job_id, 'settlement', 'call', 'k', '', 2, true
                 from bursar.unit u join bursar.run r on r.id = u.run_id where u.key = 'b'",
        )
        .await;
    for statement in [
        "update bursar.journal set term = 1",
        "delete from bursar.journal",
        "truncate bursar.journal cascade",
        "update bursar.posting set amount = 6",
        "delete from bursar.posting",
        "truncate bursar.posting",
        "update bursar.instruction set body = 'x'",
        "update bursar.instruction set idempotency_key = 'x'",
        "update bursar.instruction set in_doubt = false",
        "delete from bursar.instruction",
        "truncate bursar.instruction cascade",
        "delete from bursar.entry where false; truncate bursar.entry cascade",
        "truncate bursar.term_history",
        "delete from bursar.term_history",
    ] {
        assert_eq!(refusal(&database, statement).await, "BU004", "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn others_can_hold_their_own_writes_to_the_term() {
    let database = migrated().await;
    let store = open(&database.url());
    accepted(&store, &claim(4)).await;
    assert_eq!(refusal(&database, "select bursar.assert_term('settlement', 3)").await, "BU003");
    assert_eq!(refusal(&database, "select bursar.assert_term('unknown', 1)").await, "BU003");
    let mut connection = database.connect().await;
    sqlx::raw_sql("select bursar.assert_term('settlement', 4)").execute(&mut connection).await.expect("in force");
}
