//! A watch that polls: it reads the election again and again and wakes when its revision has reached the one watched from.

use std::time::Duration;

use async_trait::async_trait;

use crate::clock;
use crate::domain::ElectionName;
use crate::leadership::coordinator::{Coordinator, CoordinatorError, ElectionWatch};
use crate::leadership::record::Revision;

/// The shortest wait between two looks. A follower learns of a vacancy within [`LONGEST_LOOK`] and one read.
const SHORTEST_LOOK: Duration = Duration::from_millis(100);
/// The longest wait between two looks. Drawn anew each time, so that replicas do not look in step.
const LONGEST_LOOK: Duration = Duration::from_millis(250);

pub(super) struct PollWatch {
    pub(super) coordinator: Box<dyn Coordinator>,
    pub(super) election: ElectionName,
    pub(super) from: Revision,
}

fn next_look() -> Duration {
    let span = LONGEST_LOOK.saturating_sub(SHORTEST_LOOK).as_millis();
    let span = u64::try_from(span).unwrap_or(u64::MAX).max(1);
    SHORTEST_LOOK + Duration::from_millis(clock::random_u64() % span)
}

#[async_trait]
impl ElectionWatch for PollWatch {
    async fn woken(&mut self) -> Result<(), CoordinatorError> {
        loop {
            let seen = self.coordinator.read_election(&self.election).await?.read_at;
            if seen >= self.from {
                self.from = seen.next();
                return Ok(());
            }
            tokio::time::sleep(next_look()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_within_their_bounds_and_not_in_step() {
        let looks: Vec<Duration> = (0..200).map(|_| next_look()).collect();
        assert!(looks.iter().all(|look| (SHORTEST_LOOK..LONGEST_LOOK).contains(look)), "{looks:?}");
        assert!(looks.iter().any(|look| *look != looks[0]));
    }
}
