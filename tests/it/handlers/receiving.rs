//! `http` at receivers that put off, refuse, contradict and stop: the rules of a payout, on both stores.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{IN_VAIN, job, led};
use crate::support::receiver::{Act, Receiver, say};
use crate::support::{Cluster, Pair, Setup, eventually, holds_for};

/// The table of an `http` job whose units are these keys.
fn http(keys: &[&str], url: &str, rest: &str) -> String {
    let each: Vec<String> = keys.iter().map(|key| format!("select '{key}' as key, null as payload")).collect();
    format!("[job.http]\nunits = '''{}'''\nurl = \"{url}\"\ntimeout = \"1s\"\n{rest}", each.join(" union all "))
}

fn numbered(number: usize) -> Vec<String> {
    (0..number).map(|n| format!("u-{n:03}")).collect()
}

fn done() -> String {
    say(200, &[], "{\"done\":true}")
}

/// One replica that leads.
async fn one(pair: Pair, schedule: &str) -> Cluster {
    led(Setup::new(1, schedule).on(pair).steady()).await.0
}

/// Waits until units of a run are in these states, and answers them by state.
async fn wait_units(cluster: &Cluster, run: i64, states: &[(&str, usize)]) -> BTreeMap<String, Vec<String>> {
    eventually(IN_VAIN, &format!("units are {states:?}"), async || {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, (_, state)) in cluster.units_shown(run) {
            found.entry(state).or_default().push(key);
        }
        let counts: BTreeMap<String, usize> = found.iter().map(|(state, of)| (state.clone(), of.len())).collect();
        let expected: BTreeMap<String, usize> = states.iter().map(|(state, of)| ((*state).to_owned(), *of)).collect();
        (counts == expected).then_some(found)
    })
    .await
}

/// The unit that a request was for.
fn unit_of(body: &[u8]) -> String {
    let body: serde_json::Value = serde_json::from_slice(body).expect("JSON");
    body["unit"].as_str().expect("a unit").to_owned()
}

async fn one_poisoned_unit_keeps_no_fresh_one_waiting_and_is_set_aside_after_its_attempts(pair: Pair) {
    let receiver = Receiver::start().await;
    receiver.always(Some(Act::SaySlowly(Duration::from_millis(5), done())));
    let keys = numbered(60);
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let tables = http(&keys, &receiver.url(), "idempotent = true\nmax_in_flight = 2");
    let cluster = one(pair, &job("partner", "http", 2, &tables)).await;
    // The first two are poisoned: each try of theirs is answered 503.
    receiver.next(vec![Act::Say(say(503, &[], "")); 2]);
    let run = cluster.open_now("partner");
    eventually(IN_VAIN, "the poisoned ones were tried", async || (receiver.log().len() >= 2).then_some(())).await;
    for logged in &receiver.log()[..2] {
        receiver.on_key(&logged.key, vec![Act::Say(say(503, &[], "")); 9]);
    }
    let poisoned: Vec<String> = receiver.log()[..2].iter().map(|logged| unit_of(&logged.body)).collect();
    let found = wait_units(&cluster, run, &[("set_aside", 2), ("settled", 58)]).await;
    let mut expected = poisoned.clone();
    expected.sort();
    assert_eq!(found["set_aside"], expected);
    let order: Vec<String> = receiver.log().iter().map(|logged| unit_of(&logged.body)).collect();
    for unit in &poisoned {
        assert_eq!(order.iter().filter(|tried| *tried == unit).count(), 2, "max_attempts");
        let again = order.iter().rposition(|tried| tried == unit).expect("it was tried");
        assert!(again >= 58, "{unit} was tried again as number {again}, before fresh ones: {order:?}");
    }
    assert_eq!(cluster.run_shown(run)["summary"]["state"], "complete_set_aside");
    cluster.assert_audited();
}

async fn an_expired_token_stops_the_calls_costs_no_attempt_and_they_go_on_where_they_were(pair: Pair) {
    let receiver = Receiver::start().await;
    receiver.always(Some(Act::Say(say(401, &[], ""))));
    let keys = numbered(20);
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let tables = http(&keys, &receiver.url(), "idempotent = false");
    let cluster = one(pair, &job("partner", "http", 50, &tables)).await;
    let run = cluster.open_now("partner");
    let stopped = async || {
        let stopped = cluster.command(&["receivers", "list", "--json"]).ok().json();
        stopped[0]["reason"].as_str().map(str::to_owned)
    };
    eventually(IN_VAIN, "the receiver is stopped", async || stopped().await.filter(|why| why == "unauthorized")).await;
    let gauge = async || cluster.replica(0).metric("bursar_receivers_stopped", &[("needs_resume", "false")]).await;
    let before = receiver.log().len();
    assert!(before <= 20, "{before} requests");
    holds_for(Duration::from_secs(2), "units wait as they were", async || {
        let units = cluster.units_shown(run);
        match units.iter().find(|(_, (_, state))| state != "pending") {
            None => Ok(()),
            Some(unit) => Err(format!("{unit:?}")),
        }
    })
    .await;
    assert!(receiver.log().len() > before, "one is tried per wait");
    eventually(IN_VAIN, "its leader shows it", async || (gauge().await == Some(1.0)).then_some(())).await;
    receiver.always(Some(Act::Say(done())));
    wait_units(&cluster, run, &[("settled", 20)]).await;
    assert_eq!(stopped().await, None);
    eventually(IN_VAIN, "its leader shows none", async || (gauge().await == Some(0.0)).then_some(())).await;
    cluster.assert_audited();
}

async fn too_many_refusals_stop_the_calls_until_the_receiver_is_resumed(pair: Pair) {
    let receiver = Receiver::start().await;
    receiver.always(Some(Act::Say(say(422, &[], ""))));
    let keys = numbered(12);
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let rest = "idempotent = true\nrefusals = [422]\nmax_refusals = 3\nmax_in_flight = 1";
    let cluster = one(pair, &job("partner", "http", 50, &http(&keys, &receiver.url(), rest))).await;
    let run = cluster.open_now("partner");
    wait_units(&cluster, run, &[("set_aside", 3), ("pending", 9)]).await;
    holds_for(Duration::from_secs(2), "nothing more is sent", async || match receiver.log().len() {
        3 => Ok(()),
        sent => Err(format!("{sent} requests")),
    })
    .await;
    let stopped = cluster.command(&["receivers", "list", "--json"]).ok().json();
    assert_eq!((&stopped[0]["reason"], &stopped[0]["needs_resume"]), (&"refusals".into(), &true.into()), "{stopped}");
    receiver.always(Some(Act::Say(done())));
    let origin = stopped[0]["origin"].as_str().expect("an origin");
    cluster.command(&["receivers", "resume", origin, "--reason", "they mended it"]).ok();
    wait_units(&cluster, run, &[("set_aside", 3), ("settled", 9)]).await;
    cluster.assert_audited();
}

async fn what_contradicts_is_for_a_person_at_once_and_a_redirect_is_not_followed(pair: Pair) {
    let (receiver, elsewhere) = (Receiver::start().await, Receiver::start().await);
    let location = elsewhere.url();
    receiver.next([
        Act::Say(say(200, &[], "{\"key\":\"another\"}")),
        Act::Say(say(200, &[("content-type", "text/html")], "<html>Service unavailable</html>")),
        Act::Say(say(307, &[("location", location.as_str())], "")),
        Act::Say(say(429, &[("retry-after", "1")], "")),
    ]);
    receiver.always(Some(Act::Say(done())));
    let keys = ["a", "b", "c", "d"];
    let tables = http(&keys, &receiver.url(), "idempotent = true\nmax_in_flight = 1");
    let cluster = one(pair, &job("partner", "http", 50, &tables)).await;
    let run = cluster.open_now("partner");
    let found = wait_units(&cluster, run, &[("set_aside", 2), ("settled", 2)]).await;
    assert_eq!(found["set_aside"], ["a", "b"]);
    for unit in &found["set_aside"] {
        let instruction = cluster.unit_shown(run, unit)["instructions"][0].clone();
        assert_eq!((&instruction["state"], &instruction["in_doubt"]), (&"held".into(), &true.into()), "{instruction}");
    }
    assert_eq!(elsewhere.log(), [], "a redirect is not followed");
    let log = receiver.log();
    let waited: Vec<_> = log.iter().filter(|logged| logged.key == log[3].key).map(|logged| logged.at).collect();
    assert!(waited.last().expect("tried").since(log[3].at) >= Duration::from_secs(1), "it was asked to wait");
    cluster.assert_audited();
}

async fn a_call_in_doubt_whose_key_was_forgotten_while_all_were_down_is_held(pair: Pair) {
    let receiver = Receiver::start().await;
    receiver.always(Some(Act::BookAndReset));
    let rest = "idempotent = true\nkey_valid_for = \"5s\"";
    let schedule = job("partner", "http", 50, &http(&["a"], &receiver.url(), rest));
    let patient =
        schedule.replace("max_attempts = 2\nbackoff = \"10ms..20ms\"", "max_attempts = 9\nbackoff = \"2s..3s\"");
    let (cluster, _) = led(Setup::new(1, &patient).on(pair)).await;
    let run = cluster.open_now("partner");
    eventually(IN_VAIN, "it was sent", async || (!receiver.log().is_empty()).then_some(())).await;
    cluster.replica(0).kill();
    // Longer than the key is valid, less twice the time-out.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let sent = receiver.log().len();
    cluster.replica(0).start();
    cluster.wait_leader(IN_VAIN).await;
    wait_units(&cluster, run, &[("set_aside", 1)]).await;
    let instruction = cluster.unit_shown(run, "a")["instructions"][0].clone();
    assert_eq!((&instruction["state"], &instruction["in_doubt"]), (&"held".into(), &true.into()), "{instruction}");
    assert_eq!(receiver.log().len(), sent, "and not sent again");
    cluster.assert_audited();
}

async fn a_leader_that_is_asked_to_end_in_the_middle_of_200_leaves_no_call_unknown(pair: Pair) {
    let receiver = Receiver::start().await;
    receiver.always(Some(Act::SaySlowly(Duration::from_millis(100), done())));
    let keys = numbered(200);
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let tables = http(&keys, &receiver.url(), "idempotent = false\nmax_in_flight = 8");
    let (cluster, leader) = led(Setup::new(2, &job("partner", "http", 50, &tables)).on(pair).steady()).await;
    let run = cluster.open_now("partner");
    eventually(IN_VAIN, "some have been sent", async || (receiver.log().len() >= 30).then_some(())).await;
    cluster.replica(leader).term();
    assert!(cluster.replica(leader).wait_end(IN_VAIN).success());
    assert!(receiver.log().len() < 200, "it was asked in the middle");
    cluster.replica(leader).start();
    wait_units(&cluster, run, &[("settled", 200)]).await;
    assert_eq!(receiver.log().len(), 200, "one request each");
    receiver.judge();
    cluster.assert_audited();
}

/// The same on a pair.
macro_rules! on_pair {
    ($module:ident, $pair:expr, $($case:ident),+ $(,)?) => {
        mod $module {
            use super::*;

            $(#[tokio::test]
            async fn $case() {
                super::$case($pair).await;
            })+
        }
    };
}

macro_rules! on_both {
    ($($case:ident),+ $(,)?) => {
        on_pair!(postgres, Pair::EtcdPostgres, $($case),+);
        on_pair!(embedded, Pair::Embedded, $($case),+);
    };
}

on_both!(
    one_poisoned_unit_keeps_no_fresh_one_waiting_and_is_set_aside_after_its_attempts,
    an_expired_token_stops_the_calls_costs_no_attempt_and_they_go_on_where_they_were,
    too_many_refusals_stop_the_calls_until_the_receiver_is_resumed,
    what_contradicts_is_for_a_person_at_once_and_a_redirect_is_not_followed,
    a_call_in_doubt_whose_key_was_forgotten_while_all_were_down_is_held,
    a_leader_that_is_asked_to_end_in_the_middle_of_200_leaves_no_call_unknown,
);
