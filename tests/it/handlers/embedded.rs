//! `sql` in a file of SQLite: the same promises.

use std::time::Duration;

use bursar::clock::boottime;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions};

use super::{IN_VAIN, job, led, sql};
use crate::support::receiver::{Act, Receiver, say};
use crate::support::{Cluster, Pair, Setup, eventually};

/// How long a service keeps its caller waiting.
const WAIT: Duration = Duration::from_secs(6);

const ACCOUNTS: &str = "
    create table account (id text primary key, due integer not null, closed integer not null default 0);
    create table closing (account text not null, due integer not null check (account <> 'bad'));
    create trigger closes after insert on closing begin update account set closed = 1 where id = new.account; end;";
const UNITS: &str = "select id as key, json_object('due', due) as payload from account where not closed -- all;";
const SETTLE: &str = "insert into closing select key, payload ->> 'due' from bursar_batch;";

async fn file(cluster: &Cluster) -> SqliteConnection {
    SqliteConnectOptions::new().filename(cluster.file()).connect().await.expect("the file is there")
}

async fn number(connection: &mut SqliteConnection, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(connection).await.expect("a number")
}

#[tokio::test]
async fn a_sql_job_settles_once_and_what_is_wrong_stays_where_it_is() {
    let mut schedule = job("close", "sql", 50, &sql(UNITS, SETTLE));
    schedule += &job("commits", "sql", 50, &sql(UNITS, "update bursar_batch set key = key; commit"));
    schedule += &job("doubles", "sql", 50, &sql("select 'k' as key, null as payload from account", SETTLE));
    // Each of the two dies at its fifth batch.
    let setup = Setup::new(2, &schedule).on(Pair::Embedded).chaos("store.settle.after_users_statement=crash@5");
    let (cluster, leader) = led(setup).await;
    let mut connection = file(&cluster).await;
    let fill = format!(
        "{ACCOUNTS} with recursive n (value) as (select 1 union all select value + 1 from n where value < 300)
         insert into account (id, due) select 'a-' || value, value from n;"
    );
    sqlx::raw_sql(AssertSqlSafe(fill)).execute(&mut connection).await.expect("tables of the user's");
    let doubled = wait_ended(&cluster, "doubles").await;
    assert!(cluster.run_shown(doubled).to_string().contains("more than once"));
    let run = cluster.open_now("close");
    cluster.wait_other_leader(IN_VAIN, &[leader]).await;
    ended(&cluster, run).await;
    assert_eq!(number(&mut connection, "select count(*) from closing").await, 300);
    let both = "select count(*) from closing c join unit u on u.key = c.account and u.state = 'settled'";
    assert_eq!(number(&mut connection, both).await, 300);

    sqlx::query("insert into account values ('bad', 7, 0)").execute(&mut connection).await.expect("a row");
    let first = wait_ended(&cluster, "commits").await;
    let shown = cluster.unit_shown(first, "bad");
    assert!(shown["state"] == "set_aside" && shown.to_string().contains("more than one statement"), "{shown}");
    cluster.assert_sound().await;
}

#[tokio::test]
async fn a_unit_set_aside_is_not_planned_again_while_it_can_be_retried() {
    let (cluster, _) =
        led(Setup::new(1, &job("close", "sql", 50, &sql(UNITS, SETTLE))).on(Pair::Embedded).steady()).await;
    let mut connection = file(&cluster).await;
    let fill = format!("{ACCOUNTS} insert into account (id, due) values ('a', 1), ('bad', 7), ('b', 2);");
    sqlx::raw_sql(AssertSqlSafe(fill)).execute(&mut connection).await.expect("tables of the user's");
    let first = wait_ended(&cluster, "close").await;
    let states = |run| cluster.units_shown(run).into_iter().map(|(key, (_, state))| (key, state)).collect::<Vec<_>>();
    let of = |key: &str, state: &str| (key.to_owned(), state.to_owned());
    assert_eq!(states(first), [of("a", "settled"), of("b", "settled"), of("bad", "set_aside")]);
    assert_eq!(cluster.unit_shown(first, "bad")["attempts"], 2);
    sqlx::query("insert into account values ('new', 8, 0)").execute(&mut connection).await.expect("a row");
    let second = wait_ended(&cluster, "close").await;
    assert_eq!(states(second), [of("new", "settled")], "the query gives `bad` too, which the first run has");
    cluster.assert_audited();
}

#[tokio::test]
async fn a_wait_for_the_outside_holds_no_transaction_open_and_no_scrape_up() {
    let receiver = Receiver::start().await;
    receiver.always(Some(Act::SaySlowly(WAIT, say(200, &[], "{}"))));
    let tables = format!(
        "[job.http]\nunits = '''select 'a' as key, null as payload'''\nurl = \"{}\"\ntimeout = \"90s\"",
        receiver.url()
    );
    let (cluster, leader) = led(Setup::new(1, &job("partner", "http", 16, &tables)).on(Pair::Embedded).steady()).await;
    let run = cluster.open_now("partner");
    eventually(IN_VAIN, "it is on the wire", async || (receiver.log().len() == 1).then_some(())).await;
    let mut connection = file(&cluster).await;
    let begun = boottime();
    while boottime().since(begun) + Duration::from_secs(2) < WAIT {
        // Whoever has a transaction open keeps this one out; others' are short.
        sqlx::raw_sql("pragma busy_timeout = 900; begin immediate; rollback;")
            .execute(&mut connection)
            .await
            .expect("nobody keeps the file");
        let asked = boottime();
        let metrics = cluster.replica(leader).metrics().await.expect("it answers");
        assert!(boottime().since(asked) < Duration::from_secs(1), "{:?}", boottime().since(asked));
        assert_eq!(metrics.value("bursar_in_flight_units", &[]), Some(1.0));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    ended(&cluster, run).await;
    assert_eq!((cluster.settled().await, receiver.log().len()), (1, 1));
    cluster.assert_audited();
}

async fn wait_ended(cluster: &Cluster, job: &str) -> i64 {
    let run = cluster.open_now(job);
    ended(cluster, run).await;
    run
}

async fn ended(cluster: &Cluster, run: i64) {
    eventually(IN_VAIN, "the run ends", async || {
        cluster.run_shown(run).to_string().contains("\"complete").then_some(())
    })
    .await;
}
