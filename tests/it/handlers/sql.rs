//! `sql` on PostgreSQL: effect and state commit together; what the user's SQL does wrong stays where it is.

use super::{IN_VAIN, job, led, on_servers, sql};
use crate::support::{Cluster, eventually};

/// Accounts that are to be closed, and a book of what was closed, in which a second closing would be seen.
const ACCOUNTS: &str = "
    create schema app;
    create table app.account (id text primary key, due bigint not null, closed boolean not null default false);
    create table app.closing (account text not null, due bigint not null, xact xid8 not null default pg_current_xact_id());
    grant usage on schema app to public;
    grant all on all tables in schema app to public;
    create function app.close(account text, due bigint) returns void language plpgsql as $$
    begin
        if account = 'bad' then raise exception 'account % is locked', account; end if;
        insert into app.closing (account, due) values ($1, $2);
        update app.account a set closed = true where a.id = $1;
    end $$;";
/// What makes every account one that can be closed.
const UNLOCKED: &str = "
    create or replace function app.close(account text, due bigint) returns void language sql as $$
        insert into app.closing (account, due) values ($1, $2);
        update app.account set closed = true where id = $1;
    $$;";
const UNITS: &str =
    "select a.id as key, jsonb_build_object('due', a.due) as payload from app.account a where not a.closed -- all;";
const SETTLE: &str = "select app.close(key, (payload->>'due')::bigint) from bursar_batch;";

async fn accounts(cluster: &Cluster, number: u32) {
    cluster.database().execute(ACCOUNTS).await;
    let filled = format!("insert into app.account select 'a-' || n, n from generate_series(1, {number}) n");
    cluster.database().execute(&filled).await;
}

#[tokio::test]
async fn effect_and_state_commit_together_when_the_leader_dies_between_the_statement_and_the_commit() {
    let schedule = job("close", "sql", 50, &sql(UNITS, SETTLE));
    // Each of the two dies at its sixth batch: ten batches are all that there are.
    let setup = on_servers(2, &schedule).chaos("store.settle.after_users_statement=crash@6");
    let (cluster, leader) = led(setup).await;
    accounts(&cluster, 500).await;
    let run = cluster.open_now("close");
    cluster.wait_other_leader(IN_VAIN, &[leader]).await;
    cluster.wait_run_ended(run).await;
    assert_eq!(cluster.settled().await, 500);
    let both = "select count(*) from app.closing c join bursar.unit u on u.key = c.account and u.xact = c.xact
                  join app.account a on a.id = c.account and a.due = c.due and a.closed";
    assert_eq!(cluster.number(both).await, 500, "each effect is of the transaction that ended its unit");
    assert_eq!(cluster.number("select count(*) from app.closing").await, 500);
    assert_eq!(cluster.number("select count(distinct term) from bursar.batch").await, 2);
    cluster.assert_sound().await;
}

#[tokio::test]
async fn a_unit_set_aside_is_not_planned_again_while_it_can_be_retried() {
    let (cluster, _) = led(on_servers(1, &job("close", "sql", 50, &sql(UNITS, SETTLE)))).await;
    accounts(&cluster, 70).await;
    cluster.database().execute("insert into app.account values ('bad', 7)").await;
    let first = cluster.run_now("close").await;
    let shown = cluster.units_shown(first);
    assert_eq!(shown.len(), 71);
    assert!(
        shown.iter().all(|(key, (_, state))| state == if key == "bad" { "set_aside" } else { "settled" }),
        "{shown:?}"
    );
    let bad = cluster.unit_shown(first, "bad");
    assert_eq!(bad["attempts"], 2, "{bad}");
    assert!(bad.to_string().contains("account bad is locked"), "{bad}");

    cluster.database().execute("insert into app.account values ('new', 8)").await;
    let second = cluster.run_now("close").await;
    let planned: Vec<String> = cluster.units_shown(second).into_keys().collect();
    assert_eq!(planned, ["new"], "the query gives `bad` too, which the first run has");

    cluster.database().execute(UNLOCKED).await;
    let part = cluster.command(&["units", "retry", &first.to_string(), "bad", "a-1", "bda"]);
    assert_eq!(part.code(), Some(1), "{}", part.stderr);
    assert!(part.stderr.contains("set aside: a-1, bda; nothing was changed"), "{}", part.stderr);
    assert_eq!(cluster.unit_shown(first, "bad")["state"], "set_aside");
    cluster.command(&["units", "retry", &first.to_string(), "bad"]).ok();
    eventually(IN_VAIN, "the retried unit settles", async || {
        (cluster.units_shown(first)["bad"].1 == "settled").then_some(())
    })
    .await;
    assert_eq!(cluster.number("select count(*) from app.closing where account = 'bad'").await, 1);
    // Not `assert_sound`: a retried unit has left the batch that set it aside.
    cluster.assert_audited();
}

#[tokio::test]
async fn a_query_that_fails_or_tells_no_units_apart_sets_its_run_aside_and_nothing_else() {
    let jobs = [
        ("fails", "select id as key, null as payload from app.absent"),
        ("divides", "select id as key, to_jsonb(1 / (due - 7)) as payload from app.account"),
        ("doubles", "select 'k' || (due / 2) as key, null as payload from app.account"),
        ("nameless", "select nullif(id, 'a-3') as key, null as payload from app.account"),
        ("brings-more", "select 'a' as key, null as payload; delete from app.account"),
    ];
    let mut schedule: String = jobs.iter().map(|(name, units)| job(name, "sql", 50, &sql(units, SETTLE))).collect();
    schedule += &job("commits", "sql", 50, &sql(UNITS, "commit -- bursar_batch"));
    schedule += &job("close", "sql", 50, &sql(UNITS, SETTLE));
    let (cluster, _) = led(on_servers(1, &schedule)).await;
    accounts(&cluster, 20).await;
    let term = cluster.term().await;
    for (name, expected) in [
        ("fails", "does not exist"),
        ("divides", "division by zero"),
        ("doubles", "more than once"),
        ("nameless", "a row without a key"),
        ("brings-more", "syntax error"),
    ] {
        let run = cluster.run_now(name).await;
        let shown = cluster.run_shown(run).to_string();
        assert!(shown.contains("complete_set_aside") && shown.contains(expected), "{name}: {shown}");
        assert_eq!(cluster.units_shown(run).len(), 0, "{name}");
    }
    let run = cluster.run_now("commits").await;
    assert!(cluster.units_shown(run).values().all(|(_, state)| state == "set_aside"), "nothing but rows is touched");
    assert_eq!(cluster.number("select count(*) from app.closing").await, 0);
    // Retried, a run whose planning failed is planned again.
    let broken = cluster.run_now("divides").await;
    cluster.database().execute("update app.account set due = 100 where due = 7").await;
    cluster.command(&["units", "retry", &broken.to_string(), "--all"]).ok();
    eventually(IN_VAIN, "the run is planned again", async || {
        let units = cluster.units_shown(broken);
        (units.len() == 20).then_some(())
    })
    .await;
    cluster.wait_no_open_run(IN_VAIN).await;
    assert_eq!(cluster.term().await, term, "no tenure ended over it");
    let run = cluster.run_now("close").await;
    assert_eq!(cluster.units_shown(run).len(), 20, "units of one job are none of another's");
    cluster.assert_sound().await;
}
