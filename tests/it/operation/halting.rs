//! The kill switch, seen through everything that it holds: ticks, requests, batches, calls. How fast it is, is measured in
//! `timed`.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{READY, SETTLED};
use crate::support::{Calls, Cluster, EVERY_SECOND, Job, Setup, eventually, holds_for, schedule};

/// So long it is looked at that nothing happens: several ticks, and several batches.
const STILL: Duration = Duration::from_secs(4);

/// All that a halted election may not change: runs, units that ended, instructions handed out, sequence of requests done.
async fn standing(cluster: &Cluster) -> (i64, i64, i64, i64) {
    let query = "select (select count(*) from bursar.run), (select count(*) from bursar.batch),
                        (select coalesce(sum(attempts), 0)::bigint from bursar.instruction),
                        (select count(*) from bursar.request where state <> 'waiting')";
    cluster.database().rows(query).await[0]
}

#[tokio::test]
async fn a_halt_holds_ticks_requests_batches_and_calls_until_the_resume_and_the_leader_stays() {
    let calls = Calls::none_yet();
    let jobs = [
        Job::probe("in-store", 600).batch(1, 8).set("wait_ms", "300"),
        Job::calling("outside", 60, &calls).batch(8, 1).set("wait_ms", "1500"),
        Job::probe("ticking", 1).cron(EVERY_SECOND),
        Job::probe("asked-for", 1),
    ];
    let setup = Setup::new(2, &schedule(&jobs)).steady().key("database", "max_connections", "16");
    let cluster = setup.start().await;
    let leader = cluster.wait_leader(READY).await;
    cluster.replica(1 - leader).wait_ready(READY).await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    cluster.trigger("in-store");
    let outside = cluster.open_now("outside");
    cluster.wait_settled(20, SETTLED).await;
    eventually(SETTLED, "calls are on the wire", async || (calls.all().len() >= 8).then_some(())).await;

    let halted = cluster.command(&["halt", "--reason", "wrong fees", "--json"]).ok().json();
    assert_eq!((&halted[0]["election"], &halted[0]["already"]), (&"settlement".into(), &false.into()), "{halted}");
    let halted_at: DateTime<Utc> = cluster.database().value("select halted_at from bursar.fence").await;
    let later = "select count(*) from bursar.batch b join bursar.fence f using (election)
                  join bursar.run r on r.id = b.run_id where b.committed_at > f.halted_at and r.job <> 'outside'";
    assert_eq!(cluster.database().value::<i64>(later).await, 0, "it is in force when the command returns");
    // The answers to what had left are recorded all the same.
    eventually(SETTLED, "no call is on the wire", async || {
        let sending = "select count(*) from bursar.instruction where state = 'sending'";
        (cluster.database().value::<i64>(sending).await == 0).then_some(())
    })
    .await;
    let answered = "select count(*) from bursar.instruction where state = 'paid'";
    let answered: i64 = cluster.database().value(answered).await;
    assert_eq!(usize::try_from(answered).ok(), Some(calls.all().len()), "each call that was made has its answer");

    let asked = cluster.command(&["trigger", "asked-for", "--wait", "1s", "--leave"]);
    assert_eq!(asked.code(), Some(0), "it stays filed: {}{}", asked.stdout, asked.stderr);
    let (before, called) = (standing(&cluster).await, calls.all().len());
    holds_for(STILL, "nothing is opened, settled or sent", async || {
        let now = (standing(&cluster).await, calls.all().len());
        if now == (before, called) { Ok(()) } else { Err(format!("{now:?} after {:?}", (before, called))) }
    })
    .await;
    assert_eq!(cluster.wait_leader(READY).await, leader, "the leader stays");
    assert_eq!(cluster.term().await, term);
    cluster.replica(leader).wait_ready(READY).await;
    eventually(READY, "the metric says that it is halted", async || {
        let halted = cluster.replica(leader).metric("bursar_halted", &[("election", "settlement")]).await?;
        (halted > 0.0).then_some(())
    })
    .await;
    let status = cluster.command(&["status"]).ok().stdout;
    assert!(status.contains("wrong fees"), "{status}");
    let again = cluster.command(&["halt", "--reason", "once more", "--json"]).ok().json();
    assert_eq!(again[0]["already"], true, "{again}");

    cluster.command(&["resume", "--reason", "fees are right"]).ok();
    let resumed_at = cluster.store_clock().await;
    let waiting = "select count(*) from bursar.request where state = 'waiting'";
    eventually(SETTLED, "the request that was filed is executed", async || {
        (cluster.database().value::<i64>(waiting).await == 0).then_some(())
    })
    .await;
    cluster.wait_run_ended(outside).await;
    let opened = format!(
        "select count(*) from bursar.run where opened_at > timestamptz '{halted_at}' and opened_at < timestamptz '{resumed_at}' - interval '1 s'"
    );
    assert_eq!(cluster.database().value::<i64>(&opened).await, 0, "no run was opened in between");
    let by_key = calls.by_key();
    assert!(by_key.len() == 60 && by_key.values().all(|count| *count == 1), "{by_key:?}");
    assert_eq!((cluster.wait_leader(READY).await, cluster.term().await), (leader, term));
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn calls_that_were_taken_and_not_sent_before_a_halt_are_put_back_and_made_after_the_resume() {
    const POINT: &str = "tenure.calls.before_gate";
    let calls = Calls::none_yet();
    let job = Job::calling("outside", 10, &calls).set("idempotent", "false").batch(5, 1);
    let cluster = Setup::new(1, &schedule(&[job])).steady().chaos(&format!("{POINT}=pause@1")).start().await;
    let leader = cluster.wait_leader(READY).await;
    let term = cluster.term().await;
    let run = cluster.open_now("outside");
    cluster.replica(leader).wait_hit(POINT, SETTLED).await;
    let halted = cluster.command(&["halt", "--reason", "wrong fees", "--json"]).ok().json();
    let on_the_wire = "select count(*) from bursar.instruction where state = 'sending'";
    assert_eq!(cluster.database().value::<i64>(on_the_wire).await, 5, "they were taken before it: {halted}");
    cluster.replica(leader).release(POINT);
    eventually(SETTLED, "they are put back", async || {
        (cluster.database().value::<i64>(on_the_wire).await == 0).then_some(())
    })
    .await;
    let untouched = "select count(*) from bursar.instruction where state = 'pending' and not in_doubt";
    assert_eq!(cluster.database().value::<i64>(untouched).await, 5);
    assert_eq!(calls.all(), [], "nothing left after the halt");
    cluster.command(&["resume", "--reason", "fees are right"]).ok();
    cluster.wait_run_ended(run).await;
    assert_eq!(cluster.run_shown(run)["summary"]["state"], "complete");
    let by_key = calls.by_key();
    assert!(by_key.len() == 10 && by_key.values().all(|count| *count == 1), "{by_key:?}");
    assert_eq!(cluster.term().await, term);
    cluster.assert_sound().await;
}
