//! Elections under faults of the coordinator and of the way to it: the leader is cut off, its lease is revoked, a member is
//! gone, names are given twice, a promotion fails.
//!
//! Bounds here are generous, for tests run beside each other; what is promised in time is measured in `timed`.

use std::time::Duration;

use bursar::clock::boottime;

use crate::support::cluster::ELECTION;
use crate::support::{Calls, EVERY_SECOND, Etcd, Job, Setup, eventually, schedule};

/// Replicas are given this TTL.
const TTL: Duration = Duration::from_secs(5);
/// A start on a busy machine.
const READY: Duration = Duration::from_secs(30);
/// A lease that lapses, and what follows, on a busy machine.
const TAKEOVER: Duration = Duration::from_secs(30);
/// A run of some seconds, on a busy machine.
const SETTLED: Duration = Duration::from_secs(90);

/// A job that settles a unit each second: someone is at work.
fn each_second() -> Job {
    Job::probe("each-second", 1).cron(EVERY_SECOND)
}

#[tokio::test]
async fn a_leader_cut_from_the_coordinator_alone_stops_in_time_and_the_next_one_settles_the_rest() {
    let calls = Calls::none_yet();
    let jobs = [
        Job::probe("in-store", 100).batch(1, 2).set("wait_ms", "200"),
        Job::calling("outside", 100, &calls).batch(4, 1).set("wait_ms", "400"),
    ];
    let cluster = Setup::new(2, &schedule(&jobs)).behind_proxies().start().await;
    let old = cluster.wait_leader(READY).await;
    cluster.replica(1 - old).wait_ready(READY).await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    cluster.trigger("in-store");
    cluster.trigger("outside");
    cluster.wait_settled(20, SETTLED).await;

    cluster.replica(old).cut_from_etcd();
    // The last renewal that was answered went out before this.
    let (cut_at, cut) = (cluster.store_time().await, boottime());
    assert!(cluster.settled().await < 180, "it was cut off in the middle");
    let new = cluster.wait_other_leader(TAKEOVER, &[old]).await;
    let next = cluster.term().await;
    assert!(next > term, "term {next} after {term}");
    cluster.wait_settled(200, SETTLED).await;
    cluster.wait_no_open_run(SETTLED).await;

    let late = |table: &str, at: &str| {
        format!(
            "select count(*) from bursar.{table} where term = {term} and {at} > timestamptz '{cut_at}' + interval '5 s'"
        )
    };
    for query in [late("batch", "committed_at"), late("instruction", "first_sent_at")] {
        assert_eq!(cluster.database().value::<i64>(&query).await, 0, "nothing is written or sent later: {query}");
    }
    let by_new = format!("select count(*) from bursar.batch where term >= {next}");
    assert!(cluster.database().value::<i64>(&by_new).await > 0, "the next leader had something left to settle");
    let led = sampler.history().last_led(ELECTION, old, u64::try_from(term).expect("positive"));
    let led = led.expect("it was seen to lead");
    assert!(led.since(cut) <= TTL, "it said that it led {:?} after it was cut off", led.since(cut));

    // Called again was only what a takeover had left without an answer, under the same key.
    let doubted = "select u.key from bursar.instruction i join bursar.unit u on u.id = i.unit_id where i.in_doubt";
    let doubted: Vec<(String,)> = cluster.database().rows(doubted).await;
    let by_key = calls.by_key();
    assert_eq!(by_key.len(), 100);
    for (key, count) in by_key.iter().filter(|(_, count)| **count > 1) {
        assert!(doubted.iter().any(|(doubted,)| doubted == key), "{key} was called {count} times");
    }
    calls.assert_terms_only_rise();

    cluster.replica(old).heal();
    cluster.replica(old).wait_ready(READY).await;
    assert_eq!(cluster.leader().await, Some(new), "who was cut off does not take it back");
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn a_dead_endpoint_listed_first_costs_a_start_little() {
    let etcd = Etcd::start(3);
    let cluster = Setup::new(1, &schedule(&[each_second()])).behind_proxies().on_etcd(&etcd).prepare().await;
    cluster.replica(0).etcd_line(0).cut();
    let started = boottime();
    cluster.replica(0).start();
    cluster.wait_leader(READY).await;
    let took = boottime().since(started);
    assert!(took < Duration::from_secs(10), "{took:?}");
    cluster.wait_settled(1, SETTLED).await;
    cluster.assert_sound().await;
}

#[tokio::test]
async fn a_leader_whose_member_is_cut_off_renews_through_another_or_steps_down() {
    let etcd = Etcd::start(3);
    let cluster = Setup::new(2, &schedule(&[each_second()])).behind_proxies().on_etcd(&etcd).start().await;
    let old = cluster.wait_leader(READY).await;
    let replica = cluster.replica(old);
    cluster.replica(1 - old).wait_ready(READY).await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    // Renewals go to one member; the others are asked now and then whether they are there.
    let bytes = || replica.etcd_lines().iter().map(crate::support::Proxy::request_bytes).collect::<Vec<_>>();
    let before = bytes();
    let renewals = renewals(&cluster, old).await;
    eventually(TAKEOVER, "three more renewals", async || {
        (renewals_now(&cluster, old).await? >= renewals + 3.0).then_some(())
    })
    .await;
    let busiest = (0..before.len()).max_by_key(|line| bytes()[*line] - before[*line]).expect("three lines");

    replica.etcd_line(busiest).cut();
    let cut = boottime();
    let renewals = self::renewals(&cluster, old).await;
    let renewed = eventually(TAKEOVER, "it renews through another member or leads no more", async || {
        let renewed = renewals_now(&cluster, old).await? > renewals + 1.0;
        let leads = replica.leads(ELECTION).await;
        (renewed || !leads).then_some(renewed)
    })
    .await;
    let took = boottime().since(cut);
    assert!(took < TTL + Duration::from_secs(3), "renewed: {renewed}, after {took:?}");

    // Whoever leads is at work.
    let settled = cluster.settled().await;
    cluster.wait_leader(TAKEOVER).await;
    cluster.wait_settled(settled + 3, SETTLED).await;
    assert!(cluster.term().await >= term);
    replica.heal();
    cluster.assert_sound().await;
    sampler.finish();
}

async fn renewals_now(cluster: &crate::support::Cluster, replica: usize) -> Option<f64> {
    cluster.replica(replica).metric("bursar_lease_renewal_seconds_count", &[]).await
}

async fn renewals(cluster: &crate::support::Cluster, replica: usize) -> f64 {
    renewals_now(cluster, replica).await.expect("it answers")
}

#[tokio::test]
async fn a_leader_whose_lease_is_revoked_behind_its_back_is_demoted_and_stands_again() {
    let cluster = Setup::new(2, &schedule(&[each_second()])).start().await;
    let old = cluster.wait_leader(READY).await;
    cluster.replica(1 - old).wait_ready(READY).await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    cluster.wait_settled(1, SETTLED).await;
    let etcd = Etcd::shared();
    etcd.revoke(cluster.leaders_lease(etcd).await).await;
    let revoked = boottime();
    let higher = cluster.wait_work_above(term, TAKEOVER).await;
    let led = sampler.history().last_led(ELECTION, old, u64::try_from(term).expect("positive"));
    let led = led.expect("it was seen to lead").since(revoked);
    assert!(led < Duration::from_secs(3), "it said that it led {led:?} after its lease was revoked");
    // It has a lease again, and leads when the other leaves.
    cluster.replica(old).wait_ready(READY).await;
    let now = cluster.wait_leader(TAKEOVER).await;
    cluster.replica(1 - now).wait_ready(READY).await;
    cluster.replica(now).term();
    assert_eq!(cluster.wait_other_leader(TAKEOVER, &[now]).await, 1 - now);
    assert!(cluster.term().await > higher);
    assert!(cluster.replica(now).wait_end(TAKEOVER).success());
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn of_two_replicas_with_one_id_one_leads_and_none_takes_the_others_record_for_its_own() {
    let cluster = Setup::new(2, &schedule(&[each_second()])).prepare().await;
    for replica in cluster.replicas() {
        replica.set("replica", "id", "\"twin\"");
    }
    let (first, second) = (cluster.replica(0), cluster.replica(1));
    first.start();
    cluster.wait_leader(READY).await;
    let sampler = cluster.watch();
    second.start();
    let term = cluster.term().await;
    eventually(TAKEOVER, "the second lives for longer than a lease", async || {
        (renewals_now(&cluster, 1).await? > 6.0).then_some(())
    })
    .await;
    assert!(first.leads(ELECTION).await && !second.leads(ELECTION).await);
    assert_eq!(cluster.term().await, term);

    // Back within the lease of its earlier life, whose record still stands, under its own id.
    first.kill();
    first.start();
    let higher = cluster.wait_work_above(term, TAKEOVER).await;
    assert!(higher > term);
    for replica in cluster.replicas() {
        replica.wait_ready(READY).await;
        let adopted = replica.metric("bursar_leadership_transitions_total", &[("reason", "adopted")]).await;
        assert_eq!(adopted, Some(0.0), "{} took up a record that it had not won", replica.id());
    }
    assert_eq!(sampler.history().tenures(ELECTION).len(), 2, "one tenure before the restart and one after it");
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn a_replica_whose_promotion_fails_resigns_so_that_another_leads() {
    // What comes before the fence, between it and the first work, and after that.
    for point in ["before_advance", "after_advance", "before_recover", "before_work"] {
        let cluster = Setup::new(2, &schedule(&[each_second()])).prepare().await;
        let (sick, sound) = (cluster.replica(0), cluster.replica(1));
        sick.set_chaos(&format!("tenure.promotion.{point}=error"));
        sick.start();
        eventually(TAKEOVER, "a promotion failed", async || {
            let failed = [("reason", "promotion_failed")];
            (sick.metric("bursar_leadership_transitions_total", &failed).await? >= 1.0).then_some(())
        })
        .await;
        let sampler = cluster.watch();
        sound.start();
        assert_eq!(cluster.wait_other_leader(TAKEOVER, &[0]).await, 1, "{point}");
        sick.unset_env("BURSAR_CHAOS");
        let settled = cluster.settled().await;
        cluster.wait_settled(settled + 2, SETTLED).await;
        assert!(!sick.leads(ELECTION).await, "{point}");
        cluster.assert_sound().await;
        sampler.finish();
    }
}

#[tokio::test]
async fn a_replica_whose_promotions_fail_stands_back_for_a_growing_time() {
    let cluster = Setup::new(1, &schedule(&[each_second()])).prepare().await;
    let sick = cluster.replica(0);
    sick.set_chaos("tenure.promotion.before_advance=error");
    sick.start();
    let sampler = cluster.watch();
    let mut failed_at = Vec::new();
    for time in 1..=4 {
        eventually(TAKEOVER, "the next promotion fails", async || {
            let failed = [("reason", "promotion_failed")];
            let failed = sick.metric("bursar_leadership_transitions_total", &failed).await?;
            (failed >= f64::from(time)).then_some(())
        })
        .await;
        failed_at.push(boottime());
    }
    let waits: Vec<Duration> = failed_at.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    for (wait, least) in waits.iter().zip([1, 2, 4]) {
        // A look at a busy machine may come late, and makes the wait before it seem longer and the next one shorter.
        assert!(*wait + Duration::from_millis(500) >= Duration::from_secs(least), "{waits:?}");
    }
    let history = sampler.finish();
    assert_eq!(history.tenures(ELECTION), [], "it never says that it leads");
    cluster.assert_sound().await;
}

#[tokio::test]
async fn a_leader_that_dies_in_any_step_of_its_promotion_is_followed_by_another() {
    let steps = [
        "before_compare",
        "before_advance",
        "after_advance",
        "before_accepted",
        "before_recover",
        "before_jobs",
        "before_work",
    ];
    for point in steps {
        let cluster = Setup::new(2, &schedule(&[each_second()])).steady().prepare().await;
        let dying = cluster.replica(0);
        dying.set_chaos(&format!("tenure.promotion.{point}=crash"));
        dying.start();
        eventually(TAKEOVER, &format!("it dies {point}"), async || (!dying.is_running()).then_some(())).await;
        dying.unset_env("BURSAR_CHAOS");
        let sampler = cluster.watch();
        cluster.replica(1).start();
        let etcd = Etcd::shared();
        etcd.revoke(cluster.leaders_lease(etcd).await).await;
        assert_eq!(cluster.wait_other_leader(TAKEOVER, &[0]).await, 1, "{point}");
        cluster.wait_settled(2, SETTLED).await;
        dying.start();
        dying.wait_ready(READY).await;
        assert_eq!(cluster.wait_leader(TAKEOVER).await, 1, "who comes back follows: {point}");
        cluster.assert_sound().await;
        sampler.finish();
    }
}
