//! What a receiver answers, and what it does not.

use super::*;
use crate::support::receiver::{Act, say};
use crate::support::{LedgerJob, holds_for};

/// Long enough for several tries, were there any.
const A_WHILE: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_payment_that_was_booked_and_answered_too_late_is_made_once_under_the_same_key_and_bytes() {
    let receiver = Receiver::start().await;
    let cluster = one_replica(&job(&receiver, true).payout("timeout", "\"500ms\"")).await;
    receiver.next([Act::BookSlowly(Duration::from_secs(2)), Act::BookAndReset]);
    cluster.import(&entries(1), "psp").ok();
    let run = cluster.run_now("daily").await;
    let before = cluster.unit_shown(run, "EUR:m0")["instructions"][0].clone();
    // More comes in meanwhile: it waits for the next run.
    cluster.import(&Entries::with_ids("n").capture("m0", "EUR", "5.00"), "psp").ok();
    let key = cluster.wait_payouts(&[("paid", 1)]).await["paid"][0].clone();
    let after = cluster.unit_shown(run, "EUR:m0")["instructions"][0].clone();
    assert_eq!((&before["key"], &before["amount"]), (&after["key"], &after["amount"]));
    assert!(receiver.tries(&key).len() >= 3, "{:?}", receiver.tries(&key));
    let shown = cluster.command(&["payouts", "show", &key, "--json"]).ok().json();
    let booked = receiver.payment(&key).await.expect("it is booked");
    assert_eq!(shown["reference"], booked["reference"], "under the first reference");
    cluster.run_now("daily").await;
    cluster.wait_payouts(&[("paid", 2)]).await;
    cluster.assert_paid_soundly(&receiver).await;
}

#[tokio::test]
async fn in_progress_is_waited_out_and_never_rejected() {
    let receiver = Receiver::start().await;
    let cluster = one_replica(&job(&receiver, true)).await;
    receiver.next(vec![Act::Say(say(409, &[("retry-after", "1")], "")); 3]);
    cluster.import(&entries(1), "psp").ok();
    cluster.run_now("daily").await;
    let key = cluster.wait_payouts(&[("paid", 1)]).await["paid"][0].clone();
    let tries = receiver.tries(&key);
    assert_eq!(tries.len(), 4);
    for pair in tries.windows(2) {
        assert!(pair[1].at.since(pair[0].at) >= Duration::from_secs(1), "it was asked to wait");
    }
    cluster.assert_paid_soundly(&receiver).await;
}

#[tokio::test]
async fn a_refusal_is_reversed_and_one_after_a_doubt_is_held() {
    let receiver = Receiver::start().await;
    let cluster = one_replica(&job(&receiver, true).payout("max_in_flight", "1")).await;
    receiver.next([Act::Say(say(422, &[], ""))]);
    cluster.import(&entries(3), "psp").ok();
    cluster.run_now("daily").await;
    cluster.wait_payouts(&[("paid", 2), ("rejected", 1)]).await;
    // The net is back and the next run sends it under another key.
    receiver.next([Act::BookAndReset, Act::Say(say(422, &[], ""))]);
    cluster.run_now("daily").await;
    let payouts = cluster.wait_payouts(&[("paid", 2), ("rejected", 1), ("held", 1)]).await;
    let held = cluster.command(&["payouts", "show", &payouts["held"][0], "--json"]).ok().json();
    assert_eq!((&held["reason"], &held["in_doubt"]), (&"unknown".into(), &true.into()), "{held}");
    assert!(
        receiver.payment(&payouts["held"][0]).await.is_some(),
        "and it was booked: reversed, it would be paid twice"
    );
    assert!(receiver.payment(&payouts["rejected"][0]).await.is_none());
    // A person finds out.
    cluster
        .command(&["payouts", "resolve", &payouts["held"][0], "--paid", "STMT-7", "--reason", "on the statement"])
        .ok();
    cluster.wait_payouts(&[("paid", 3), ("rejected", 1)]).await;
    cluster.assert_paid_soundly(&receiver).await;
}

#[tokio::test]
async fn what_a_receiver_that_is_not_idempotent_leaves_open_is_held_and_not_sent_again() {
    let receiver = Receiver::start().await;
    let job = job(&receiver, false).payout("max_in_flight", "1").payout("timeout", "\"500ms\"");
    let cluster = one_replica(&job).await;
    let elsewhere = Receiver::start().await;
    let location = elsewhere.url();
    receiver.next([
        Act::Silence,
        Act::Say(say(502, &[], "")),
        Act::Say(say(404, &[], "")),
        Act::Say(say(302, &[("location", location.as_str())], "")),
        Act::BookAndReset,
        Act::Say(say(429, &[], "")),
    ]);
    cluster.import(&entries(7), "psp").ok();
    cluster.run_now("daily").await;
    let payouts = cluster.wait_payouts(&[("paid", 2), ("held", 5)]).await;
    holds_for(A_WHILE, "what is held is not sent again", async || {
        match payouts["held"].iter().find(|key| receiver.tries(key).len() != 1) {
            None => Ok(()),
            Some(key) => Err(format!("{key} was sent {} times", receiver.tries(key).len())),
        }
    })
    .await;
    assert_eq!(elsewhere.log(), [], "a redirect is not followed");
    let again = payouts["paid"].iter().filter(|key| receiver.tries(key).len() == 2).count();
    assert_eq!(again, 1, "a 429 proves that nothing was done");
    cluster.assert_paid_soundly(&receiver).await;
}

#[tokio::test]
async fn an_expired_token_stops_the_sending_and_it_goes_on_where_it_was() {
    let receiver = Receiver::start().await;
    let cluster = one_replica(&job(&receiver, true)).await;
    receiver.always(Some(Act::Say(say(401, &[], ""))));
    cluster.import(&entries(20), "psp").ok();
    cluster.run_now("daily").await;
    eventually(PAID, "the receiver is stopped", async || {
        let stopped = cluster.command(&["receivers", "list", "--json"]).ok().json();
        (stopped[0]["reason"] == "unauthorized").then_some(())
    })
    .await;
    let payouts = cluster.payouts().await;
    assert!(!payouts.contains_key("rejected") && !payouts.contains_key("held"), "{payouts:?}");
    // One is tried per wait: not all of them again and again.
    let before = receiver.log().len();
    holds_for(A_WHILE, "one is tried per wait", async || {
        let tried = receiver.log().len() - before;
        if tried <= 60 { Ok(()) } else { Err(format!("{tried} tries")) }
    })
    .await;
    receiver.always(None);
    cluster.wait_payouts(&[("paid", 20)]).await;
    let stopped = cluster.command(&["receivers", "list", "--json"]).ok().json();
    assert_eq!(stopped, serde_json::json!([]));
    cluster.assert_paid_soundly(&receiver).await;
}

#[tokio::test]
async fn an_echo_of_another_amount_and_an_error_page_are_held_as_a_mismatch() {
    let receiver = Receiver::start().await;
    let cluster = one_replica(&job(&receiver, true).payout("max_in_flight", "1")).await;
    receiver.next([
        Act::Say(say(200, &[], r#"{"amount_minor":"999","currency":"EUR"}"#)),
        Act::Say(say(200, &[("content-type", "text/html")], "<html>Service unavailable</html>")),
    ]);
    cluster.import(&entries(3), "psp").ok();
    cluster.run_now("daily").await;
    let payouts = cluster.wait_payouts(&[("paid", 1), ("held", 2)]).await;
    for key in &payouts["held"] {
        let shown = cluster.command(&["payouts", "show", key, "--json"]).ok().json();
        assert_eq!(shown["reason"], "mismatch", "{shown}");
        assert_eq!(receiver.tries(key).len(), 1);
    }
    cluster.assert_paid_soundly(&receiver).await;
}

#[tokio::test]
async fn neither_token_nor_body_goes_where_a_redirect_points_and_the_receiver_is_stopped() {
    let (receiver, elsewhere) = (Receiver::start().await, Receiver::start().await);
    let cluster = one_replica(&job(&receiver, true)).await;
    let location = elsewhere.url();
    receiver.always(Some(Act::Say(say(307, &[("location", location.as_str())], ""))));
    cluster.import(&entries(2), "psp").ok();
    cluster.run_now("daily").await;
    eventually(PAID, "the receiver is stopped", async || {
        let stopped = cluster.command(&["receivers", "list", "--json"]).ok().json();
        (stopped[0]["reason"] == "redirect").then_some(())
    })
    .await;
    assert_eq!(elsewhere.log(), []);
    receiver.always(None);
    cluster.wait_payouts(&[("paid", 2)]).await;
    assert_eq!(elsewhere.log(), []);
    cluster.assert_paid_soundly(&receiver).await;
}

#[tokio::test]
async fn a_slow_receiver_does_not_hold_up_another_jobs() {
    let (slow, quick) = (Receiver::start().await, Receiver::start().await);
    let of = |name: &str, source: &str, receiver: &Receiver| {
        LedgerJob::new(name)
            .ledger("sources", &format!("[\"{source}\"]"))
            .paying(&receiver.url())
            .payout("idempotent", "true")
    };
    let schedule = of("slow", "one", &slow).text() + &of("quick", "two", &quick).text();
    let cluster = Setup::new(1, &schedule).steady().start().await;
    cluster.wait_leader(READY).await;
    slow.always(Some(Act::Silence));
    cluster.import(&entries(40), "one").ok();
    cluster.import(&entries(40), "two").ok();
    cluster.run_now("slow").await;
    eventually(PAID, "the slow one is in the middle", async || (slow.log().len() >= 16).then_some(())).await;
    cluster.run_now("quick").await;
    eventually(Duration::from_secs(8), "the quick one's are paid", async || {
        (cluster.payouts().await.get("paid").map(Vec::len) == Some(40)).then_some(())
    })
    .await;
    slow.always(None);
    cluster.assert_audited();
}
