//! What arrives, and who dies, while a payment is in doubt: key and amount stay as they were written, and what is new waits for
//! the next run.

use super::*;
use crate::support::receiver::Act;
use crate::support::{Etcd, Pair, Setup};

/// A lease that lapses, and what follows, on a busy machine.
const TAKEOVER: Duration = Duration::from_mins(1);

async fn captures_arrive_and_the_leader_dies(pair: Pair) {
    let receiver = Receiver::start().await;
    let setup = Setup::new(2, &job(&receiver, true).text()).on(pair);
    let cluster = if pair == Pair::EtcdPostgres { setup.steady() } else { setup }.start().await;
    let old = cluster.wait_leader(READY).await;
    cluster.replica(1 - old).wait_ready(READY).await;
    // Booked, and not answered, until another leads.
    receiver.always(Some(Act::BookAndReset));
    cluster.import(&entries(1), "psp").ok();
    let run = cluster.run_now("daily").await;
    eventually(PAID, "it was sent", async || (!receiver.log().is_empty()).then_some(())).await;
    let before = cluster.unit_shown(run, "EUR:m0")["instructions"][0].clone();
    cluster.import(&Entries::with_ids("n").capture("m0", "EUR", "5.00"), "psp").ok();
    let lease = if pair == Pair::EtcdPostgres { Some(cluster.leaders_lease(Etcd::shared()).await) } else { None };
    cluster.replica(old).kill();
    if let Some(lease) = lease {
        Etcd::shared().revoke(lease).await;
    }
    cluster.wait_other_leader(TAKEOVER, &[old]).await;
    receiver.always(None);
    let are_paid = "select count(*) from bursar.instruction where state = 'paid'";
    eventually(PAID, "it is paid", async || (cluster.number(are_paid).await == 1).then_some(())).await;
    let after = cluster.unit_shown(run, "EUR:m0");
    let shown = &after["instructions"][0];
    assert_eq!((&before["key"], &before["amount"]), (&shown["key"], &shown["amount"]));
    let key = shown["key"].as_str().expect("a key");
    let tries = receiver.tries(key);
    assert!(tries.len() >= 2 && tries.iter().all(|tried| tried.body == tries[0].body), "{tries:?}");
    // Each of them is on record, with the term that made it.
    let terms: Vec<i64> = after["requests"][0]["tries"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|made| made["term"].as_i64().expect("a term"))
        .collect();
    assert!(terms.len() >= tries.len() && terms.is_sorted() && terms.first() < terms.last(), "{terms:?}: {after}");
    let second = cluster.run_now("daily").await;
    eventually(PAID, "the rest is paid", async || (cluster.number(are_paid).await == 2).then_some(())).await;
    let rest = cluster.unit_shown(second, "EUR:m0")["instructions"][0].clone();
    assert_eq!(receiver.payment(rest["key"].as_str().expect("a key")).await.expect("booked")["amount_minor"], "500");
    assert_eq!(receiver.payment(key).await.expect("booked")["amount_minor"], "1000");
    receiver.judge();
    cluster.assert_audited();
}

#[tokio::test]
async fn captures_that_arrive_while_a_payment_is_in_doubt_wait_for_the_next_run_whoever_leads() {
    captures_arrive_and_the_leader_dies(Pair::EtcdPostgres).await;
}

#[tokio::test]
async fn on_sqlite_captures_that_arrive_while_a_payment_is_in_doubt_wait_for_the_next_run_whoever_leads() {
    captures_arrive_and_the_leader_dies(Pair::Embedded).await;
}
