//! Ticks are coalesced into one that is still to be run, whatever the store knows of those that ran.

use super::*;
use crate::domain::job::Misfire;
use crate::schedule::{Scan, Schedule, decide};
use crate::tenure::bringup::tests::definition;
use crate::tenure::planner::{Deciding, decided, scan_state};

/// A minute of the hour after the mark.
fn minute(of: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + of * 60, 0).expect("in range")
}

/// Nominal minutes with what becomes of them.
fn told(scan: &Scan) -> Vec<(DateTime<Utc>, &'static str)> {
    scan.decisions.iter().map(|decision| (decision.tick.nominal, decision.outcome.label())).collect()
}

#[tokio::test]
async fn the_store_is_asked_until_ticks_go_into_one_that_has_no_outcome_yet() {
    let rig = rig();
    let tenure = Tenure::new(Arc::clone(&rig.scope), Arc::clone(&rig.store) as Arc<dyn TenureStore>);
    let mut definition = definition("minutely", "here", "* * * * *");
    definition.timing.misfire = Misfire::RunLatest;
    definition.timing.misfire_grace = Duration::from_secs(10);
    let schedule = Schedule::new(&definition.timing).expect("valid");
    let fingerprint = definition.fingerprint();
    let row = JobRow { id: 7, definition, fingerprint, evaluated_until: minute(0), paused: None, pauses: Vec::new() };
    let now = minute(4) + Duration::from_secs(30);
    let scan = async || {
        let state = scan_state(&row, now, false, false);
        let how = Box::new(|state: &_| decide(&schedule, state));
        decided(&tenure, &mut [Deciding { job: row.id, how, state }]).await.expect("it answers").remove(0)
    };
    let asked = || std::mem::take(&mut *rig.store.asked.lock().expect("no panic holds it"));

    let into_the_newest = [1, 2, 3].map(|of| (minute(of), "coalesced")).into_iter().chain([(minute(4), "caught_up")]);
    assert_eq!(told(&scan().await), into_the_newest.collect::<Vec<_>>());
    assert_eq!(asked(), [(7, minute(4))], "once");

    rig.store.ran.lock().expect("no panic holds it").extend([(7, minute(4)), (7, minute(3)), (8, minute(2))]);
    assert_eq!(told(&scan().await), [(minute(1), "coalesced"), (minute(2), "caught_up")], "what ran stays as it is");
    assert_eq!(asked(), [(7, minute(4)), (7, minute(3)), (7, minute(2))]);
}
