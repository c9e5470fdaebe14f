//! `http`: a request per unit.

use std::time::Duration;

use bursar::clock::boottime;

use super::{IN_VAIN, job, led, on_servers};
use crate::support::cluster::ELECTION;
use crate::support::receiver::{Act, Receiver, say};
use crate::support::{eventually, repetitions};

fn http(units: &str, url: &str, rest: &str) -> String {
    format!("[job.http]\nunits = '''{units}'''\nurl = \"{url}\"\n{rest}")
}

/// What a service answers that is no bank: it has no amount to echo.
fn done() -> String {
    say(200, &[], "{\"done\":true}")
}

fn numbered(number: u32) -> String {
    format!("select 'u-' || n as key, jsonb_build_object('n', n) as payload from generate_series(1, {number}) n")
}

#[tokio::test]
async fn each_of_two_hundred_units_is_done_once_when_the_leader_is_killed() {
    let receiver = Receiver::start().await;
    receiver.always(Some(Act::SaySlowly(Duration::from_millis(30), done())));
    let tables = http(&numbered(200), &receiver.url(), "idempotent = true");
    let (cluster, leader) = led(on_servers(2, &job("partner", "http", 16, &tables))).await;
    let run = cluster.open_now("partner");
    eventually(IN_VAIN, "some have been sent", async || (receiver.log().len() >= 60).then_some(())).await;
    cluster.replica(leader).kill();
    cluster.wait_other_leader(IN_VAIN, &[leader]).await;
    cluster.wait_run_ended(run).await;
    assert_eq!(cluster.settled().await, 200);
    receiver.judge();
    let log = receiver.log();
    let keys: std::collections::BTreeSet<&str> = log.iter().map(|logged| logged.key.as_str()).collect();
    assert_eq!(keys.len(), 200, "one key for each unit");
    assert!(log.len() <= 200 + 32, "{} requests: only what was on the wire is sent again", log.len());
    let body: serde_json::Value = serde_json::from_slice(&log[0].body).expect("JSON");
    assert!(body["payload"]["n"].is_number() && body["key"] == log[0].key.as_str(), "{body}");
    assert!(log[0].scope.ends_with(&format!("/{ELECTION}")), "{}", log[0].scope);
    cluster.assert_sound().await;
}

#[tokio::test]
async fn a_wait_for_the_outside_holds_no_transaction_open_and_no_scrape_up() {
    let wait = u64::try_from(repetitions("seconds that an http handler waits", 10, 60)).expect("few");
    let receiver = Receiver::start().await;
    receiver.always(Some(Act::SaySlowly(Duration::from_secs(wait), done())));
    let tables = http(&numbered(4), &receiver.url(), "timeout = \"90s\"");
    let (cluster, leader) = led(on_servers(1, &job("partner", "http", 16, &tables))).await;
    let run = cluster.open_now("partner");
    eventually(IN_VAIN, "all are on the wire", async || (receiver.log().len() == 4).then_some(())).await;
    let idle = "select count(*) from pg_stat_activity where datname = current_database()
                 and state like 'idle in transaction%' and clock_timestamp() - state_change > interval '500 ms'";
    let begun = boottime();
    while boottime().since(begun) < Duration::from_secs(wait - 2) {
        assert_eq!(cluster.number(idle).await, 0, "a session sits idle in a transaction");
        let asked = boottime();
        let metrics = cluster.replica(leader).metrics().await.expect("it answers");
        let (code, _) = cluster.replica(leader).livez().await.expect("it answers");
        assert!(boottime().since(asked) < Duration::from_secs(1), "{:?}", boottime().since(asked));
        assert_eq!((code, metrics.value("bursar_in_flight_units", &[])), (200, Some(4.0)));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    cluster.wait_run_ended(run).await;
    assert_eq!((cluster.settled().await, receiver.log().len()), (4, 4));
    cluster.assert_sound().await;
}
