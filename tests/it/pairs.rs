//! The faults that every pair of coordinator and store has to stand: a leader that is killed, stopped for three TTLs, asked to
//! end; fifty changes of leadership; and under elections in the database the wall clock stepped an hour and a day both ways.
//!
//! Elections in etcd are shown by `election`, `pauses`, `tenures` and `timed`; here are those without etcd.

mod clocks;
mod files;

use std::time::Duration;

use bursar::clock::boottime;

use crate::support::cluster::ELECTION;
use crate::support::{Cluster, EVERY_SECOND, Job, Pair, Replica, Setup, eventually, repetitions, schedule};

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

/// Three replicas that are ready, one of which leads.
async fn three(pair: Pair, jobs: &[Job]) -> (Cluster, usize) {
    let cluster = Setup::new(3, &schedule(jobs)).on(pair).start().await;
    for replica in cluster.replicas() {
        replica.wait_ready(READY).await;
    }
    let leader = cluster.wait_leader(READY).await;
    (cluster, leader)
}

async fn another_leads_within_the_ttl_after_a_kill_and_settles_the_rest(pair: Pair) {
    let jobs = [Job::probe("in-store", 60).batch(1, 2).set("wait_ms", "100"), each_second()];
    let (cluster, leader) = three(pair, &jobs).await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    cluster.trigger("in-store");
    cluster.wait_settled(10, SETTLED).await;
    let killed = boottime();
    cluster.replica(leader).kill();
    let next = cluster.wait_work_above(term, TAKEOVER).await;
    let took = boottime().since(killed);
    assert!(took <= TTL + Duration::from_secs(3), "{took:?}");
    assert_ne!(cluster.wait_leader(TAKEOVER).await, leader);
    cluster.wait_settled(60, SETTLED).await;
    assert!(cluster.term().await >= next && next > term);
    cluster.replica(leader).start();
    cluster.replica(leader).wait_ready(READY).await;
    cluster.assert_sound().await;
    sampler.finish();
}

async fn a_leader_stopped_for_three_ttls_leads_no_more_when_it_goes_on(pair: Pair) {
    let (cluster, leader) = three(pair, &[each_second()]).await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    cluster.wait_settled(1, SETTLED).await;
    cluster.replica(leader).stop();
    let stopped = boottime();
    let next = cluster.wait_work_above(term, TAKEOVER).await;
    eventually(TTL * 4, "three TTLs pass", async || (boottime().since(stopped) >= TTL * 3).then_some(())).await;
    let of_old = format!("select count(*) from bursar.batch where term = {term}");
    let before = cluster.number(&of_old).await;
    sampler.finish();
    // Stopped with the lock of the lease file or the store, it was ended by the one that waited for it: to the system it is
    // the same replica started anew.
    let old = cluster.replica(leader);
    if pair == Pair::Embedded && !old.is_running() {
        let log: String = cluster.replicas().iter().map(Replica::log).collect();
        assert!(log.contains("ended a replica that"), "nobody says that it was ended");
        old.start();
    }
    let sampler = cluster.watch();
    cluster.replica(leader).cont();
    cluster.replica(leader).wait_ready(READY).await;
    let settled = cluster.settled().await;
    cluster.wait_settled(settled + 2, SETTLED).await;
    assert_eq!(cluster.number(&of_old).await, before, "it settled something under its old term");
    assert!(cluster.term().await >= next);
    let history = sampler.finish();
    let under_old = history.last_led(ELECTION, leader, u64::try_from(term).expect("positive"));
    assert_eq!(under_old, None, "it said that it leads under its old term");
    cluster.assert_sound().await;
}

async fn a_leader_that_is_asked_to_end_hands_over_at_once(pair: Pair) {
    let (cluster, leader) = three(pair, &[each_second()]).await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    cluster.wait_settled(1, SETTLED).await;
    let asked = boottime();
    cluster.replica(leader).term();
    cluster.wait_work_above(term, TAKEOVER).await;
    let took = boottime().since(asked);
    assert!(took < TTL / 2, "it took {took:?}: no lease was waited for");
    assert!(cluster.replica(leader).wait_end(TAKEOVER).success());
    assert_ne!(cluster.wait_leader(TAKEOVER).await, leader);
    cluster.assert_sound().await;
    sampler.finish();
}

async fn leadership_changes_fifty_times(pair: Pair) {
    let (cluster, mut leader) = three(pair, &[each_second()]).await;
    let sampler = cluster.watch();
    let mut term = cluster.wait_work_above(0, SETTLED).await;
    for change in 0..repetitions(&format!("changes of leadership on {pair:?}"), 8, 50) {
        let replica = cluster.replica(leader);
        // Every fifth dies; the others are asked.
        if change % 5 == 4 {
            replica.kill();
        } else {
            replica.term();
        }
        let next = cluster.wait_work_above(term, TAKEOVER).await;
        assert!(next > term, "term {next} after {term}");
        term = next;
        if change % 5 != 4 {
            assert!(replica.wait_end(TAKEOVER).success());
        }
        replica.start();
        replica.wait_ready(READY).await;
        leader = cluster.wait_leader(TAKEOVER).await;
    }
    cluster.assert_sound().await;
    sampler.finish();
}

async fn resuming_above_a_term_leads_under_a_higher_one_and_nothing_is_done_under_a_lower(pair: Pair) {
    let (cluster, _) = three(pair, &[each_second()]).await;
    let term = cluster.term().await;
    cluster.wait_settled(1, SETTLED).await;
    let above = (term + 40).to_string();
    let usage = cluster.command(&["resume", "--reason", "restored", "--term-above", &above]);
    assert_eq!(usage.code(), Some(64), "terms are an election's: {}", usage.stderr);
    cluster.command(&["halt", "--reason", "restored"]).ok();
    let lower = format!("select count(*) from bursar.batch where term <= {above}");
    let before = cluster.number(&lower).await;
    cluster.command(&["resume", "--reason", "restored", "--election", ELECTION, "--term-above", &above]).ok();
    let next = cluster.wait_work_above(term, TAKEOVER).await;
    assert!(next > term + 40, "term {next}");
    let settled = cluster.settled().await;
    cluster.wait_settled(settled + 2, SETTLED).await;
    assert_eq!(cluster.number(&lower).await, before, "a lower term settled after the resume");
    // Lifted to less, nothing changes.
    cluster.command(&["resume", "--reason", "again", "--election", ELECTION, "--term-above", "1"]).ok();
    assert_eq!(cluster.term().await, next);
    cluster.assert_sound().await;
}

/// The same faults on a pair.
macro_rules! on_pair {
    ($module:ident, $pair:expr) => {
        mod $module {
            use super::*;

            #[tokio::test]
            async fn another_leads_within_the_ttl_after_a_kill_and_settles_the_rest() {
                super::another_leads_within_the_ttl_after_a_kill_and_settles_the_rest($pair).await;
            }

            #[tokio::test]
            async fn a_leader_stopped_for_three_ttls_leads_no_more_when_it_goes_on() {
                super::a_leader_stopped_for_three_ttls_leads_no_more_when_it_goes_on($pair).await;
            }

            #[tokio::test]
            async fn a_leader_that_is_asked_to_end_hands_over_at_once() {
                super::a_leader_that_is_asked_to_end_hands_over_at_once($pair).await;
            }

            #[tokio::test]
            async fn leadership_changes_fifty_times() {
                super::leadership_changes_fifty_times($pair).await;
            }

            #[tokio::test]
            async fn resuming_above_a_term_leads_under_a_higher_one_and_nothing_is_done_under_a_lower() {
                super::resuming_above_a_term_leads_under_a_higher_one_and_nothing_is_done_under_a_lower($pair).await;
            }
        }
    };
}

on_pair!(postgres_alone, Pair::PostgresAlone);
on_pair!(embedded, Pair::Embedded);

#[tokio::test]
async fn with_etcd_resuming_above_a_term_leads_under_a_higher_one() {
    resuming_above_a_term_leads_under_a_higher_one_and_nothing_is_done_under_a_lower(Pair::EtcdPostgres).await;
}
