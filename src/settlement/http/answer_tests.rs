//! The table of verdicts, row by row, and what holds for all of it.

use proptest::prelude::*;

use super::*;

const BODY: &[u8] = br#"{"key":"k","amount_minor":"10900","currency":"EUR"}"#;

fn rules(idempotent: bool) -> ReceiverDefinition {
    ReceiverDefinition {
        url: "https://bank/".to_owned(),
        idempotent,
        key_valid_for: Duration::from_hours(20),
        refusals: [402, 422].into(),
        max_refusals: 20,
        not_done: [503].into(),
        timeout: Duration::from_secs(10),
        secret_files: Vec::new(),
        tls_ca: None,
        lookup_url: None,
        max_per_second: None,
        max_in_flight: 16,
    }
}

fn term(number: i64) -> Term {
    Term::new(number).expect("not negative")
}

fn judge(seen: &Seen, idempotent: bool, in_doubt: bool) -> Verdict {
    let expected = Expected::of("k", BODY);
    let store_now = DateTime::from_timestamp(1_800_000_000, 0).expect("in range");
    verdict(seen, &rules(idempotent), Asked { expected: &expected, term: term(7), in_doubt, store_now })
}

fn answer(status: u16, body: &str) -> Seen {
    Seen::Answer(Response { status, body: Body::Whole(body.as_bytes().to_vec()), ..Response::default() })
}

#[test]
fn each_status_has_its_verdict_by_the_kind_of_receiver() {
    for (status, idempotent, other) in [
        (101, "unknown", "unknown"),
        (302, "stopped", "unknown"),
        (400, "stopped", "unknown"),
        (401, "stopped", "stopped"),
        (402, "rejected", "rejected"),
        (403, "stopped", "stopped"),
        (404, "stopped", "unknown"),
        (405, "unknown", "unknown"),
        (408, "unknown", "unknown"),
        (409, "later", "unknown"),
        (410, "unknown", "unknown"),
        (412, "unknown", "unknown"),
        (425, "undone", "undone"),
        (429, "undone", "undone"),
        (500, "later", "unknown"),
        (502, "later", "unknown"),
        (503, "undone", "undone"),
        (600, "unknown", "unknown"),
    ] {
        let both = [true, false].map(|kind| judge(&answer(status, "{}"), kind, false).as_str());
        assert_eq!(both, [idempotent, other], "{status}");
    }
    assert_eq!(judge(&answer(422, ""), true, true), Verdict::RefusedInDoubt { status: 422 });
    assert_eq!(judge(&answer(422, ""), true, false), Verdict::Rejected { status: 422 });
}

#[test]
fn a_success_is_a_payment_only_with_a_body_that_agrees() {
    let paid = |body: &str| judge(&answer(200, body), false, true);
    assert_eq!(paid(r#"{"key":"k","reference":"R"}"#), Verdict::Paid { reference: Some("R".to_owned()) });
    assert_eq!(paid(""), Verdict::Paid { reference: None });
    for body in [r#"{"amount_minor":"10901"}"#, "<html>Down for maintenance</html>"] {
        assert_eq!(paid(body).as_str(), "mismatch", "{body}");
    }
    for (body, expected) in [(Body::Broken, "unknown"), (Body::TooLong, "mismatch"), (Body::Encoded, "mismatch")] {
        let seen = Seen::Answer(Response { status: 201, body, ..Response::default() });
        assert_eq!(judge(&seen, true, false).as_str(), expected, "{seen:?}");
    }
}

#[test]
fn a_higher_token_fences_and_a_lower_one_contradicts_itself() {
    let fenced = |value: &str| {
        let fencing_highest = Some(value.to_owned());
        let seen = Seen::Answer(Response { status: 412, fencing_highest, ..Response::default() });
        judge(&seen, false, false)
    };
    assert_eq!(fenced("8"), Verdict::Fenced { highest: term(8) });
    for value in ["7", "6", "-8", "+8", "8.0", "", "many", "99999999999999999999"] {
        assert_eq!(fenced(value).as_str(), "unknown", "{value}");
    }
}

#[test]
fn what_never_left_is_undone_and_what_may_have_left_is_unknown() {
    let text = || "x".to_owned();
    for (seen, expected) in [
        (Seen::Unsent(Unsent::NoLeave), "not_sent"),
        (Seen::Unsent(Unsent::TooLate), "not_sent"),
        (Seen::Unsent(Unsent::NotConnected(text())), "undone"),
        (Seen::Unsent(Unsent::Unsigned(text())), "undone"),
        (Seen::Unsent(Unsent::Unfit(text())), "undone"),
        (Seen::Unsent(Unsent::NotYet(Duration::from_secs(1))), "undone"),
        (Seen::Unsent(Unsent::Untrusted(text())), "stopped"),
        (Seen::Silence(text()), "unknown"),
    ] {
        for idempotent in [true, false] {
            assert_eq!(judge(&seen, idempotent, false).as_str(), expected, "{seen:?}");
        }
    }
}

#[test]
fn a_wait_that_was_asked_for_is_handed_on() {
    for (status, expected) in [(429, "undone"), (409, "later"), (500, "later")] {
        let retry_after = Some("90".to_owned());
        let verdict = judge(&Seen::Answer(Response { status, retry_after, ..Response::default() }), true, false);
        let (Verdict::Undone { after, .. } | Verdict::Later { after, .. }) = &verdict else { panic!("{verdict:?}") };
        assert_eq!((verdict.as_str(), *after), (expected, Some(Duration::from_secs(90))));
    }
}

#[test]
fn a_wait_is_the_receivers_where_the_answer_is_about_it() {
    let store_now = DateTime::from_timestamp(1_800_000_000, 0).expect("in range");
    for (status, expected) in [(429, true), (503, true), (409, false), (425, false), (200, false)] {
        let retry_after = Some("90".to_owned());
        let seen = Seen::Answer(Response { status, retry_after, ..Response::default() });
        let wait = quiet_for(&seen, store_now);
        assert_eq!(wait, expected.then_some(Duration::from_secs(90)), "{status}");
    }
    assert_eq!(quiet_for(&answer(429, ""), store_now), None, "it names none");
}

#[test]
fn only_a_status_that_its_owner_lists_says_that_nothing_was_done_about_the_instruction_itself() {
    let of_unit = |seen: Seen| match judge(&seen, true, false) {
        Verdict::Undone { of_unit, .. } => of_unit,
        other => panic!("{other:?}"),
    };
    assert!(of_unit(answer(503, "")));
    for seen in [answer(425, ""), answer(429, ""), Seen::Unsent(Unsent::NotConnected("x".to_owned()))] {
        assert!(!of_unit(seen.clone()), "{seen:?}");
    }
}

fn bodies() -> impl Strategy<Value = Body> {
    let json =
        "\\{(\"(key|amount_minor|currency|error|status|x)\":(\"(k|EUR|10900|failed)\"|10900|1|null|\\[\\]),?){0,4}\\}?";
    prop_oneof![
        json.prop_map(|text: String| Body::Whole(text.into_bytes())),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Body::Whole),
        Just(Body::Whole(BODY.to_vec())),
        Just(Body::Broken),
        Just(Body::TooLong),
        Just(Body::Encoded),
    ]
}

fn anything_seen() -> impl Strategy<Value = Seen> {
    let header = || proptest::option::of("(.{0,30}|[0-9]{1,22})");
    let response = (0u16..1000, header(), header(), header(), bodies()).prop_map(
        |(status, retry_after, date, fencing_highest, body)| {
            Seen::Answer(Response { status, retry_after, date, fencing_highest, body })
        },
    );
    prop_oneof![
        8 => response,
        1 => Just(Seen::Silence("cut".to_owned())),
        1 => Just(Seen::Unsent(Unsent::NotConnected("refused".to_owned()))),
        1 => Just(Seen::Unsent(Unsent::Untrusted("another".to_owned()))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_taken_for_a_payment_that_is_not_a_success_without_contradiction(
        seen in anything_seen(), idempotent: bool, in_doubt: bool
    ) {
        let verdict = judge(&seen, idempotent, in_doubt);
        if let Verdict::Paid { .. } = verdict {
            let Seen::Answer(Response { status: 200..=299, body: Body::Whole(body), .. }) = &seen else {
                return Err(TestCaseError::fail(format!("{seen:?}")));
            };
            if !body.iter().all(u8::is_ascii_whitespace) {
                let value: serde_json::Value = serde_json::from_slice(body).expect("an object");
                for (name, sent) in [("key", "k"), ("amount_minor", "10900"), ("currency", "EUR")] {
                    let agrees = match &value[name] {
                        serde_json::Value::Null => true,
                        serde_json::Value::String(text) => text == sent,
                        serde_json::Value::Number(number) => number.to_string() == sent,
                        _ => false,
                    };
                    prop_assert!(agrees, "{value}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_rejected_while_an_earlier_try_is_in_doubt(seen in anything_seen(), idempotent: bool) {
        let rejected = matches!(judge(&seen, idempotent, true), Verdict::Rejected { .. });
        prop_assert!(!rejected);
    }

    #[test]
    fn a_receiver_that_is_not_idempotent_is_sent_the_same_again_only_where_nothing_was_done(
        seen in anything_seen(), in_doubt: bool
    ) {
        let verdict = judge(&seen, false, in_doubt);
        if verdict.may_be_sent_again(false) {
            let proved = match &seen {
                Seen::Unsent(_) => true,
                Seen::Silence(_) => false,
                Seen::Answer(response) => match response.status {
                    401 | 403 | 425 | 429 | 503 => true,
                    412 => matches!(&verdict, Verdict::Fenced { highest } if *highest > term(7)),
                    _ => false,
                },
            };
            prop_assert!(proved, "{seen:?}: {verdict:?}");
            prop_assert!(!verdict.leaves_doubt());
        }
        let later = matches!(verdict, Verdict::Later { .. });
        prop_assert!(!later);
    }

    #[test]
    fn a_verdict_is_as_before_or_leaves_doubt_or_ends_it(seen in anything_seen(), idempotent: bool, in_doubt: bool) {
        let verdict = judge(&seen, idempotent, in_doubt);
        prop_assert!(!(verdict.is_as_before() && verdict.leaves_doubt()), "{verdict:?}");
        prop_assert!(verdict.may_be_sent_again(true) || !verdict.may_be_sent_again(false));
    }
}
