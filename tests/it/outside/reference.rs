//! The reference receiver holds what a receiver has to hold, and bursar's signatures are what it verifies.

#[path = "../../../examples/receiver/signature.rs"]
mod signature;

use bursar::settlement::http::{Receiver as Client, Verdict};

use self::signature::{Signed, is_signed};
use super::ground::{definition, open, payout, receiver, try_key};
use crate::support::receiver::{Act, Receiver};
use crate::support::scratch;

#[tokio::test]
async fn one_key_is_paid_once_however_often_and_at_once_it_is_asked_for() {
    let bank = Receiver::start().await;
    let clients: Vec<Client> = (0..12).map(|n| receiver(&bank.url(), n % 2 == 0)).collect();
    let gate = open();
    let all = futures_util::future::join_all(clients.iter().map(|client| try_key(client, &gate, "k", 7))).await;
    let first = Verdict::Paid { reference: Some("P00000001".to_owned()) };
    assert!(all.iter().all(|verdict| *verdict == first), "{all:?}");
    bank.judge();
}

#[tokio::test]
async fn a_lower_token_than_the_highest_seen_is_refused_and_nothing_is_done() {
    let bank = Receiver::start().await;
    let client = receiver(&bank.url(), false);
    assert_eq!(try_key(&client, &open(), "k0", 9).await.as_str(), "paid");
    let fenced = try_key(&client, &open(), "k1", 8).await;
    assert!(matches!(fenced, Verdict::Fenced { highest } if highest.get() == 9), "{fenced:?}");
    assert_eq!(bank.payment("k1").await, None);
    // Also for what was paid: a leader that was replaced learns nothing but that.
    assert_eq!(try_key(&client, &open(), "k0", 8).await.as_str(), "fenced");
    assert_eq!(try_key(&client, &open(), "k1", 9).await.as_str(), "paid");
    bank.judge();
}

#[tokio::test]
async fn a_known_key_with_another_body_is_refused() {
    let bank = Receiver::start().await;
    let client = receiver(&bank.url(), false);
    assert_eq!(try_key(&client, &open(), "k", 7).await.as_str(), "paid");
    let (body, fence) = (payout("other"), super::ground::fence(7));
    let request = bursar::settlement::http::Request {
        key: "k",
        body: &body,
        fence: &fence,
        in_doubt: true,
        store_time: super::ground::store_time(),
        not_after: None,
    };
    assert_eq!(client.send(&request, &open()).await, Verdict::RefusedInDoubt { status: 422 });
}

#[tokio::test]
async fn a_request_is_signed_under_every_secret_of_the_time() {
    let bank = Receiver::start().await;
    let folder = scratch::folder("secrets");
    let (old, new) = (folder.join("old"), folder.join("new"));
    std::fs::write(&old, "0123456789abcdef-old\n").expect("written");
    std::fs::write(&new, "0123456789abcdef-new\n").expect("written");
    let mut rules = definition(&bank.url(), true);
    rules.lookup_url = Some(bank.lookup_url());
    rules.secret_files = vec![old.display().to_string(), new.display().to_string()];
    let client = Client::new(rules).expect("a receiver");
    assert_eq!(try_key(&client, &open(), "k", 7).await.as_str(), "paid");
    let logged = &bank.log()[0];
    let header = logged.signature.as_deref().expect("signed");
    let signed =
        Signed { method: "POST", key: &logged.key, token: logged.token, scope: &logged.scope, body: &logged.body };
    let now = bursar::clock::wall().timestamp();
    let under = |secret: &str, signed: &Signed<'_>, now| is_signed(header, signed, &[secret.into()], now);
    assert!(under("0123456789abcdef-old", &signed, now) && under("0123456789abcdef-new", &signed, now));
    assert!(!under("0123456789abcdef-oth", &signed, now));
    assert!(!under("0123456789abcdef-new", &signed, now + 400), "an old request is no good later");
    for changed in [
        Signed { token: 8, ..signed },
        Signed { key: "l", ..signed },
        Signed { scope: "d/s", ..signed },
        Signed { body: b"{}", ..signed },
        Signed { method: "GET", ..signed },
    ] {
        assert!(!under("0123456789abcdef-new", &changed, now), "{changed:?}");
    }
}

#[tokio::test]
async fn nothing_is_sent_where_a_secret_was_never_readable() {
    let bank = Receiver::start().await;
    let mut rules = definition(&bank.url(), false);
    rules.secret_files = vec!["/nowhere/secret".to_owned()];
    let verdict = try_key(&Client::new(rules).expect("a receiver"), &open(), "k", 7).await;
    assert!(matches!(&verdict, Verdict::Undone { why, .. } if why.contains("/nowhere/secret")), "{verdict:?}");
    assert_eq!(bank.log(), []);
}

#[tokio::test]
async fn the_receiver_of_the_tests_does_as_it_is_told() {
    let bank = Receiver::start().await;
    let client = receiver(&bank.url(), true);
    bank.on_key("a", [Act::Say(crate::support::receiver::say(409, &[], ""))]);
    bank.next([Act::Reset]);
    bank.always(Some(Act::Say(crate::support::receiver::say(503, &[("retry-after", "0")], ""))));
    let mut found = Vec::new();
    for key in ["a", "b", "b"] {
        found.push(try_key(&client, &open(), key, 7).await.as_str());
    }
    assert_eq!(found, ["later", "unknown", "later"]);
    bank.always(None);
    assert_eq!(try_key(&client, &open(), "b", 7).await.as_str(), "paid");
    assert_eq!(bank.tries("b").len(), 3);
    bank.judge();
}
