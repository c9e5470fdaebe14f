//! What comes of one try at a unit outside: from what the handler knows to what is recorded. Pure.

use std::time::Duration;

use crate::domain::job::RetryDefinition;
use crate::domain::unit::AttemptOutcome;
use crate::settlement::CallOutcome;
use crate::store::CallFate;

/// The wait before the next attempt, or none where this was the last. `charged` attempts were behind the unit before.
pub(super) fn again_in(retry: &RetryDefinition, charged: u32, permanent: bool, random: u64) -> Option<Duration> {
    let attempts = charged.saturating_add(1);
    (!permanent && attempts < retry.max_attempts).then(|| retry.backoff(attempts, random))
}

/// The record of a call. An outcome that is not known is tried again only where the handler is idempotent, and only as
/// often as a failure would be; after that it is for a person. `tries` were made with this one, charged or not; `left`: this one got
/// leave to depart.
#[must_use]
pub fn fate(
    outcome: CallOutcome,
    retry: &RetryDefinition,
    charged: u32,
    tries: u32,
    idempotent: bool,
    left: bool,
    random: u64,
) -> CallFate {
    match outcome {
        CallOutcome::Done => CallFate::Done,
        // A receiver that is stopped, or that has seen a higher token, says nothing about the unit.
        CallOutcome::NotSent => CallFate::NotSent,
        CallOutcome::Fenced { .. } => {
            CallFate::Stopped { error: "answered 412".to_owned(), again_in: Duration::ZERO, left }
        }
        CallOutcome::Stopped { reason: _, why: error } => {
            let left = left && !crate::mutant!("calls.stopped-not-counted");
            CallFate::Stopped { error, again_in: retry.backoff(charged.saturating_add(1), random), left }
        }
        // No attempt at the unit: how long that can go on, its key's validity says.
        CallOutcome::NotNow { error, after } => {
            let again_in = retry.backoff(tries.max(1), random).max(after.unwrap_or(Duration::ZERO));
            CallFate::PutOff { error, again_in }
        }
        CallOutcome::PutOff { error, after, in_doubt } => {
            let again_in = again_in(retry, charged, in_doubt && !idempotent, random).map(|wait| wait.max(after));
            if in_doubt { CallFate::Unknown { error, again_in } } else { CallFate::Failed { error, again_in } }
        }
        CallOutcome::Mismatch { error } => CallFate::Unknown { error, again_in: None },
        CallOutcome::Refused { error } => CallFate::Failed { error, again_in: None },
        CallOutcome::Failed { error, permanent } => {
            CallFate::Failed { error, again_in: again_in(retry, charged, permanent, random) }
        }
        CallOutcome::Unknown { error } => {
            let idempotent = idempotent || crate::mutant!("calls.unknown-made-again");
            CallFate::Unknown { error, again_in: again_in(retry, charged, !idempotent, random) }
        }
    }
}

/// What the attempt counts as; `None` where it was none.
pub(super) const fn counts_as(fate: &CallFate) -> Option<AttemptOutcome> {
    match fate {
        CallFate::Done => Some(AttemptOutcome::Settled),
        CallFate::NotSent | CallFate::Stopped { .. } | CallFate::PutOff { .. } => None,
        CallFate::Failed { again_in, .. } | CallFate::Unknown { again_in, .. } => match again_in {
            Some(_) => Some(AttemptOutcome::Failed),
            None => Some(AttemptOutcome::SetAside),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Term;

    fn retry() -> RetryDefinition {
        RetryDefinition {
            max_attempts: 3,
            backoff_min: Duration::from_millis(10),
            backoff_max: Duration::from_millis(40),
        }
    }

    #[test]
    fn the_last_attempt_sets_aside_and_a_permanent_failure_at_once() {
        assert!(again_in(&retry(), 0, false, 7).is_some());
        assert!(again_in(&retry(), 1, false, 7).is_some_and(|wait| wait <= Duration::from_millis(20)));
        assert_eq!(again_in(&retry(), 2, false, 7), None);
        assert_eq!(again_in(&retry(), 0, true, 7), None);
    }

    #[test]
    fn what_is_not_known_is_tried_again_only_where_that_is_harmless() {
        let unknown = || CallOutcome::Unknown { error: "no answer".into() };
        assert!(matches!(fate(unknown(), &retry(), 0, 1, true, true, 7), CallFate::Unknown { again_in: Some(_), .. }));
        assert!(matches!(fate(unknown(), &retry(), 0, 1, false, true, 7), CallFate::Unknown { again_in: None, .. }));
        assert!(matches!(fate(unknown(), &retry(), 2, 1, true, true, 7), CallFate::Unknown { again_in: None, .. }));
        assert_eq!(counts_as(&fate(CallOutcome::NotSent, &retry(), 2, 1, true, true, 7)), None);
        let mismatch = CallOutcome::Mismatch { error: "another amount".into() };
        assert!(matches!(fate(mismatch, &retry(), 0, 1, true, true, 7), CallFate::Unknown { again_in: None, .. }));
    }

    #[test]
    fn a_receiver_is_waited_for_as_long_as_it_asks_and_a_stopped_one_costs_no_attempt() {
        let put_off = |seconds, in_doubt| CallOutcome::PutOff {
            error: "answered 503".into(),
            after: Duration::from_secs(seconds),
            in_doubt,
        };
        let hour = Some(Duration::from_hours(1));
        let undone = fate(put_off(3600, false), &retry(), 0, 1, false, true, 7);
        assert_eq!(undone, CallFate::Failed { error: "answered 503".into(), again_in: hour });
        let doubted = fate(put_off(3600, true), &retry(), 0, 1, true, true, 7);
        assert_eq!(doubted, CallFate::Unknown { error: "answered 503".into(), again_in: hour });
        assert!(matches!(
            fate(put_off(0, true), &retry(), 0, 1, false, true, 7),
            CallFate::Unknown { again_in: None, .. }
        ));
        assert!(matches!(
            fate(put_off(0, false), &retry(), 2, 1, true, true, 7),
            CallFate::Failed { again_in: None, .. }
        ));
        let stopped = CallOutcome::Stopped { reason: "unauthorized", why: "answered 401".into() };
        assert!(matches!(fate(stopped, &retry(), 2, 1, false, true, 7), CallFate::Stopped { left: true, .. }));
        let fenced = || CallOutcome::Fenced { highest: Term::new(9).unwrap() };
        assert!(matches!(fate(fenced(), &retry(), 0, 1, true, true, 7), CallFate::Stopped { left: true, .. }));
    }

    #[test]
    fn what_says_nothing_about_the_unit_is_no_attempt_however_often_it_happens() {
        let not_now = |after| CallOutcome::NotNow { error: "no connection".into(), after };
        for (charged, tries, idempotent) in [(0, 1, true), (2, 1, false), (2, 900, true)] {
            let put_off = fate(not_now(None), &retry(), charged, tries, idempotent, false, 7);
            assert!(matches!(&put_off, CallFate::PutOff { again_in, .. } if *again_in <= Duration::from_millis(40)));
            assert_eq!(counts_as(&put_off), None);
        }
        let minute = Some(Duration::from_mins(1));
        let asked = fate(not_now(minute), &retry(), 0, 1, false, true, 7);
        assert!(matches!(asked, CallFate::PutOff { again_in, .. } if Some(again_in) == minute), "{asked:?}");
    }
}
