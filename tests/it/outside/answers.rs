//! Whatever a server does to a connection, the verdict is true, and nothing is tried again by itself.

use std::time::Duration;

use bursar::clock::boottime;
use bursar::settlement::http::{MOST_ANSWER_BYTES, Receivers, StopReason, Verdict};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::ground::{Raw, definition, open, read_request, receiver, try_once};
use crate::support::receiver::say;
use crate::support::repetitions;

const ECHO: &str = r#"{"key":"k","amount_minor":"10900","currency":"EUR","reference":"R1"}"#;

async fn verdicts(text: &str) -> [&'static str; 2] {
    let mut found = [""; 2];
    for (place, idempotent) in [(0, true), (1, false)] {
        let raw = Raw::saying(text).await;
        found[place] = try_once(&receiver(&raw.url, idempotent), &open()).await.as_str();
        assert_eq!(raw.connections(), 1, "nothing is tried again by itself");
    }
    found
}

#[tokio::test]
async fn a_payment_is_what_the_answer_says_and_no_less() {
    let raw = Raw::saying(say(201, &[], ECHO)).await;
    let verdict = try_once(&receiver(&raw.url, false), &open()).await;
    assert_eq!(verdict, Verdict::Paid { reference: Some("R1".to_owned()) });
    assert_eq!(verdicts(&say(204, &[], "")).await, ["paid", "paid"]);
    let early = format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\n\r\n{}", say(200, &[], ECHO));
    assert_eq!(verdicts(&early).await, ["paid", "paid"]);
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    assert_eq!(verdicts(chunked).await, ["paid", "paid"]);
    assert_eq!(verdicts(&format!("HTTP/1.0 200 OK\r\n\r\n{ECHO}")).await, ["paid", "paid"]);
    assert_eq!(verdicts(&say(200, &[], "<html>Sorry</html>")).await, ["mismatch", "mismatch"]);
    assert_eq!(verdicts(&say(200, &[], &ECHO.replace("10900", "10901"))).await, ["mismatch", "mismatch"]);
    assert_eq!(verdicts(&say(200, &[("content-encoding", "gzip")], "\x1f\x08bomb")).await, ["mismatch", "mismatch"]);
    let long = format!("{{\"key\":\"k\",\"x\":\"{}\"}}", "x".repeat(MOST_ANSWER_BYTES));
    assert_eq!(verdicts(&say(200, &[], &long)).await, ["mismatch", "mismatch"]);
}

#[tokio::test]
async fn half_an_answer_is_not_known() {
    for text in [
        "",
        "HTTP/1.1 2",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"key\":\"k\"",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"k",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "\0\0\0\0",
    ] {
        assert_eq!(verdicts(text).await, ["unknown", "unknown"], "{text}");
    }
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_is_not_taken_for_that_of_the_next_request() {
    let raw = Raw::start(|mut stream| async move {
        read_request(&mut stream).await;
        let both = format!("{}{}", say(201, &[], ECHO), say(201, &[], "{}"));
        let _ = stream.write_all(both.as_bytes()).await;
        // The next request on this connection has no answer of its own.
        read_request(&mut stream).await;
    })
    .await;
    let client = receiver(&raw.url, true);
    assert_eq!(try_once(&client, &open()).await.as_str(), "paid");
    let verdict = super::ground::try_key(&client, &open(), "l", 7).await;
    // On a connection of its own it gets the first answer, whose key is another one.
    assert_eq!((verdict.as_str(), raw.connections()), ("mismatch", 2));
}

#[tokio::test]
async fn an_answer_that_was_mangled_on_its_way_is_judged_without_a_panic() {
    use proptest::strategy::{Strategy as _, ValueTree as _};
    let whole = say(201, &[("retry-after", "1"), ("date", "Sun, 06 Nov 1994 08:49:37 GMT")], ECHO).into_bytes();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let changes = proptest::collection::vec((0..whole.len(), proptest::num::u8::ANY), 1..4);
    let mut paid = 0;
    for _ in 0..repetitions("mangled answers", 150, 3000) {
        let mut text = whole.clone();
        for (place, byte) in changes.new_tree(&mut runner).expect("a value").current() {
            text[place] = byte;
        }
        let sent = text.clone();
        let raw = Raw::start(move |mut stream| {
            let text = text.clone();
            async move {
                read_request(&mut stream).await;
                let _ = stream.write_all(&text).await;
            }
        })
        .await;
        let verdict = try_once(&receiver(&raw.url, false), &open()).await;
        if let Verdict::Paid { .. } = verdict {
            paid += 1;
            let text = String::from_utf8_lossy(&sent).into_owned();
            assert!(text.starts_with("HTTP/1.") && text[8..].starts_with(" 2"), "{text}");
            assert!(!text.contains("\"amount_minor\"") || text.contains("\"10900\""), "{text}");
        }
        assert!(!matches!(verdict, Verdict::Later { .. }), "{verdict:?}");
    }
    assert!(paid > 0, "some changes are harmless");
}

#[tokio::test]
async fn an_endless_head_ends_at_its_bound() {
    let raw = Raw::start(|mut stream| async move {
        read_request(&mut stream).await;
        let mut said = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        while said.is_ok() {
            said = stream.write_all(b"x-more: and more\r\n").await;
        }
    })
    .await;
    assert_eq!(try_once(&receiver(&raw.url, false), &open()).await.as_str(), "unknown");
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_stops_an_idempotent_receiver() {
    let other = Raw::saying(say(200, &[], ECHO)).await;
    for (idempotent, expected) in [(true, "stopped"), (false, "unknown")] {
        for status in [301, 302, 303, 307, 308] {
            let raw = Raw::saying(say(status, &[("location", &other.url)], "")).await;
            let verdict = try_once(&receiver(&raw.url, idempotent), &open()).await;
            assert_eq!(verdict.as_str(), expected, "{status}");
            if idempotent {
                assert!(matches!(verdict, Verdict::StopReceiver { reason: StopReason::Redirect, .. }));
            }
        }
    }
    assert_eq!(other.connections(), 0, "neither token nor body went there");
}

#[tokio::test]
async fn silence_and_an_answer_byte_by_byte_end_at_the_time_out() {
    let silent = Raw::start(|mut stream| async move {
        read_request(&mut stream).await;
        std::future::pending::<()>().await;
    })
    .await;
    let slow = Raw::start(|mut stream| async move {
        read_request(&mut stream).await;
        for byte in say(200, &[], ECHO).bytes() {
            let _ = stream.write_all(&[byte]).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    for raw in [silent, slow] {
        let since = boottime();
        assert_eq!(try_once(&receiver(&raw.url, true), &open()).await.as_str(), "unknown");
        let took = boottime().since(since);
        assert!(took >= Duration::from_millis(1500) && took < Duration::from_secs(6), "{took:?}");
    }
}

#[tokio::test]
async fn a_connection_that_is_refused_or_lost_before_the_first_byte_proves_that_nothing_was_done() {
    let gone = {
        let raw = Raw::saying("").await;
        raw.url.clone()
    };
    let refused = super::super::support::wait::eventually(Duration::from_secs(5), "the port is closed", async || {
        let verdict = try_once(&receiver(&gone, false), &open()).await;
        matches!(verdict, Verdict::Undone { .. }).then_some(verdict)
    });
    assert!(matches!(refused.await, Verdict::Undone { why, .. } if why.contains("no connection")));
    // Closed by the server as soon as it is open: found closed before anything is written, or while.
    let closing = Raw::start(|stream| async move { drop(stream) }).await;
    let verdict = try_once(&receiver(&closing.url, false), &open()).await;
    assert!(["undone", "unknown"].contains(&verdict.as_str()), "{verdict:?}");
}

#[tokio::test]
async fn a_reset_after_the_request_was_read_is_not_known() {
    for before_reading in [true, false] {
        let raw = Raw::start(move |mut stream| async move {
            if before_reading {
                // Something has come in, and is not read: closing resets the connection.
                let _ = stream.readable().await;
            } else {
                read_request(&mut stream).await;
            }
            stream.set_zero_linger().expect("a socket");
        })
        .await;
        for idempotent in [true, false] {
            let verdict = try_once(&receiver(&raw.url, idempotent), &open()).await;
            assert_eq!(verdict.as_str(), "unknown", "{verdict:?}");
        }
        assert_eq!(raw.connections(), 2, "nothing is tried again by itself");
    }
}

#[tokio::test]
async fn an_answer_before_the_request_was_read_counts() {
    let raw = Raw::start(|mut stream| async move {
        let mut byte = [0];
        let _ = stream.read(&mut byte).await;
        let _ = stream.write_all(say(429, &[("retry-after", "7")], "").as_bytes()).await;
        let _ = stream.shutdown().await;
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    })
    .await;
    let verdict = try_once(&receiver(&raw.url, false), &open()).await;
    assert!(matches!(&verdict, Verdict::Undone { after: Some(wait), .. } if wait.as_secs() == 7), "{verdict:?}");
}

#[tokio::test]
async fn a_wait_that_a_receiver_asks_for_keeps_everything_from_it() {
    for status in [429, 503] {
        let raw = Raw::saying(say(status, &[("retry-after", "60")], "")).await;
        let all = Receivers::default();
        let one = all.of(&definition(&raw.url, true)).expect("a receiver");
        let other = all.of(&definition(&format!("{}/others", raw.url), false)).expect("a receiver");
        assert_eq!(one.quiet_for(), None);
        try_once(&one, &open()).await;
        for receiver in [&one, &other] {
            assert!(receiver.quiet_for().is_some_and(|wait| wait.as_secs() >= 50), "{status}");
            let verdict = try_once(receiver, &open()).await;
            let kept =
                matches!(&verdict, Verdict::Undone { left: false, after: Some(wait), .. } if wait.as_secs() >= 50);
            assert!(kept, "{status}: {verdict:?}");
        }
        assert_eq!(raw.connections(), 1, "{status}: nothing reaches it");
    }
}
