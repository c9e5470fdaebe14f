//! A look-up by key: what a receiver that was not heard says when it is asked. It can prove that a payment was made, and
//! nothing else: one that is not found may be on its way.

use super::answer::{Body, Seen, Unsent};
use super::echo::{Echo, Expected, echo, every_status_is_one_of};

/// Words in `status` that say that the payment was made. A receiver that has none of them answers a look-up with 200 only
/// for payments that were made.
const SAYS_PAID: [&str; 6] = ["paid", "booked", "executed", "completed", "settled", "succeeded"];

/// What a look-up came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookUp {
    /// The payment was made.
    Paid {
        /// The receiver's own name for it.
        reference: Option<String>,
    },
    /// The receiver has something else under this key: held (`mismatch`).
    Mismatch {
        /// In what.
        why: String,
    },
    /// It was not asked: leave was refused, or the receiver had asked for a wait.
    NoLeave,
    /// Proves nothing.
    Nothing {
        /// For a person.
        why: String,
    },
}

/// The verdict on a look-up. Paid only where the answer names the key, amount and currency that were sent, all of them.
#[must_use]
pub fn look_up_verdict(seen: &Seen, expected: &Expected) -> LookUp {
    let nothing = |why: String| LookUp::Nothing { why };
    let response = match seen {
        // Nothing is said of the payout; the lane is quiet until the receiver's wait is over.
        Seen::Unsent(Unsent::NoLeave | Unsent::TooLate | Unsent::NotYet(_)) => return LookUp::NoLeave,
        Seen::Unsent(
            Unsent::NotConnected(why) | Unsent::Untrusted(why) | Unsent::Unsigned(why) | Unsent::Unfit(why),
        ) => return nothing(format!("the look-up was not sent: {why}")),
        Seen::Silence(_) => return nothing("the look-up was not answered".to_owned()),
        Seen::Answer(response) => response,
    };
    let status = response.status;
    if !(200..=299).contains(&status) {
        return nothing(format!("the look-up was answered {status}"));
    }
    let Body::Whole(body) = &response.body else {
        return nothing(format!("the look-up was answered {status} with a body that could not be read"));
    };
    match echo(body, expected) {
        Echo::Agrees { reference, whole: true } if every_status_is_one_of(body, &SAYS_PAID) => {
            LookUp::Paid { reference }
        }
        // Another amount under our key; an error page or another state is no contradiction.
        Echo::Disagrees(what) if what.starts_with("the echo") => {
            LookUp::Mismatch { why: format!("by the look-up, {what}") }
        }
        Echo::Absent { .. } | Echo::Agrees { .. } | Echo::Disagrees(_) => {
            nothing("the look-up was answered without naming the payment as one that was made".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Response;
    use super::*;

    fn judge(status: u16, body: &str) -> LookUp {
        let sent = br#"{"key":"k","amount_minor":"10900","currency":"EUR"}"#;
        let response = Response { status, body: Body::Whole(body.as_bytes().to_vec()), ..Response::default() };
        look_up_verdict(&Seen::Answer(response), &Expected::of("k", sent))
    }

    #[test]
    fn only_a_whole_agreeing_answer_proves_a_payment() {
        let whole = r#""key":"k","amount_minor":"10900","currency":"EUR","reference":"R""#;
        let paid = LookUp::Paid { reference: Some("R".to_owned()) };
        assert_eq!(judge(200, &format!("{{{whole}}}")), paid);
        assert_eq!(judge(200, &format!("{{{whole},\"status\":\"paid\"}}")), paid);
        for (status, body) in [
            (404, format!("{{{whole}}}")),
            (500, String::new()),
            (200, String::new()),
            (200, "{}".to_owned()),
            (200, r#"{"key":"k"}"#.to_owned()),
            (200, "<html>".to_owned()),
            (200, format!("{{{whole},\"status\":\"pending\"}}")),
            (200, format!("{{{whole},\"status\":\"rejected\"}}")),
            (200, format!("{{{whole},\"status\":\"paid\",\"status\":\"pending\"}}")),
            (200, format!("{{{whole},\"status\":3}}")),
        ] {
            assert!(matches!(judge(status, &body), LookUp::Nothing { .. }), "{status} {body}");
        }
        let other = r#"{"key":"k","amount_minor":"1","currency":"EUR"}"#;
        assert!(matches!(judge(200, other), LookUp::Mismatch { .. }));
        let unsent = |unsent| look_up_verdict(&Seen::Unsent(unsent), &Expected::default());
        assert_eq!(unsent(Unsent::NoLeave), LookUp::NoLeave);
        for (why, unsent) in [
            ("no route", unsent(Unsent::NotConnected("no route".to_owned()))),
            ("expired", unsent(Unsent::Untrusted("expired".to_owned()))),
            ("no such file", unsent(Unsent::Unsigned("no such file".to_owned()))),
        ] {
            assert!(matches!(&unsent, LookUp::Nothing { why: told } if told.contains(why)), "{unsent:?}");
        }
        assert!(matches!(look_up_verdict(&Seen::Silence(String::new()), &Expected::default()), LookUp::Nothing { .. }));
    }
}
