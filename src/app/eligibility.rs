//! Whether this replica may lead, as far as its store goes: asked every second while it leads, less often else.
//!
//! A follower that cannot use the store does not stand. A leader whose store is out of reach has `resign_without_store`
//! before it makes room; one whose store is read-only, of another schema or unfit makes room at once.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::board::Board;
use crate::clock;
use crate::domain::{ElectionName, Moment, ReplicaId};
use crate::leadership::{ElectionPhase, LeadershipHandle, LeadershipView, Report};
use crate::store::{Store, StoreError, TransferWish};

/// How often the store is asked while this replica leads, or could not lead when last asked.
const OFTEN: Duration = Duration::from_secs(1);
/// How often it is asked by a follower whose store is well.
const SELDOM: Duration = Duration::from_secs(3);
/// A check that has no answer by then counts as one of a store out of reach.
const CHECK_WITHIN: Duration = Duration::from_secs(3);
/// A check has at least so long, also when patience is nearly over.
const SHORTEST_CHECK: Duration = Duration::from_millis(500);

/// Wishes that have no answer by then are read with the next check: a leader whose store goes away must not be late for it. The
/// first reading, before which nobody here leads, has a check's time.
const WISHES_WITHIN: Duration = Duration::from_millis(500);

/// What the task needs.
pub(super) struct Eligibility {
    pub(super) store: Arc<dyn Store>,
    pub(super) leadership: LeadershipHandle,
    pub(super) board: Arc<Board>,
    pub(super) elections: Vec<ElectionName>,
    /// This replica's id.
    pub(super) replica: String,
    pub(super) resign_without_store: Duration,
}

/// What one check means for leading.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    May,
    MayNot(String),
}

/// Judges one check. `last_well_at` is when the store was last found well; `unheard` why the operators' wishes were never read since
/// the start: until then nobody knows whether one of them keeps this replica from leading.
fn judge(
    check: Result<(), &StoreError>,
    unheard: Option<&str>,
    leads: bool,
    last_well_at: Option<Moment>,
    now: Moment,
    patience: Duration,
) -> Verdict {
    match check {
        Ok(()) => unheard
            .map_or(Verdict::May, |why| Verdict::MayNot(format!("the operators' wishes could not be read: {why}"))),
        Err(error) if leads && error.is_passing() && last_well_at.is_some_and(|at| now.since(at) < patience) => {
            Verdict::May
        }
        Err(error) => Verdict::MayNot(error.to_string()),
    }
}

/// A check ends when patience does, so that a leader makes room then and not a check later. Once it is over, room was made: from
/// then on a check has all its time again, or a store that is slow to answer would be out of reach for ever.
fn check_within(last_well_at: Option<Moment>, now: Moment, patience: Duration) -> Duration {
    let left = last_well_at.map(|at| patience.saturating_sub(now.since(at)));
    left.filter(|left| !left.is_zero()).map_or(CHECK_WITHIN, |left| left.clamp(SHORTEST_CHECK, CHECK_WITHIN))
}

fn leads_any(view: &LeadershipView) -> bool {
    view.elections.iter().any(|seen| match seen.phase {
        ElectionPhase::Promoting | ElectionPhase::Active => true,
        ElectionPhase::Observing
        | ElectionPhase::Waiting
        | ElectionPhase::ReadingFence
        | ElectionPhase::Campaigning
        | ElectionPhase::Settling
        | ElectionPhase::Ending
        | ElectionPhase::Clearing
        | ElectionPhase::StandingBack => false,
    })
}

/// The report of a hand-over, where this replica leads the term that it is asked of. A successor whose id cannot be one is
/// nobody's.
fn asked_of(view: &LeadershipView, wish: TransferWish) -> Option<Report> {
    let claim = view.election(&wish.election)?.claim.as_ref()?;
    let to = wish.to.map(|to| ReplicaId::new(&to)).transpose().ok()?;
    (claim.term == wish.term).then_some(Report::HandOver { election: wish.election, term: wish.term, to })
}

impl Eligibility {
    /// Asks until told to stop.
    pub(super) async fn run(self, stop: CancellationToken) {
        let view = self.leadership.view();
        let mut told: Option<Verdict> = None;
        let mut last_well_at = None;
        let mut cordoned = None;
        let mut unheard = Some("the store was not found well yet".to_owned());
        loop {
            let within = check_within(last_well_at, clock::boottime(), self.resign_without_store);
            let check = match tokio::time::timeout(within, self.store.health()).await {
                Ok(check) => check,
                Err(_elapsed) => Err(StoreError::TimedOut { operation: "health", within }),
            };
            let now = clock::boottime();
            if check.is_ok() {
                last_well_at = Some(now);
            }
            let leads = leads_any(&view.borrow());
            if check.is_ok() {
                let seen = view.borrow().clone();
                let missed = self.heed_wishes(&seen, &mut cordoned).await;
                if let Some(why) = missed.as_ref().filter(|_| missed != unheard) {
                    tracing::warn!(%why, "the operators' wishes could not be read");
                }
                unheard = missed;
            }
            let (found, never) = (check.as_ref().map(|_| ()), unheard.as_deref().filter(|_| cordoned.is_none()));
            let verdict = judge(found, never, leads, last_well_at, now, self.resign_without_store);
            self.board.store_checked(check.map(|health| health.now).map_err(|error| error.to_string()));
            let well = verdict == Verdict::May;
            if told.as_ref() != Some(&verdict) {
                self.tell(&verdict);
                told = Some(verdict);
            }
            let wait = if leads || !well { OFTEN } else { SELDOM };
            if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                return;
            }
        }
    }

    /// Tells leadership what operators want of this replica: before it is told that it may lead, so that a cordoned one does
    /// not stand first. What could not be read, for the reason that is answered, is read again with the next check.
    async fn heed_wishes(&self, view: &LeadershipView, cordoned: &mut Option<bool>) -> Option<String> {
        let within = if cordoned.is_some() { WISHES_WITHIN } else { CHECK_WITHIN };
        let wishes = match tokio::time::timeout(within, self.store.wishes(&self.replica)).await {
            Ok(Ok(wishes)) => wishes,
            Ok(Err(error)) => return Some(error.to_string()),
            Err(_elapsed) => return Some(format!("no answer within {within:?}")),
        };
        if cordoned.replace(wishes.cordoned).unwrap_or(false) != wishes.cordoned {
            tracing::info!(cordoned = wishes.cordoned, "an operator decides whether this replica may lead");
            self.leadership.report(Report::Cordoned(wishes.cordoned));
        }
        for wish in wishes.transfers {
            if let Some(report) = asked_of(view, wish) {
                self.leadership.report(report);
            }
        }
        None
    }

    fn tell(&self, verdict: &Verdict) {
        for election in &self.elections {
            let eligible = match verdict {
                Verdict::May => Ok(()),
                Verdict::MayNot(why) => Err(why.clone()),
            };
            self.leadership.report(Report::Eligible { election: election.clone(), eligible });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::after_boot(Duration::from_millis(ms))
    }

    const PATIENCE: Duration = Duration::from_secs(5);

    fn away() -> StoreError {
        StoreError::Unreachable { operation: "health", detail: "refused".into() }
    }

    #[test]
    fn a_leader_has_patience_with_a_store_out_of_reach_and_a_follower_has_none() {
        let well = Some(at(1000));
        assert_eq!(judge(Err(&away()), None, true, well, at(5999), PATIENCE), Verdict::May);
        assert!(matches!(judge(Err(&away()), None, true, well, at(6000), PATIENCE), Verdict::MayNot(_)));
        assert!(matches!(judge(Err(&away()), None, false, well, at(1001), PATIENCE), Verdict::MayNot(_)));
        assert!(matches!(judge(Err(&away()), None, true, None, at(1001), PATIENCE), Verdict::MayNot(_)));
    }

    #[test]
    fn a_check_ends_with_patience_and_has_all_its_time_again_once_that_is_over() {
        assert_eq!(check_within(None, at(9000), PATIENCE), CHECK_WITHIN);
        assert_eq!(check_within(Some(at(1000)), at(1500), PATIENCE), CHECK_WITHIN);
        assert_eq!(check_within(Some(at(1000)), at(4000), PATIENCE), Duration::from_secs(2));
        assert_eq!(check_within(Some(at(1000)), at(5900), PATIENCE), SHORTEST_CHECK);
        assert_eq!(check_within(Some(at(1000)), at(6000), PATIENCE), CHECK_WITHIN);
        assert_eq!(check_within(Some(at(1000)), at(60_000), PATIENCE), CHECK_WITHIN);
    }

    #[test]
    fn a_store_that_cannot_be_written_is_left_at_once() {
        let read_only = StoreError::ReadOnly { operation: "health", detail: "a standby".into() };
        let schema = StoreError::Schema { found: 1, expected: 2 };
        for error in [read_only, schema] {
            assert!(matches!(judge(Err(&error), None, true, Some(at(1000)), at(1001), PATIENCE), Verdict::MayNot(_)));
        }
        assert_eq!(judge(Ok(()), None, false, None, at(0), PATIENCE), Verdict::May);
    }

    #[test]
    fn nobody_stands_before_it_is_known_whether_an_operator_lets_it() {
        let said = judge(Ok(()), Some("no right on cordon"), false, Some(at(0)), at(0), PATIENCE);
        assert!(matches!(&said, Verdict::MayNot(why) if why.contains("no right on cordon")), "{said:?}");
        assert!(matches!(judge(Err(&away()), Some("away"), false, None, at(0), PATIENCE), Verdict::MayNot(_)));
    }
}
