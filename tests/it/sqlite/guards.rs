//! The file's own guards: they hold whoever writes, also past the product, also by REPLACE.

use std::path::Path;

use super::ground::{accepted, claim, mark, mine, path, planned, raw, run, store, tenure};

/// What a statement of another program is refused with.
async fn refusal(path: &Path, statement: &str) -> String {
    let mut connection = raw(path).await;
    match run(&mut connection, statement).await {
        Ok(()) => panic!("it was carried out: {statement}"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fence_and_the_sequence_are_never_lowered_deleted_or_replaced() {
    let path = path();
    let store = store(&path).await;
    accepted(&store, &claim(5)).await;
    for statement in [
        "update fence set term = 4",
        "update fence set tenure_id = '00000000-0000-0000-0000-000000000001'",
        "update fence set election = 'other'",
        "delete from fence",
        "insert or replace into fence (election, term, tenure_id, accepted_at) \
         values ('settlement', 1, '00000000-0000-0000-0000-000000000001', 0)",
        "update fenced_seq set value = value - 1",
        "delete from fenced_seq",
    ] {
        let found = refusal(&path, statement).await;
        assert!(found.contains("BU001"), "{statement}: {found}");
    }
    for statement in ["delete from term_history", "replace into term_history select * from term_history"] {
        let found = refusal(&path, statement).await;
        assert!(found.contains("BU004"), "{statement}: {found}");
    }
}

const JOURNAL: &str = "insert into journal (unit_id, run_id, kind, election, term, posted_at, fenced_seq) \
     select id, run_id, 'settle', 'settlement', TERM, 0, 0 from unit where key = 'b'";

const INSTRUCTION: &str = "insert into instruction \
     (unit_id, run_id, job_id, election, kind, idempotency_key, body, term, created_at, fenced_seq) \
     select u.id, u.run_id, r.job_id, 'settlement', 'call', 'k', x'', TERM, 0, 0 \
       from unit u join run r on r.id = u.run_id where u.key = 'b'";

/// A file where term 1 planned two units and term 2 is in force.
async fn passed_on(path: &Path) {
    let store = store(path).await;
    let tenure = tenure(&store, &claim(1)).await;
    let run = planned(tenure.as_ref(), "probe", &["a", "b"]).await;
    mine(tenure.settle(&run, bursar::store::UnitPick::Fresh { after: 0, limit: 1 }, &mark()).await);
    accepted(&store, &claim(2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_insert_into_journal_or_instruction_is_refused() {
    let path = path();
    passed_on(&path).await;
    for statement in [JOURNAL, INSTRUCTION] {
        for term in ["1", "3"] {
            let found = refusal(&path, &statement.replace("TERM", term)).await;
            assert!(found.contains("BU003"), "term {term}: {statement}: {found}");
        }
        run(&mut raw(&path).await, &statement.replace("TERM", "2")).await.expect("the term in force may");
    }
    let found = refusal(&path, "insert into assert_term (election, term) values ('settlement', 1)").await;
    assert!(found.contains("BU003"), "{found}");
    let in_force = "insert into assert_term (election, term) values ('settlement', 2)";
    run(&mut raw(&path).await, in_force).await.expect("the term in force may");
}

#[tokio::test(flavor = "multi_thread")]
async fn books_are_history() {
    let path = path();
    passed_on(&path).await;
    let mut connection = raw(&path).await;
    for statement in [JOURNAL, INSTRUCTION] {
        run(&mut connection, &statement.replace("TERM", "2")).await.expect("the term in force may");
    }
    let written = "insert into posting select j.id, 1, 'payable', 'm', 'fees', '', 'EUR', 5 from journal j; \
         insert into entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, job_id, unit_id) \
         select 'bursar', 'e', 'm', 'EUR', 'carry', 5, 0, 0, 0, r.job_id, u.id from unit u join run r on r.id = u.run_id where u.key = 'a'; \
         update instruction set in_doubt = 1";
    run(&mut connection, written).await.expect("the rows fit");
    for statement in [
        "update journal set term = 9",
        "delete from journal",
        "update posting set amount = 6",
        "delete from posting",
        "update entry set amount = 6",
        "update entry set unit_id = null",
        "delete from entry",
        "replace into entry select * from entry",
        "update instruction set amount = 9",
        "update instruction set body = x'00'",
        "update instruction set in_doubt = 0",
        "delete from instruction",
    ] {
        let found = refusal(&path, statement).await;
        assert!(found.contains("BU004"), "{statement}: {found}");
    }
    for table in ["journal", "posting", "instruction"] {
        let found = refusal(&path, &format!("replace into {table} select * from {table}")).await;
        assert!(found.contains("UNIQUE constraint failed"), "{table}: {found}");
    }
    for statement in [
        "insert into posting select j.id, 2, 'payable', 'm', 'fees', '', 'EUR', 0 from journal j",
        "insert into posting select j.id, 2, 'payable', 'm', 'payable', 'm', 'EUR', 1 from journal j",
    ] {
        let found = refusal(&path, statement).await;
        assert!(found.contains("CHECK constraint failed: posting_"), "{statement}: {found}");
    }
}
