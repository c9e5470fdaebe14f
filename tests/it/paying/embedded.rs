//! Payouts of replicas that share a file of SQLite: what a receiver answers means the same there.

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use crate::support::receiver::{Act, say};
use crate::support::{Cluster, Pair, Setup, holds_for};

/// Long enough for several tries, were there any.
const A_WHILE: Duration = Duration::from_secs(2);

async fn embedded(job: &LedgerJob) -> Cluster {
    let cluster = Setup::new(1, &job.text()).on(Pair::Embedded).steady().start().await;
    cluster.wait_leader(READY).await;
    cluster
}

/// What `payouts list` says, by key.
fn listed(cluster: &Cluster) -> BTreeMap<String, Value> {
    let listed = cluster.command(&["payouts", "list", "--limit", "10000", "--json"]).ok().json();
    let payouts = listed.as_array().expect("a list").iter();
    payouts.map(|payout| (payout["key"].as_str().expect("a key").to_owned(), payout.clone())).collect()
}

/// Waits until so many are in each state, and answers them by state.
async fn wait_states(cluster: &Cluster, states: &[(&str, usize)]) -> BTreeMap<String, Vec<Value>> {
    eventually(PAID, &format!("payouts are {states:?}"), async || {
        let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for payout in listed(cluster).into_values() {
            found.entry(payout["state"].as_str().unwrap_or_default().to_owned()).or_default().push(payout);
        }
        let counts: BTreeMap<String, usize> = found.iter().map(|(state, of)| (state.clone(), of.len())).collect();
        let expected: BTreeMap<String, usize> = states.iter().map(|(state, of)| ((*state).to_owned(), *of)).collect();
        (counts == expected).then_some(found)
    })
    .await
}

fn text(payout: &Value, field: &str) -> String {
    payout[field].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn what_a_receiver_answers_means_the_same() {
    let (receiver, elsewhere) = (Receiver::start().await, Receiver::start().await);
    let job = job(&receiver, true).payout("max_in_flight", "1").payout("timeout", "\"500ms\"");
    let cluster = embedded(&job).await;
    receiver.next([
        // Booked and not answered; in progress; and then the answer to the first.
        Act::BookAndReset,
        Act::Say(say(409, &[("retry-after", "1")], "")),
        Act::Book,
    ]);
    cluster.import(&entries(1), "psp").ok();
    cluster.open_now("daily");
    let paid = wait_states(&cluster, &[("paid", 1)]).await.remove("paid").expect("it is paid");
    assert_eq!(receiver.tries(&text(&paid[0], "key")).len(), 3);
    assert_eq!(paid[0]["reference"], receiver.payment(&text(&paid[0], "key")).await.expect("booked")["reference"]);
    // A final no; a no after a doubt; another amount; an error page.
    receiver.next([
        Act::Say(say(422, &[], "")),
        Act::Say(say(200, &[], r#"{"amount_minor":"999","currency":"EUR"}"#)),
        Act::Say(say(200, &[("content-type", "text/html")], "<html>Service unavailable</html>")),
        Act::BookAndReset,
        Act::Say(say(422, &[], "")),
    ]);
    cluster
        .import(&(0..4).fold(Entries::with_ids("n"), |all, n| all.capture(&format!("n{n}"), "EUR", "7.00")), "psp")
        .ok();
    cluster.open_now("daily");
    let found = wait_states(&cluster, &[("paid", 1), ("rejected", 1), ("held", 3)]).await;
    let mut reasons: Vec<String> = found["held"].iter().map(|payout| text(payout, "reason")).collect();
    reasons.sort();
    assert_eq!(reasons, ["mismatch", "mismatch", "unknown"]);
    // A redirect: neither token nor body goes there, the receiver is stopped, and what was rejected waits for it too.
    let location = elsewhere.url();
    receiver.always(Some(Act::Say(say(307, &[("location", location.as_str())], ""))));
    cluster.open_now("daily");
    eventually(PAID, "the receiver is stopped", async || {
        let stopped = cluster.command(&["receivers", "list", "--json"]).ok().json();
        (stopped[0]["reason"] == "redirect").then_some(())
    })
    .await;
    receiver.always(None);
    wait_states(&cluster, &[("paid", 2), ("rejected", 1), ("held", 3)]).await;
    assert_eq!(elsewhere.log(), []);
    receiver.judge();
    cluster.assert_audited();
}

#[tokio::test]
async fn what_is_owed_by_a_merchant_is_kept_back_and_the_rest_is_paid() {
    let receiver = Receiver::start().await;
    let cluster = embedded(&job(&receiver, true)).await;
    let first = Entries::new().capture("acme", "EUR", "10.00").refund("acme", "EUR", "-35.00");
    cluster.import(&first, "psp").ok();
    cluster.open_now("daily");
    let carried = "select count(*) from bursar.unit where state = 'carried'";
    eventually(PAID, "it is carried", async || (cluster.number(carried).await == 1).then_some(())).await;
    cluster.import(&Entries::with_ids("n").capture("acme", "EUR", "100.00"), "psp").ok();
    cluster.open_now("daily");
    let paid = wait_states(&cluster, &[("paid", 1)]).await.remove("paid").expect("it is paid");
    let booked = receiver.payment(&text(&paid[0], "key")).await.expect("it is booked");
    assert_eq!((&booked["amount_minor"], receiver.log().len()), (&"7500".into(), 1), "{booked}");
    cluster.assert_audited();
}

#[tokio::test]
async fn what_a_receiver_that_is_not_idempotent_leaves_open_is_held_and_not_sent_again() {
    let receiver = Receiver::start().await;
    let job = job(&receiver, false).payout("max_in_flight", "1").payout("timeout", "\"500ms\"");
    let cluster = embedded(&job).await;
    receiver.next([
        Act::Silence,
        Act::Say(say(502, &[], "")),
        Act::Say(say(404, &[], "")),
        Act::BookAndReset,
        Act::Say(say(429, &[], "")),
    ]);
    cluster.import(&entries(6), "psp").ok();
    cluster.open_now("daily");
    let found = wait_states(&cluster, &[("paid", 2), ("held", 4)]).await;
    let held: Vec<String> = found["held"].iter().map(|payout| text(payout, "key")).collect();
    holds_for(A_WHILE, "what is held is not sent again", async || {
        match held.iter().find(|key| receiver.tries(key).len() != 1) {
            None => Ok(()),
            Some(key) => Err(format!("{key} was sent {} times", receiver.tries(key).len())),
        }
    })
    .await;
    cluster.assert_audited();
}

#[tokio::test]
async fn a_doubt_whose_key_was_forgotten_while_all_were_down_is_held() {
    let receiver = Receiver::start().await;
    let job = job(&receiver, true).payout("timeout", "\"100ms\"").payout("key_valid_for", "\"2s\"");
    let cluster = Setup::new(1, &job.text()).on(Pair::Embedded).start().await;
    cluster.wait_leader(READY).await;
    receiver.always(Some(Act::BookAndReset));
    cluster.import(&entries(1), "psp").ok();
    cluster.open_now("daily");
    eventually(PAID, "it was sent", async || (!receiver.log().is_empty()).then_some(())).await;
    cluster.replica(0).kill();
    // Longer than the key is valid, less twice the time-out.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let sent = receiver.log().len();
    cluster.replica(0).start();
    cluster.wait_leader(READY).await;
    wait_states(&cluster, &[("held", 1)]).await;
    assert_eq!(receiver.log().len(), sent, "and not sent again");
    cluster.assert_audited();
}
