//! The leader dies at each step of an instruction. Whatever it was, the receiver's book has one payment for each unit; and a
//! receiver that is not idempotent never gets a second request for what may have had its effect.

use super::*;
use crate::support::Etcd;
use crate::support::receiver::Act;

/// Places at which the leader dies, in the order of an instruction's way.
const STEPS: [&str; 6] = [
    "tenure.payouts.before_take",
    "store.payouts.after_take",
    "tenure.payouts.after_take",
    "tenure.payouts.before_first_byte",
    "tenure.payouts.before_record",
    "store.payouts.after_record",
];

/// Two replicas, of which the first leads and dies at the step; answers the keys by state once the second one has done all
/// that it does by itself.
async fn dies_at(step: &str, receiver: &Receiver, idempotent: bool) -> Cluster {
    let cluster =
        Setup::new(2, &job(receiver, idempotent).payout("max_in_flight", "3").text()).steady().prepare().await;
    cluster.replica(0).set_chaos(&format!("{step}=crash@2"));
    cluster.replica(0).start();
    cluster.wait_leader(READY).await;
    let lease = cluster.leaders_lease(Etcd::shared()).await;
    cluster.replica(1).start();
    cluster.replica(1).wait_ready(READY).await;
    cluster.import(&entries(8), "psp").ok();
    cluster.open_now("daily");
    cluster.replica(0).wait_end(PAID);
    Etcd::shared().revoke(lease).await;
    cluster.wait_other_leader(READY, &[0]).await;
    cluster
}

#[tokio::test]
async fn an_idempotent_receiver_books_each_payment_once_wherever_its_sender_dies() {
    for step in STEPS {
        let receiver = Receiver::start().await;
        let cluster = dies_at(step, &receiver, true).await;
        let paid = cluster.wait_payouts(&[("paid", 8)]).await.remove("paid").expect("they are paid");
        for key in &paid {
            assert!((1..=2).contains(&receiver.tries(key).len()), "{step}: {key}");
        }
        cluster.assert_paid_soundly(&receiver).await;
    }
}

#[tokio::test]
async fn a_receiver_that_is_not_idempotent_gets_no_second_request_wherever_its_sender_dies() {
    for step in STEPS {
        let receiver = Receiver::start().await;
        let cluster = dies_at(step, &receiver, false).await;
        let payouts = eventually(PAID, "all that can be done is done", async || {
            let payouts = cluster.payouts().await;
            payouts.keys().all(|state| state == "paid" || state == "held").then_some(payouts)
        })
        .await;
        let held = payouts.get("held").map_or(0, Vec::len);
        // At most what was on the wire; where the second take did not commit, what the first one had there still.
        let committed = !["tenure.payouts.before_take", "store.payouts.after_take"].contains(&step);
        let expected = if committed { 1..=3 } else { 0..=2 };
        assert!(expected.contains(&held), "{step}: {held} are held");
        for key in payouts.values().flatten() {
            assert!(receiver.tries(key).len() <= 1, "{step}: {key} was sent twice");
        }
        for key in &payouts["paid"] {
            assert_eq!(receiver.tries(key).len(), 1, "{step}: {key}");
        }
        cluster.assert_paid_soundly(&receiver).await;
    }
}

#[tokio::test]
async fn a_leader_that_dies_after_its_requests_have_left_leaves_one_payment_each() {
    for idempotent in [true, false] {
        let receiver = Receiver::start().await;
        let cluster =
            Setup::new(2, &job(&receiver, idempotent).payout("max_in_flight", "3").text()).steady().start().await;
        let old = cluster.wait_leader(READY).await;
        cluster.replica(1 - old).wait_ready(READY).await;
        let lease = cluster.leaders_lease(Etcd::shared()).await;
        receiver.always(Some(Act::BookSlowly(Duration::from_secs(1))));
        cluster.import(&entries(8), "psp").ok();
        cluster.open_now("daily");
        eventually(PAID, "requests have left", async || (!receiver.log().is_empty()).then_some(())).await;
        cluster.replica(old).kill();
        receiver.always(None);
        Etcd::shared().revoke(lease).await;
        if idempotent {
            cluster.wait_payouts(&[("paid", 8)]).await;
        } else {
            let payouts = eventually(PAID, "all that can be done is done", async || {
                let payouts = cluster.payouts().await;
                payouts.keys().all(|state| state == "paid" || state == "held").then_some(payouts)
            })
            .await;
            assert!(!payouts["held"].is_empty());
            assert!(payouts.values().flatten().all(|key| receiver.tries(key).len() <= 1));
        }
        cluster.assert_paid_soundly(&receiver).await;
    }
}

#[tokio::test]
async fn a_planned_hand_over_in_the_middle_holds_nothing() {
    let receiver = Receiver::start().await;
    let cluster = Setup::new(2, &job(&receiver, false).payout("max_in_flight", "4").text()).steady().start().await;
    let old = cluster.wait_leader(READY).await;
    cluster.replica(1 - old).wait_ready(READY).await;
    receiver.always(Some(Act::BookSlowly(Duration::from_millis(300))));
    cluster.import(&entries(24), "psp").ok();
    cluster.open_now("daily");
    eventually(PAID, "requests have left", async || (receiver.log().len() >= 6).then_some(())).await;
    cluster.replica(old).term();
    let paid = cluster.wait_payouts(&[("paid", 24)]).await.remove("paid").expect("they are paid");
    assert!(paid.iter().all(|key| receiver.tries(key).len() == 1));
    assert!(receiver.log().iter().map(|logged| logged.token).max() > Some(1), "the second one went on");
    cluster.assert_paid_soundly(&receiver).await;
}

#[tokio::test]
async fn past_the_validity_of_its_key_a_doubt_is_held_when_replicas_come_back() {
    let receiver = Receiver::start().await;
    let job = job(&receiver, true).payout("key_valid_for", "\"10s\"");
    let cluster = Setup::new(1, &job.text()).steady().start().await;
    cluster.wait_leader(READY).await;
    let lease = cluster.leaders_lease(Etcd::shared()).await;
    receiver.always(Some(Act::BookAndReset));
    cluster.import(&entries(1), "psp").ok();
    cluster.open_now("daily");
    eventually(PAID, "it was sent", async || (!receiver.log().is_empty()).then_some(())).await;
    cluster.replica(0).kill();
    Etcd::shared().revoke(lease).await;
    // All are down for longer than the key is valid.
    cluster.database().execute("update bursar.instruction set key_valid_until = clock_timestamp()").await;
    let sent = receiver.log().len();
    cluster.replica(0).start();
    cluster.wait_leader(READY).await;
    cluster.wait_payouts(&[("held", 1)]).await;
    assert_eq!(receiver.log().len(), sent, "and not sent again");
    cluster.assert_audited();
}
