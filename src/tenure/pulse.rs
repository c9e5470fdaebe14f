//! A heartbeat of the tenure at the store: what waits, and the store's time, which its clock is learnt from.

use chrono::TimeDelta;

use super::scope::{Stop, Tenure};
use crate::clock;
use crate::domain::Moment;
use crate::store::Pulse;

/// How far the store's clock may lie behind where it must be, before it is said that it was stepped back.
pub(super) const STEPPED_BACK: TimeDelta = TimeDelta::seconds(5);

/// What a heartbeat came to.
pub(super) struct Heartbeat {
    /// When the attempt that was answered was sent.
    pub(super) sent: Moment,
    /// The answer.
    pub(super) pulse: Pulse,
    /// The store's clock shows an earlier time than it must by now.
    pub(super) stepped_back: bool,
}

/// Asks the store, and takes its time in.
///
/// # Errors
/// [`Stop`].
pub(super) async fn hear(tenure: &Tenure) -> Result<Heartbeat, Stop> {
    let asked = || async {
        // Of this attempt: those before it that failed, and the waits between them, say nothing of when the clock was read.
        let sent = clock::boottime();
        Ok(tenure.store.pulse().await?.map(|pulse| (sent, clock::boottime(), pulse)))
    };
    let (sent, answered, pulse) = tenure.begin("pulse", asked).await?;
    let stepped_back = tenure.clock.at_least(sent).is_some_and(|at_least| pulse.now + STEPPED_BACK < at_least);
    tenure.clock.learn(sent, answered, pulse.now);
    Ok(Heartbeat { sent, pulse, stepped_back })
}
