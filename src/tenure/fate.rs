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
/// often as a failure would be; after that it is for a person.
pub(super) fn fate(
    outcome: CallOutcome,
    retry: &RetryDefinition,
    charged: u32,
    idempotent: bool,
    random: u64,
) -> CallFate {
    match outcome {
        CallOutcome::Done => CallFate::Done,
        CallOutcome::NotSent => CallFate::NotSent,
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
        CallFate::NotSent => None,
        CallFate::Failed { again_in, .. } | CallFate::Unknown { again_in, .. } => match again_in {
            Some(_) => Some(AttemptOutcome::Failed),
            None => Some(AttemptOutcome::SetAside),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(matches!(fate(unknown(), &retry(), 0, true, 7), CallFate::Unknown { again_in: Some(_), .. }));
        assert!(matches!(fate(unknown(), &retry(), 0, false, 7), CallFate::Unknown { again_in: None, .. }));
        assert!(matches!(fate(unknown(), &retry(), 2, true, 7), CallFate::Unknown { again_in: None, .. }));
        assert_eq!(counts_as(&fate(CallOutcome::NotSent, &retry(), 2, true, 7)), None);
    }
}
