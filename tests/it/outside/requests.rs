//! What goes out: when, how often, on which connection, with what in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bursar::clock::boottime;
use bursar::domain::outside::ReceiverDefinition;
use bursar::settlement::Departure;
use bursar::settlement::http::{LookUp, Receiver as Client, Receivers, Request, Verdict};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::ground::{
    Gate, Raw, definition, fence, open, payout, read_request, receiver, shut, store_time, try_key, try_once,
};
use crate::support::receiver::{Act, Receiver, say};

#[tokio::test]
async fn a_request_has_key_token_scope_and_the_stored_bytes() {
    let bank = Receiver::start().await;
    let verdict = try_once(&receiver(&bank.url(), false), &open()).await;
    assert_eq!(verdict, Verdict::Paid { reference: Some("P00000001".to_owned()) });
    let [logged] = bank.log().try_into().expect("one request");
    assert_eq!((logged.method.as_str(), logged.target.as_str()), ("POST", "/payouts"));
    assert_eq!((logged.key.as_str(), logged.token, logged.scope.as_str()), ("k", 7, "deployment/settlement"));
    assert_eq!((logged.body, logged.signature), (payout("k"), None));
    assert_eq!(bank.payment("k").await.expect("paid")["amount_minor"], "10900");
    bank.judge();
}

#[tokio::test]
async fn without_leave_or_in_time_no_byte_leaves() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let raw = Raw::start(move |mut stream| {
        let seen = Arc::clone(&counted);
        async move {
            let mut bytes = Vec::new();
            let _ = stream.read_to_end(&mut bytes).await;
            seen.fetch_add(bytes.len(), Ordering::SeqCst);
        }
    })
    .await;
    for idempotent in [true, false] {
        let client = receiver(&raw.url, idempotent);
        assert_eq!(try_once(&client, &shut()).await, Verdict::NotSent);
        let (body, fence) = (payout("k"), fence(7));
        let late = Request {
            key: "k",
            body: &body,
            fence: &fence,
            in_doubt: false,
            store_time: store_time(),
            not_after: Some(boottime()),
        };
        assert_eq!(client.send(&late, &open()).await, Verdict::NotSent);
    }
    // Leave is asked when the connection is up: so there were some, and nothing came on them.
    assert_eq!((raw.connections(), seen.load(Ordering::SeqCst)), (4, 0));
}

#[tokio::test]
async fn leave_is_asked_once_for_each_request_that_leaves() {
    let bank = Receiver::start().await;
    let client = receiver(&bank.url(), true);
    let gate = Arc::new(Gate::default());
    for n in 0..3 {
        let departure = Departure::new(Arc::clone(&gate) as _);
        assert_eq!(try_key(&client, &departure, &format!("k{n}"), 7).await.as_str(), "paid");
        assert!(departure.has_departed());
    }
    assert_eq!(gate.asked.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_receiver_that_is_not_idempotent_gets_a_fresh_connection_each_time() {
    for (idempotent, expected) in [(true, [0, 0, 0]), (false, [0, 1, 2])] {
        let bank = Receiver::start().await;
        let client = receiver(&bank.url(), idempotent);
        for n in 0..3 {
            assert_eq!(try_key(&client, &open(), &format!("k{n}"), 7).await.as_str(), "paid");
        }
        let connections: Vec<usize> = bank.log().iter().map(|logged| logged.connection).collect();
        assert_eq!(connections, expected, "idempotent: {idempotent}");
    }
}

#[tokio::test]
async fn a_connection_that_dies_when_it_is_used_again_makes_no_second_payment() {
    let bank = Receiver::start().await;
    let client = receiver(&bank.url(), true);
    assert_eq!(try_key(&client, &open(), "k0", 7).await.as_str(), "paid");
    bank.on_key("k1", [Act::BookAndReset]);
    assert_eq!(try_key(&client, &open(), "k1", 7).await.as_str(), "unknown");
    assert_eq!(bank.tries("k1").len(), 1, "nothing is tried again by itself");
    assert_eq!(bank.tries("k1")[0].connection, 0, "it was used again");
    // What the caller sends again has the same key, and gets the first answer.
    let reference = Some("P00000002".to_owned());
    assert_eq!(try_key(&client, &open(), "k1", 8).await, Verdict::Paid { reference });
    bank.judge();
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_is_not_used_again() {
    let raw = Raw::start(|mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(say(204, &[], "").as_bytes()).await;
        // Closed without a word in the answer's head.
    })
    .await;
    let client = receiver(&raw.url, true);
    for n in 0..5 {
        assert_eq!(try_key(&client, &open(), &format!("k{n}"), 7).await.as_str(), "paid");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(raw.connections(), 5);
}

#[tokio::test]
async fn no_more_than_the_limits_are_on_the_wire_or_leave_in_a_second() {
    let bank = Receiver::start().await;
    let now = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (at_once, highest) = (Arc::clone(&now), Arc::clone(&most));
    let raw = Raw::start(move |mut stream| {
        let (at_once, highest) = (Arc::clone(&at_once), Arc::clone(&highest));
        async move {
            read_request(&mut stream).await;
            highest.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(30)).await;
            at_once.fetch_sub(1, Ordering::SeqCst);
            let _ = stream.write_all(say(204, &[], "").as_bytes()).await;
        }
    })
    .await;
    let mut rules = definition(&raw.url, false);
    rules.max_in_flight = 3;
    let client = Client::new(rules).expect("a receiver");
    let gate = open();
    let keys: Vec<String> = (0..12).map(|n| format!("k{n}")).collect();
    let all = futures_util::future::join_all(keys.iter().map(|key| try_key(&client, &gate, key, 7))).await;
    assert!(all.iter().all(|verdict| verdict.as_str() == "paid"), "{all:?}");
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert_eq!(client.free(), 3);

    let mut rules = definition(&bank.url(), true);
    rules.max_per_second = Some(20);
    let client = Client::new(rules).expect("a receiver");
    let began = bursar::clock::boottime();
    futures_util::future::join_all(keys.iter().map(|key| try_key(&client, &gate, key, 7))).await;
    let took = bursar::clock::boottime().since(began);
    // Eleven intervals of 50 ms lie between the first and the last that leave, however late each arrives.
    assert!(bank.log().len() == 12 && took >= Duration::from_millis(550), "{took:?}");
}

#[tokio::test]
async fn the_strictest_limits_of_an_origin_hold_for_all_definitions_of_it() {
    let bank = Receiver::start().await;
    let known = Receivers::default();
    let of = |change: fn(&mut ReceiverDefinition)| {
        let mut rules = definition(&bank.url(), true);
        change(&mut rules);
        known.of(&rules).expect("a receiver")
    };
    let (one, other) = (of(|rules| rules.max_in_flight = 2), of(|rules| rules.max_per_second = Some(20)));
    let gate = open();
    let keys: Vec<String> = (0..12).map(|n| format!("k{n}")).collect();
    // Both have come before it is looked at.
    assert_eq!(try_key(&one, &gate, "first", 7).await.as_str(), "paid");
    let began = boottime();
    let all = keys.iter().enumerate().map(|(n, key)| try_key(if n % 2 == 0 { &other } else { &one }, &gate, key, 7));
    futures_util::future::join_all(all).await;
    let took = boottime().since(began);
    assert!(bank.log().len() == 13 && took >= Duration::from_millis(550), "{took:?}");
    assert_eq!((one.free(), other.free()), (2, 2));
    let elsewhere = Receiver::start().await;
    assert_eq!(known.of(&definition(&elsewhere.url(), true)).expect("a receiver").free(), 16);
}

#[tokio::test]
async fn a_look_up_proves_a_payment_and_nothing_else() {
    let bank = Receiver::start().await;
    let mut rules = definition(&bank.url(), true);
    rules.lookup_url = Some(bank.lookup_url());
    let client = Client::new(rules).expect("a receiver");
    let (body, fence) = (payout("k"), fence(7));
    let request =
        Request { key: "k", body: &body, fence: &fence, in_doubt: true, store_time: store_time(), not_after: None };
    let nothing = client.look_up(&request, &open()).await.expect("offered");
    assert!(matches!(nothing, LookUp::Nothing { .. }), "{nothing:?}");
    bank.next([Act::BookAndReset]);
    assert_eq!(client.send(&request, &open()).await.as_str(), "unknown");
    let paid = client.look_up(&request, &open()).await.expect("offered");
    assert_eq!(paid, LookUp::Paid { reference: Some("P00000001".to_owned()) });
    let refused = client.look_up(&request, &shut()).await.expect("offered");
    assert_eq!(refused, LookUp::NoLeave);
    let log = bank.log();
    assert_eq!((log.len(), log[2].method.as_str(), log[2].target.as_str()), (3, "GET", "/payouts/k"));
    assert!(log[2].body.is_empty());
    assert_eq!(receiver(&bank.url(), true).look_up(&request, &open()).await, None);
    bank.judge();
}

#[tokio::test]
async fn a_request_that_is_dropped_closes_its_connection() {
    let (closed, is_closed) = tokio::sync::oneshot::channel();
    let closed = Arc::new(std::sync::Mutex::new(Some(closed)));
    let raw = Raw::start(move |mut stream| {
        let closed = Arc::clone(&closed);
        async move {
            read_request(&mut stream).await;
            let _ = stream.read(&mut [0]).await;
            if let Some(closed) = closed.lock().expect("not poisoned").take() {
                let _ = closed.send(());
            }
        }
    })
    .await;
    let client = receiver(&raw.url, true);
    let cut = tokio::time::timeout(Duration::from_millis(300), try_once(&client, &open())).await;
    assert!(cut.is_err(), "{cut:?}");
    let told = tokio::time::timeout(Duration::from_secs(5), is_closed).await;
    told.expect("in time").expect("closed");
    assert_eq!(client.free(), 16);
}
