//! Planned ends in the middle of a run: what has begun ends, nothing begins, another finishes.

use std::time::Duration;

use super::{READY, SETTLED, TAKEOVER};
use crate::support::{Calls, Job, Setup, eventually, schedule};

/// Batches or calls under way at a time.
const LANES: u32 = 4;
/// Each of them takes so long, in milliseconds.
const EACH_MS: u32 = 500;
/// `drain` is 12 s by default; a busy machine needs a moment more.
const GRACE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_leader_that_is_told_to_end_in_the_middle_of_batches_ends_them_and_claims_no_more() {
    let job = Job::probe("two-hundred", 200).batch(2, LANES).set("wait_ms", &EACH_MS.to_string());
    let setup = Setup::new(2, &schedule(&[job])).steady().key("database", "max_connections", "12");
    let cluster = setup.start().await;
    let old = cluster.wait_leader(READY).await;
    cluster.replica(1 - old).wait_ready(READY).await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    let run = cluster.open_now("two-hundred");
    cluster.wait_settled(16, SETTLED).await;
    cluster.replica(old).term();
    let told = cluster.store_time().await;
    let status = cluster.replica(old).wait_end(GRACE);
    assert!(status.success(), "{status}: {}", cluster.replica(old).log());
    assert!(cluster.settled().await < 200, "it was told in the middle");
    // What was under way, and perhaps what was claimed between the signal and its being heard.
    let later =
        format!("select count(*) from bursar.batch where term = {term} and committed_at > timestamptz '{told}'");
    let later: i64 = cluster.database().value(&later).await;
    assert!((1..=i64::from(LANES) * 2).contains(&later), "{later} batches ended after the signal");
    cluster.wait_work_above(term, TAKEOVER).await;
    cluster.wait_run_ended(run).await;

    let shown = cluster.run_shown(run);
    assert_eq!(
        (&shown["summary"]["state"], &shown["summary"]["units"]["settled"], &shown["deaths"]),
        (&"complete".into(), &200.into(), &0.into()),
        "{shown}"
    );
    let attempts: i64 = cluster.database().value("select sum(attempts)::bigint from bursar.unit").await;
    assert_eq!(attempts, 0);
    let terms: i64 = cluster.database().value("select count(distinct term) from bursar.batch").await;
    assert_eq!(terms, 2, "both had a part");
    let noted = format!("select end_reason is not null from bursar.term_history where term = {term}");
    assert!(cluster.database().value::<bool>(&noted).await, "why it ended is on record");
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn a_leader_that_is_told_to_end_waits_for_the_answers_under_way_and_sends_no_more() {
    let calls = Calls::none_yet();
    let job = Job::calling("two-hundred", 200, &calls).batch(LANES * 2, 1).set("wait_ms", "1500");
    let cluster = Setup::new(2, &schedule(&[job])).steady().start().await;
    let old = cluster.wait_leader(READY).await;
    cluster.replica(1 - old).wait_ready(READY).await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    let run = cluster.open_now("two-hundred");
    let under = |term: i64| calls.all().iter().filter(|call| call.1 == term).count();
    eventually(SETTLED, "calls are on the wire", async || (under(term) >= 16).then_some(())).await;
    cluster.replica(old).term();
    let called = under(term);
    // It says that it leaves, while it still answers.
    eventually(GRACE, "it is draining", async || {
        let (status, text) = cluster.replica(old).readyz().await?;
        (status == 503 && text.contains("draining")).then_some(())
    })
    .await;
    let status = cluster.replica(old).wait_end(GRACE);
    assert!(status.success(), "{status}: {}", cluster.replica(old).log());
    let late = under(term) - called;
    assert!(late <= 2 * LANES as usize, "{late} calls were made after the signal");
    let doubted = "select count(*) from bursar.instruction where in_doubt or state = 'sending'";
    assert_eq!(cluster.database().value::<i64>(doubted).await, 0, "every answer under way was recorded");
    cluster.wait_work_above(term, TAKEOVER).await;
    cluster.wait_run_ended(run).await;
    assert_eq!(cluster.run_shown(run)["summary"]["units"]["settled"], 200);
    let by_key = calls.by_key();
    assert!(by_key.len() == 200 && by_key.values().all(|count| *count == 1), "{by_key:?}");
    calls.assert_terms_only_rise();
    cluster.assert_sound().await;
    sampler.finish();
}
