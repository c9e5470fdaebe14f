//! Leaders that are stopped in the worst places and go on when another leads, and replicas that cannot go on at all and end
//! themselves.
//!
//! Bounds here are generous, for tests run beside each other; what is promised in time is measured in `timed`.

use std::time::Duration;

use bursar::clock::boottime;

use crate::support::cluster::ELECTION;
use crate::support::{Calls, Cluster, EVERY_SECOND, Etcd, Job, Setup, eventually, schedule};

/// Replicas are given this TTL.
const TTL: Duration = Duration::from_secs(5);
/// A start on a busy machine.
const READY: Duration = Duration::from_secs(30);
/// A lease that lapses, and what follows, on a busy machine.
const TAKEOVER: Duration = Duration::from_secs(30);
/// A run of some seconds, on a busy machine.
const SETTLED: Duration = Duration::from_secs(90);
/// What a replica exits with that ends itself because half of it does not live.
const HALF_A_REPLICA: i32 = 70;

/// Two replicas, the first of which leads and has these failpoints; the other has none.
async fn pair(jobs: &[Job], points: &str) -> Cluster {
    let cluster = Setup::new(2, &schedule(jobs)).prepare().await;
    cluster.replica(0).set_chaos(points);
    cluster.replica(0).start();
    cluster.wait_leader(READY).await;
    cluster.replica(0).unset_env("BURSAR_CHAOS");
    cluster.replica(1).start();
    cluster.replica(1).wait_ready(READY).await;
    cluster
}

/// Waits until three TTLs have passed since then.
async fn three_ttls_after(since: bursar::domain::Moment) {
    eventually(TTL * 3 + TTL, "three TTLs pass", async || (boottime().since(since) >= TTL * 3).then_some(())).await;
}

/// What the store holds of a term: its batches, and its instructions with their tries.
async fn written_under(cluster: &Cluster, term: i64) -> (i64, i64) {
    let batches = format!("select count(*) from bursar.batch where term = {term}");
    let tries =
        format!("select coalesce(sum(attempts), 0)::bigint from bursar.instruction where sending_term = {term}");
    (cluster.database().value(&batches).await, cluster.database().value(&tries).await)
}

/// Continues the first replica, which was stopped while it led under `term`, and sees it come back in good order.
async fn continued_in_good_order(cluster: &Cluster, term: i64, another_run: &str) {
    let replica = cluster.replica(0);
    let before = written_under(cluster, term).await;
    let sampler = cluster.watch();
    replica.cont();
    let continued = boottime();
    // It stands again: with the other gone, it leads.
    replica.wait_ready(READY).await;
    eventually(TAKEOVER, "it follows", async || {
        let status = replica.status().await?;
        (status["elections"][0]["phase"] == "observing" && status["session"]["state"] == "live").then_some(())
    })
    .await;
    let history = sampler.finish();
    let led = history.answers().iter().filter(|answer| answer.replica == 0 && !answer.leads.is_empty()).count();
    assert_eq!(led, 0, "from the moment it goes on it says that it does not lead");
    assert!(boottime().since(continued) < Duration::from_secs(10), "it took {:?}", boottime().since(continued));
    assert_eq!(written_under(cluster, term).await, before, "it changed something when it went on");

    let sampler = cluster.watch();
    cluster.replica(1).term();
    assert_eq!(cluster.wait_other_leader(TAKEOVER, &[1]).await, 0);
    let settled = cluster.settled().await;
    cluster.trigger(another_run);
    cluster.wait_settled(settled + 1, SETTLED).await;
    cluster.wait_no_open_run(SETTLED).await;
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn a_leader_stopped_before_it_sends_sends_nothing_when_it_goes_on() {
    let calls = Calls::none_yet();
    let jobs = [Job::calling("outside", 20, &calls).batch(5, 1), Job::probe("in-store", 5)];
    let cluster = pair(&jobs, "tenure.calls.before_gate=stop@1").await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    cluster.trigger("outside");
    cluster.replica(0).wait_hit("tenure.calls.before_gate", SETTLED).await;
    let stopped = boottime();
    assert_eq!(cluster.wait_other_leader(TAKEOVER, &[0]).await, 1);
    cluster.wait_settled(20, SETTLED).await;
    three_ttls_after(stopped).await;
    sampler.finish();
    continued_in_good_order(&cluster, term, "in-store").await;
    let made = calls.all();
    assert_eq!(made.len(), 20, "each unit was called once: {made:?}");
    assert!(made.iter().all(|(_, by)| *by > term), "the stopped one called something: {made:?}");
    assert_eq!(calls.by_key().len(), 20);
}

#[tokio::test]
async fn a_leader_stopped_between_claim_and_commit_settles_nothing_when_it_goes_on() {
    let jobs = [Job::probe("in-store", 30).batch(10, 1)];
    let cluster = pair(&jobs, "store.settle.after_claim=stop@2").await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    cluster.trigger("in-store");
    cluster.replica(0).wait_hit("store.settle.after_claim", SETTLED).await;
    let stopped = boottime();
    assert_eq!(cluster.wait_other_leader(TAKEOVER, &[0]).await, 1, "although the stopped one holds the fence's lock");
    cluster.wait_settled(30, SETTLED).await;
    let by_old = format!("select coalesce(sum(units), 0)::bigint from bursar.batch where term = {term}");
    assert_eq!(cluster.database().value::<i64>(&by_old).await, 10, "what it had committed before counts");
    three_ttls_after(stopped).await;
    sampler.finish();
    continued_in_good_order(&cluster, term, "in-store").await;
}

#[tokio::test]
async fn a_leader_stopped_before_its_commit_settles_nothing_when_it_goes_on() {
    let jobs = [Job::probe("in-store", 10).batch(10, 1)];
    let cluster = pair(&jobs, "store.settle.before_commit=stop@1").await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    cluster.trigger("in-store");
    cluster.replica(0).wait_hit("store.settle.before_commit", SETTLED).await;
    let stopped = boottime();
    assert_eq!(cluster.wait_other_leader(TAKEOVER, &[0]).await, 1);
    cluster.wait_settled(10, SETTLED).await;
    assert_eq!(written_under(&cluster, term).await, (0, 0));
    three_ttls_after(stopped).await;
    sampler.finish();
    continued_in_good_order(&cluster, term, "in-store").await;
}

#[tokio::test]
async fn a_leader_stopped_while_its_statement_runs_does_not_hold_up_the_next_one() {
    let cluster = pair(&[Job::probe("in-store", 10)], "").await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    // Its batch sits in its INSERT for longer than this test lasts; the next term's does not.
    cluster
        .database()
        .execute(&format!(
            "create function public.slow() returns trigger language plpgsql as
             $$ begin if new.term = {term} then perform pg_sleep(55); end if; return new; end $$;
             create trigger slow before insert on bursar.batch for each row execute function public.slow()"
        ))
        .await;
    cluster.trigger("in-store");
    let sleeps = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()";
    eventually(SETTLED, "its statement runs", async || {
        (cluster.database().value::<i64>(sleeps).await == 1).then_some(())
    })
    .await;
    cluster.replica(0).stop();
    assert_eq!(cluster.wait_other_leader(TAKEOVER, &[0]).await, 1);
    cluster.wait_settled(10, SETTLED).await;
    assert_eq!(written_under(&cluster, term).await, (0, 0));
    sampler.finish();
    continued_in_good_order(&cluster, term, "in-store").await;
}

#[tokio::test]
async fn a_leader_stopped_while_it_reads_a_result_does_not_hold_up_the_next_one() {
    let jobs = [Job::probe("in-store", 1_000).batch(1_000, 1)];
    let cluster = Setup::new(2, &schedule(&jobs)).behind_proxies().prepare().await;
    cluster.replica(0).start();
    cluster.wait_leader(READY).await;
    cluster.replica(1).start();
    cluster.replica(1).wait_ready(READY).await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    // Makes the claim's result tens of megabytes: few rows, but more than any buffer between the server and a reader that stands still.
    cluster
        .database()
        .execute(
            "create function public.wide() returns trigger language plpgsql as
             $$ begin new.merchant := repeat('x', 40000); return new; end $$;
             create trigger wide before insert on bursar.unit for each row execute function public.wide()",
        )
        .await;
    cluster
        .replica(0)
        .database_line()
        .set(crate::support::proxy::Flow::Pass, crate::support::proxy::Flow::Delay(Duration::from_millis(20)));
    cluster.trigger("in-store");
    let writing =
        "select count(*) from pg_stat_activity where wait_event = 'ClientWrite' and datname = current_database()";
    eventually(SETTLED, "its result is on the way", async || {
        (cluster.database().value::<i64>(writing).await > 0).then_some(())
    })
    .await;
    cluster.replica(0).stop();
    cluster.replica(0).database_line().set(crate::support::proxy::Flow::Pass, crate::support::proxy::Flow::Pass);
    assert_eq!(cluster.wait_other_leader(TAKEOVER, &[0]).await, 1);
    cluster.wait_settled(1_000, SETTLED).await;
    assert_eq!(written_under(&cluster, term).await, (0, 0));
    sampler.finish();
    cluster.database().execute("drop function public.wide() cascade; update bursar.unit set merchant = null").await;
    continued_in_good_order(&cluster, term, "in-store").await;
}

#[tokio::test]
async fn a_replica_whose_teardown_hangs_ends_itself_before_another_leads() {
    let cluster = Setup::new(2, &schedule(&[Job::probe("each-second", 1).cron(EVERY_SECOND)])).behind_proxies();
    let cluster = cluster.prepare().await;
    let hanging = cluster.replica(0);
    hanging.set_chaos("tenure.teardown.start=pause");
    hanging.start();
    cluster.wait_leader(READY).await;
    hanging.unset_env("BURSAR_CHAOS");
    cluster.replica(1).start();
    cluster.replica(1).wait_ready(READY).await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    hanging.cut_from_etcd();
    let status = hanging.wait_end(TAKEOVER);
    assert_eq!(cluster.term().await, term, "it ended before its lease was given to another");
    assert_eq!(status.code(), Some(HALF_A_REPLICA), "{}", hanging.log());
    assert!(hanging.has_hit("tenure.teardown.start"));
    assert_eq!(cluster.wait_leader(TAKEOVER).await, 1);
    let settled = cluster.settled().await;
    cluster.wait_settled(settled + 2, SETTLED).await;
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn a_replica_that_hangs_while_it_leaves_ends_itself_too() {
    let cluster = Setup::new(1, &schedule(&[Job::probe("in-store", 1)])).key("coordinator", "drain", "\"1s\"");
    let cluster = cluster.chaos("tenure.teardown.start=pause").start().await;
    cluster.wait_leader(READY).await;
    cluster.replica(0).term();
    assert_eq!(cluster.replica(0).wait_end(TAKEOVER).code(), Some(HALF_A_REPLICA));
    cluster.replica(0).unset_env("BURSAR_CHAOS");
    // Nothing was given up in order: the key goes with the lease.
    let etcd = Etcd::shared();
    eventually(TAKEOVER, "the lease lapses", async || etcd.get(&cluster.leader_key()).await.is_none().then_some(()))
        .await;
    cluster.assert_sound().await;
}

#[tokio::test]
async fn a_replica_whose_workers_are_stuck_ends_itself_and_another_leads() {
    let jobs = [Job::probe("stuck", 3).batch(1, 1).set("wedge", "[\"unit-00001\"]")];
    let cluster = pair(&jobs, "").await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    let triggered = cluster.replica(1).command(&["trigger", "stuck", "--wait", "60s"]);
    triggered.ok();
    let asked = boottime();
    let status = cluster.replica(0).wait_end(TTL * 3 + READY);
    let took = boottime().since(asked);
    assert_eq!(status.code(), Some(HALF_A_REPLICA), "{}", cluster.replica(0).log());
    assert!(took >= TTL * 2, "it was given up on after {took:?}");
    // Another leads, and is stuck at the same unit in its turn.
    cluster.wait_work_above(term, TAKEOVER).await;
    let history = sampler.finish();
    assert!(history.tenures(ELECTION).iter().any(|(_, replica)| *replica == 1), "{:?}", history.tenures(ELECTION));
    cluster.replica(1).kill();
    let settled = "select count(*) from bursar.unit where key = 'unit-00000' and state = 'settled'";
    assert_eq!(cluster.database().value::<i64>(settled).await, 1, "what was committed before counts");
    cluster.assert_sound().await;
}
