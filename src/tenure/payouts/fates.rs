//! What comes of one try at a payout: from what is known of it to what is recorded. Pure.

use std::time::Duration;

use crate::settlement::http::{LookUp, StopReason, Verdict};
use crate::store::{Errand, PayoutFate};

/// The wait of what was put back: whatever has none goes before it, so that it keeps no other from its turn.
const PUT_BACK: Duration = Duration::from_millis(100);

/// What is known of a try once it has ended here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The receiver was sent the request, or was to be.
    Sent(Verdict),
    /// The receiver was asked, and nothing was sent.
    Asked(LookUp),
    /// It was cut off here, by the tenure's end or a defect, before or after leave was given.
    Cut {
        /// Whether leave was given.
        departed: bool,
        /// For a person.
        why: &'static str,
    },
    /// The receiver has seen a higher token, and the fence says that ours is the highest.
    Contradicted,
}

/// What else a fate depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ground {
    /// What the payout was taken for.
    pub(super) errand: Errand,
    /// Whether an unknown outcome may be cleared without a person: sent again, or asked for.
    pub(super) clears: bool,
    /// The wait before another try, where the receiver asked for none.
    pub(super) wait: Duration,
    /// Whether an earlier try left.
    pub(super) left_before: bool,
}

/// What is recorded of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Came {
    /// Of the instruction.
    pub(super) fate: PayoutFate,
    /// Of the receiver: it stops.
    pub(super) stop: Option<(&'static str, String)>,
    /// In metrics.
    pub(super) outcome: &'static str,
}

/// What a try came to. [`Verdict::Fenced`] is the tenure's to clear up before.
pub(super) fn came(outcome: Outcome, ground: Ground) -> Came {
    match outcome {
        Outcome::Sent(verdict) => sent(verdict, ground),
        Outcome::Asked(found) => asked(found, ground),
        Outcome::Cut { departed, why } => cut(departed, why, ground),
        Outcome::Contradicted => {
            let why = "it has seen a higher token than the highest that the fence knows".to_owned();
            stopped(StopReason::Fenced, why, ground)
        }
    }
}

fn sent(verdict: Verdict, ground: Ground) -> Came {
    let outcome = verdict.as_str();
    let wait = |after: Option<Duration>| Some(after.unwrap_or(Duration::ZERO).max(ground.wait));
    let fate = match verdict {
        Verdict::Paid { reference } => PayoutFate::Paid { reference },
        Verdict::Mismatch { why: error } => PayoutFate::Mismatch { error },
        Verdict::Rejected { status } | Verdict::RefusedInDoubt { status } => {
            PayoutFate::Rejected { error: format!("answered {status}") }
        }
        Verdict::Later { after, why: error } => PayoutFate::Unknown { error, again_in: wait(after) },
        Verdict::Unknown { why: error } => {
            PayoutFate::Unknown { error, again_in: if ground.clears { Some(ground.wait) } else { None } }
        }
        Verdict::Undone { left, after, why, of_unit: _ } => {
            PayoutFate::Back { left: left || ground.left_before, error: Some(why), again_in: wait(after) }
        }
        Verdict::StopReceiver { reason, why } => return stopped(reason, why, ground),
        // It was answered: the receiver has seen the key.
        Verdict::Fenced { .. } => PayoutFate::Back { left: true, error: None, again_in: Some(ground.wait) },
        Verdict::NotSent => not_sent(ground),
    };
    Came { fate, stop: None, outcome }
}

/// As before the try, which says something about the receiver and nothing about the payout. Answered, it waits, so that the next
/// one that is tried is another: what only this one is answered with keeps no other from it; and its key counts from here on, for
/// the receiver has seen it. Where nobody was there to answer, whichever is first is tried when the receiver is.
fn stopped(reason: StopReason, why: String, ground: Ground) -> Came {
    let error = Some(why.clone());
    let answered = is_an_answer(reason);
    let again_in = Some(if answered { ground.wait } else { PUT_BACK });
    Came {
        fate: PayoutFate::Back { left: ground.left_before || answered, error, again_in },
        stop: Some((reason.as_str(), why)),
        outcome: if reason == StopReason::Fenced { "fenced" } else { "stopped" },
    }
}

/// Whether a byte of a try that stops a receiver so had left.
const fn is_an_answer(reason: StopReason) -> bool {
    match reason {
        StopReason::Tls => false,
        StopReason::BadRequest
        | StopReason::Unauthorized
        | StopReason::Forbidden
        | StopReason::NotFound
        | StopReason::Redirect
        | StopReason::Refusals
        | StopReason::Fenced => true,
    }
}

const fn not_sent(ground: Ground) -> PayoutFate {
    PayoutFate::Back { left: ground.left_before, error: None, again_in: Some(PUT_BACK) }
}

/// A look-up that finds nothing proves nothing: it is asked again, until the receiver may have forgotten the key.
fn asked(found: LookUp, ground: Ground) -> Came {
    let (fate, outcome) = match found {
        LookUp::NoLeave => (not_sent(ground), "not_sent"),
        LookUp::Paid { reference } => (PayoutFate::Paid { reference }, "paid"),
        LookUp::Mismatch { why: error } => (PayoutFate::Mismatch { error }, "mismatch"),
        LookUp::Nothing { why: error } => {
            let again_in = match ground.errand {
                Errand::Ask { last: true } => None,
                Errand::Ask { last: false } | Errand::AskThenSend | Errand::Send => Some(ground.wait),
            };
            (PayoutFate::Unknown { error, again_in }, "not_found")
        }
    };
    Came { fate, stop: None, outcome }
}

fn cut(departed: bool, why: &'static str, ground: Ground) -> Came {
    let only_asked = match ground.errand {
        Errand::Ask { .. } => true,
        Errand::Send | Errand::AskThenSend => false,
    };
    if !departed || only_asked {
        return Came { fate: not_sent(ground), stop: None, outcome: "not_sent" };
    }
    let again_in = if ground.clears { Some(Duration::ZERO) } else { None };
    Came { fate: PayoutFate::Unknown { error: why.to_owned(), again_in }, stop: None, outcome: "unknown" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Term;

    const WAIT: Duration = Duration::from_secs(3);

    fn ground(errand: Errand, clears: bool) -> Ground {
        Ground { errand, clears, wait: WAIT, left_before: false }
    }

    fn verdicts() -> Vec<Verdict> {
        let why = || "why".to_owned();
        vec![
            Verdict::Paid { reference: None },
            Verdict::Mismatch { why: why() },
            Verdict::Rejected { status: 422 },
            Verdict::RefusedInDoubt { status: 422 },
            Verdict::Later { after: Some(Duration::from_secs(9)), why: why() },
            Verdict::Unknown { why: why() },
            Verdict::Undone { left: true, after: None, why: why(), of_unit: false },
            Verdict::StopReceiver { reason: StopReason::Unauthorized, why: why() },
            Verdict::Fenced { highest: Term::NONE },
            Verdict::NotSent,
        ]
    }

    #[test]
    fn only_what_is_proved_undone_goes_back_and_what_leaves_a_doubt_is_recorded_as_one() {
        for verdict in verdicts() {
            let came = came(Outcome::Sent(verdict.clone()), ground(Errand::Send, true));
            let back = matches!(came.fate, PayoutFate::Back { .. });
            assert_eq!(back, verdict.is_as_before(), "{verdict:?}");
            let doubt = matches!(came.fate, PayoutFate::Unknown { .. } | PayoutFate::Mismatch { .. });
            assert_eq!(doubt, verdict.leaves_doubt(), "{verdict:?}");
            assert_eq!(came.outcome, verdict.as_str());
        }
    }

    #[test]
    fn a_key_counts_from_the_first_try_that_left_also_where_its_answer_stops_the_receiver() {
        let left = |verdict: Verdict, left_before| {
            let ground = Ground { left_before, ..ground(Errand::Send, true) };
            match came(Outcome::Sent(verdict), ground).fate {
                PayoutFate::Back { left, .. } => left,
                other => panic!("{other:?}"),
            }
        };
        let undone = |left| Verdict::Undone { left, after: None, why: "why".to_owned(), of_unit: false };
        let stop_by = |reason| Verdict::StopReceiver { reason, why: "why".to_owned() };
        let stop = || stop_by(StopReason::Tls);
        for reason in StopReason::ALL.into_iter().filter(|reason| *reason != StopReason::Tls) {
            assert!(left(stop_by(reason), false), "{reason:?}: it was answered, so the receiver has seen the key");
        }
        assert!(left(Verdict::Fenced { highest: Term::NONE }, false), "that is an answer too");
        assert_eq!(
            [left(undone(true), false), left(undone(false), false), left(undone(false), true)],
            [true, false, true]
        );
        assert_eq!([left(stop(), false), left(stop(), true)], [false, true]);
        assert_eq!([left(Verdict::NotSent, false), left(Verdict::NotSent, true)], [false, true]);
        let stopped = |verdict| came(Outcome::Sent(verdict), ground(Errand::Send, true)).fate;
        let answered = stopped(stop_by(StopReason::Unauthorized));
        assert!(
            matches!(answered, PayoutFate::Back { again_in: Some(WAIT), .. }),
            "another is tried next: {answered:?}"
        );
        let unanswered = stopped(stop());
        assert!(matches!(unanswered, PayoutFate::Back { again_in: Some(PUT_BACK), .. }), "no other: {unanswered:?}");
    }

    #[test]
    fn an_unknown_outcome_that_nobody_can_clear_up_is_for_a_person() {
        let unknown = || Outcome::Sent(Verdict::Unknown { why: "silence".to_owned() });
        let fate = |clears| came(unknown(), ground(Errand::Send, clears)).fate;
        assert!(matches!(fate(false), PayoutFate::Unknown { again_in: None, .. }));
        assert!(matches!(fate(true), PayoutFate::Unknown { again_in: Some(WAIT), .. }));
        let cut = |departed, clears| came(Outcome::Cut { departed, why: "drained" }, ground(Errand::Send, clears)).fate;
        assert!(matches!(cut(false, false), PayoutFate::Back { left: false, error: None, again_in: Some(PUT_BACK) }));
        assert!(matches!(cut(true, false), PayoutFate::Unknown { again_in: None, .. }));
        assert!(matches!(cut(true, true), PayoutFate::Unknown { again_in: Some(Duration::ZERO), .. }));
    }

    #[test]
    fn a_receiver_is_waited_for_as_long_as_it_asks_and_no_shorter_than_the_backoff() {
        let later = |after| {
            let verdict = Verdict::Later { after, why: "answered 503".to_owned() };
            came(Outcome::Sent(verdict), ground(Errand::Send, true)).fate
        };
        for (after, expected) in [(None, 3), (Some(1), 3), (Some(60), 60)] {
            let fate = later(after.map(Duration::from_secs));
            let PayoutFate::Unknown { again_in, .. } = fate else { panic!("{fate:?}") };
            assert_eq!(again_in, Some(Duration::from_secs(expected)));
        }
    }

    #[test]
    fn a_look_up_that_finds_nothing_is_made_again_until_the_last() {
        let nothing = || Outcome::Asked(LookUp::Nothing { why: "answered 404".to_owned() });
        let fate = |last| came(nothing(), ground(Errand::Ask { last }, true)).fate;
        assert!(matches!(fate(false), PayoutFate::Unknown { again_in: Some(WAIT), .. }));
        assert!(matches!(fate(true), PayoutFate::Unknown { again_in: None, .. }));
        let cut = came(Outcome::Cut { departed: true, why: "x" }, ground(Errand::Ask { last: true }, false));
        assert!(matches!(cut.fate, PayoutFate::Back { .. }), "nothing was sent");
    }
}
