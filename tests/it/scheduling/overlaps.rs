//! A run that takes longer than its interval: no two of a job at once, and every tick on record.

use chrono::TimeDelta;

use super::*;

#[tokio::test]
async fn runs_longer_than_their_interval_never_overlap_and_ticks_are_queued_or_skipped_on_record() {
    let slow = "wait_ms = 2500";
    let schedule =
        [job("queued", EVERY_SECOND, "", slow), job("skipping", EVERY_SECOND, "overlap = \"skip\"", slow)].concat();
    let cluster = led(&schedule).await;
    let skipping = wait_runs(&cluster, "skipping", "complete", 3).await;
    assert_without_gap(&skipping, TimeDelta::seconds(1));
    let skipped: Vec<&Run> = skipping.iter().filter(|run| run.state == "skipped").collect();
    assert!(skipped.len() >= 2, "{skipping:?}");
    assert!(skipped.iter().all(|run| run.why.as_deref() == Some("overlap: an earlier run is open")), "{skipped:?}");

    let queued = wait_runs(&cluster, "queued", "complete", 3).await;
    assert_without_gap(&queued, TimeDelta::seconds(1));
    let open = queued.iter().filter(|run| ["planning", "open"].contains(&run.state.as_str())).count();
    assert!(open >= 2, "ticks are opened at their time and wait: {queued:?}");
    for runs in [&skipping, &queued] {
        let mut ended: Vec<&Run> = runs.iter().filter(|run| run.state == "complete").collect();
        ended.sort_by_key(|run| run.finished_at);
        assert!(ended.is_sorted_by_key(|run| run.tick), "in the order of their ticks: {ended:?}");
        for pair in ended.windows(2) {
            let apart = pair[1].finished_at.zip(pair[0].finished_at).map(|(later, earlier)| later - earlier);
            assert!(apart >= Some(TimeDelta::milliseconds(2400)), "one after the other: {pair:?}");
        }
    }
    cluster.assert_sound().await;
}
