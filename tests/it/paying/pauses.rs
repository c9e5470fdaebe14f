//! Leaders that are cut off or stopped while payouts go out, and go on when another leads: the receiver is the judge.

use bursar::clock::boottime;

use super::*;
use crate::support::receiver::{Act, Logged};
use crate::support::{Pair, Setup};

/// Replicas are given this TTL.
const TTL: Duration = Duration::from_secs(5);
/// A lease that lapses, and what follows, on a busy machine.
const TAKEOVER: Duration = Duration::from_secs(30);

/// Requests under a term.
fn under(receiver: &Receiver, term: i64) -> Vec<Logged> {
    receiver.log().into_iter().filter(|logged| logged.token == term).collect()
}

/// Whether a request was made, whatever the term.
async fn begun(receiver: &Receiver, requests: usize) {
    eventually(PAID, "requests have left", async || (receiver.log().len() >= requests).then_some(())).await;
}

#[tokio::test]
async fn a_leader_cut_from_the_coordinator_alone_sends_nothing_after_its_lease_and_each_of_200_is_paid_once() {
    let receiver = Receiver::start().await;
    receiver.always(Some(Act::BookSlowly(Duration::from_millis(150))));
    let paying = job(&receiver, true).payout("max_in_flight", "4");
    let cluster = Setup::new(2, &paying.text()).behind_proxies().start().await;
    let old = cluster.wait_leader(READY).await;
    cluster.replica(1 - old).wait_ready(READY).await;
    let sampler = cluster.watch();
    cluster.import(&entries(200), "psp").ok();
    let term = cluster.term().await;
    cluster.open_now("daily");
    begun(&receiver, 20).await;
    cluster.replica(old).cut_from_etcd();
    // The last renewal that was answered went out before this.
    let cut = boottime();
    assert_ne!(cluster.wait_other_leader(TAKEOVER, &[old]).await, old);
    let paid = cluster.wait_payouts(&[("paid", 200)]).await.remove("paid").expect("they are paid");
    assert_eq!(paid.len(), 200);
    let last = under(&receiver, term).into_iter().map(|logged| logged.at).max().expect("it sent some");
    assert!(last.since(cut) <= TTL, "it sent something {:?} after it was cut off", last.since(cut));
    let sent = receiver.log();
    assert!(sent.iter().any(|logged| logged.token > term), "the next one had something left to send");
    // Sent again was only what the cut one had on the wire.
    assert!(sent.len() <= 204, "{} requests", sent.len());
    cluster.replica(old).heal();
    cluster.replica(old).wait_ready(READY).await;
    cluster.assert_paid_soundly(&receiver).await;
    sampler.finish();
}

/// The leader is stopped at a step, for three TTLs; another pays; and the first one goes on.
async fn stopped_at(step: &str, at: u32, pair: Pair) {
    let receiver = Receiver::start().await;
    let paying = job(&receiver, true).payout("max_in_flight", "3");
    let cluster = Setup::new(2, &paying.text()).on(pair).prepare().await;
    cluster.replica(0).set_chaos(&format!("{step}=stop@{at}"));
    cluster.replica(0).start();
    cluster.wait_leader(READY).await;
    cluster.replica(1).start();
    cluster.replica(1).wait_ready(READY).await;
    cluster.import(&entries(12), "psp").ok();
    let term = cluster.term().await;
    cluster.open_now("daily");
    cluster.replica(0).wait_hit(step, PAID).await;
    let since = boottime();
    assert_eq!(cluster.wait_other_leader(TAKEOVER, &[0]).await, 1, "{step}: whatever the stopped one holds");
    // What it had written when it was stopped has arrived by now.
    let before = under(&receiver, term).len();
    let done = "select count(*) from bursar.instruction where state = 'paid'";
    eventually(PAID, "all are paid", async || (cluster.number(done).await == 12).then_some(())).await;
    eventually(TTL * 4, "three TTLs pass", async || (boottime().since(since) >= TTL * 3).then_some(())).await;
    let written = format!("select coalesce(sum(attempts), 0) from bursar.instruction where term = {term}");
    let written_before = cluster.number(&written).await;
    // Where it held the file's lock, it was ended by the one that waited for it.
    if cluster.replica(0).is_running() {
        cluster.replica(0).cont();
        cluster.replica(0).wait_ready(READY).await;
        assert_eq!(cluster.leader().await, Some(1), "{step}: it does not take it back");
        // What was past its leave may still arrive, with a token that is not taken any more.
        let late = under(&receiver, term).split_off(before);
        assert!(late.iter().all(|logged| !logged.taken), "{step}: {late:?}");
    }
    assert_eq!(cluster.number(&written).await, written_before, "{step}: it changed something when it went on");
    receiver.judge();
    let keys: std::collections::BTreeSet<String> = receiver.log().into_iter().map(|logged| logged.key).collect();
    assert_eq!(keys.len(), 12);
    for key in keys {
        assert!(receiver.payment(&key).await.is_some(), "{step}: {key} is not booked");
    }
    cluster.assert_audited();
}

#[tokio::test]
async fn a_leader_stopped_between_claim_and_sending_sends_nothing_that_is_taken_when_it_goes_on() {
    tokio::join!(
        stopped_at("tenure.payouts.after_take", 2, Pair::EtcdPostgres),
        stopped_at("tenure.payouts.before_first_byte", 2, Pair::EtcdPostgres),
    );
}

#[tokio::test]
async fn a_leader_stopped_inside_a_transaction_of_payouts_keeps_nobody_from_taking_over() {
    tokio::join!(
        stopped_at("store.payouts.after_take", 2, Pair::EtcdPostgres),
        stopped_at("store.payouts.after_record", 2, Pair::EtcdPostgres),
    );
}

/// It could not even say that it is there: whoever starts finds a file that cannot be written.
#[tokio::test]
async fn on_sqlite_a_replica_that_starts_while_the_leader_stands_still_in_a_transaction_takes_over() {
    let receiver = Receiver::start().await;
    let cluster = Setup::new(2, &job(&receiver, true).text()).on(Pair::Embedded).prepare().await;
    let step = "store.payouts.after_take";
    cluster.replica(0).set_chaos(&format!("{step}=stop@1"));
    cluster.replica(0).start();
    cluster.wait_leader(READY).await;
    cluster.import(&entries(3), "psp").ok();
    cluster.open_now("daily");
    cluster.replica(0).wait_hit(step, PAID).await;
    cluster.replica(1).start();
    assert_eq!(cluster.wait_other_leader(PAID, &[0]).await, 1);
    let done = "select count(*) from bursar.instruction where state = 'paid'";
    eventually(PAID, "all are paid", async || (cluster.number(done).await == 3).then_some(())).await;
    receiver.judge();
    cluster.assert_audited();
}

#[tokio::test]
async fn on_sqlite_a_leader_stopped_before_it_sends_or_inside_a_transaction_keeps_nobody_from_paying_once() {
    tokio::join!(
        stopped_at("tenure.payouts.after_take", 2, Pair::Embedded),
        stopped_at("store.payouts.after_record", 2, Pair::Embedded),
    );
}

/// Each of three replicas is asked to end and started again while payouts go out to a receiver that is not idempotent.
async fn restarted_one_after_the_other(pair: Pair) {
    const PAYOUTS: usize = 600;
    let receiver = Receiver::start().await;
    receiver.always(Some(Act::BookSlowly(Duration::from_millis(200))));
    let paying = job(&receiver, false).payout("max_in_flight", "4").payout("timeout", "\"5s\"");
    let cluster = Setup::new(3, &paying.text()).on(pair).steady().start().await;
    for replica in cluster.replicas() {
        replica.wait_ready(READY).await;
    }
    cluster.import(&entries(PAYOUTS), "psp").ok();
    cluster.wait_leader(READY).await;
    cluster.open_now("daily");
    begun(&receiver, 8).await;
    for replica in cluster.replicas() {
        let sent = receiver.log().len();
        begun(&receiver, sent + 4).await;
        replica.term();
        assert!(replica.wait_end(READY).success());
        replica.start();
        replica.wait_ready(READY).await;
    }
    assert!(receiver.log().len() < PAYOUTS, "the last one was asked in the middle");
    receiver.always(None);
    let of = |states: &str| format!("select count(*) from bursar.instruction where state in ({states})");
    let all = i64::try_from(PAYOUTS).expect("few");
    eventually(PAID * 2, "all are final or held", async || {
        (cluster.number(&of("'paid', 'held'")).await == all).then_some(())
    })
    .await;
    assert_eq!(cluster.number(&of("'held'")).await, 0, "nothing is held");
    let log = receiver.log();
    let keys: std::collections::BTreeSet<&str> = log.iter().map(|logged| logged.key.as_str()).collect();
    assert_eq!((log.len(), keys.len()), (PAYOUTS, PAYOUTS), "one request each");
    let terms: std::collections::BTreeSet<i64> = log.iter().map(|logged| logged.token).collect();
    assert!(terms.len() >= 2, "whoever led was among them: {terms:?}");
    receiver.judge();
    cluster.assert_audited();
}

#[tokio::test]
async fn a_rolling_restart_of_three_replicas_holds_no_payout() {
    restarted_one_after_the_other(Pair::EtcdPostgres).await;
}

#[tokio::test]
async fn on_sqlite_a_rolling_restart_of_three_replicas_holds_no_payout() {
    restarted_one_after_the_other(Pair::Embedded).await;
}

#[tokio::test]
async fn a_job_that_is_edited_to_pay_elsewhere_sends_nothing_more_where_it_paid() {
    let (old, new) = (Receiver::start().await, Receiver::start().await);
    old.always(Some(Act::BookSlowly(Duration::from_millis(100))));
    let cluster = one_replica(&job(&old, true).payout("max_in_flight", "1")).await;
    cluster.import(&entries(40), "psp").ok();
    cluster.open_now("daily");
    begun(&old, 3).await;
    cluster.write_schedule(&job(&new, true).payout("max_in_flight", "1").text());
    begun(&new, 1).await;
    // The lane that it had may have had one in hand, and is told within a sweep.
    eventually(PAID, "the sweep has told the lane", async || (new.log().len() >= 10).then_some(())).await;
    let sent = old.log().len();
    assert!(sent < 30, "it was edited in the middle");
    cluster.wait_payouts(&[("paid", 40)]).await;
    assert_eq!(old.log().len(), sent, "nothing more goes there");
    // Nor is it sent anywhere once it is edited to send nothing.
    cluster.write_schedule(&LedgerJob::new("daily").text());
    eventually(PAID, "the edit is in the store", async || {
        let sends = "select count(*) from bursar.job where definition #> '{handler,ledger,payout,http}' is not null";
        (cluster.number(sends).await == 0).then_some(())
    })
    .await;
    cluster.import(&Entries::with_ids("n").capture("m0", "EUR", "5.00"), "psp").ok();
    cluster.run_now("daily").await;
    crate::support::holds_for(Duration::from_secs(3), "nothing is sent", async || {
        let sent = old.log().len() + new.log().len();
        if sent == 40 { Ok(()) } else { Err(format!("{sent} requests")) }
    })
    .await;
    cluster.wait_payouts(&[("paid", 40), ("pending", 1)]).await;
    cluster.assert_audited();
}
