//! Stores and clocks that are not what they were: a coordinator wiped or edited by hand, a database set back to an earlier
//! copy, a wall clock that is hours off.

mod database;

use std::time::Duration;

use bursar::clock::boottime;
use chrono::{DateTime, TimeDelta, Utc};

use crate::support::{Calls, Cluster, EVERY_SECOND, Etcd, FakeClock, Job, Replica, Setup, eventually, schedule};

/// A start on a busy machine.
const READY: Duration = Duration::from_secs(30);
/// A lease that lapses, and what follows, on a busy machine.
const TAKEOVER: Duration = Duration::from_secs(30);
/// A run of some seconds, on a busy machine.
const SETTLED: Duration = Duration::from_secs(90);
/// A renewal interval and a second: so long two may seem to lead where the coordinator itself was tampered with.
const TWO_LEADERS: Duration = Duration::from_secs(2);

fn each_second() -> String {
    schedule(&[Job::probe("each-second", 1).cron(EVERY_SECOND)])
}

/// In the store's advance: behind the win, before the fence.
const ADVANCING: &str = "store.advance.before";

/// Which of two replicas that hold the same term is let go to the fence first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Earlier,
    Later,
    Both,
}

/// Waits until the store has decided on that term.
async fn wait_decided(cluster: &Cluster, term: i64) {
    let accepted = format!("select count(*) from bursar.term_history where term = {term}");
    eventually(TAKEOVER, "the store has accepted the term from someone", async || {
        (cluster.database().value::<i64>(&accepted).await >= 1).then_some(())
    })
    .await;
}

/// Two replicas win one term of one election: the first is held between its win and the fence while etcd is wiped, so that
/// the second wins the same term there.
async fn one_term_won_twice(first: First) {
    let etcd = Etcd::start(1);
    let calls = Calls::none_yet();
    let jobs = [Job::calling("outside", 20, &calls).batch(4, 1), Job::probe("each-second", 1).cron(EVERY_SECOND)];
    let setup = Setup::new(2, &schedule(&jobs)).behind_proxies().on_etcd(&etcd).steady();
    let cluster = setup.chaos(&format!("{ADVANCING}=pause@1")).prepare().await;
    let (earlier, later) = (cluster.replica(0), cluster.replica(1));
    earlier.start();
    earlier.wait_hit(ADVANCING, READY).await;
    // It does not learn what becomes of its lease: it is in doubt until the deadline, not lost.
    earlier.cut_from_etcd();
    etcd.wipe();
    later.start();
    later.wait_hit(ADVANCING, READY).await;
    let won = etcd.get(&cluster.term_key()).await;
    assert_eq!(won.as_deref(), Some("1"), "both have won term 1");
    let mut sampler = cluster.watch();
    sampler.tolerate(TWO_LEADERS);

    match first {
        First::Earlier => {
            earlier.release(ADVANCING);
            wait_decided(&cluster, 1).await;
            later.release(ADVANCING);
        }
        First::Later => {
            later.release(ADVANCING);
            wait_decided(&cluster, 1).await;
            earlier.release(ADVANCING);
        }
        First::Both => {
            earlier.release(ADVANCING);
            later.release(ADVANCING);
        }
    }
    eventually(TAKEOVER, "the other is refused, and counts it", async || {
        let mut refused = 0.0;
        for replica in cluster.replicas() {
            let labels = [("operation", "advance")];
            refused += replica.metric("bursar_fencing_rejects_total", &labels).await.unwrap_or(0.0);
        }
        (refused >= 1.0).then_some(())
    })
    .await;
    earlier.heal();
    cluster.wait_work_above(0, TAKEOVER).await;
    let settled = cluster.settled().await;
    cluster.wait_settled(settled + 2, SETTLED).await;
    for replica in cluster.replicas() {
        replica.wait_ready(READY).await;
    }
    let accepted: Vec<(String,)> =
        cluster.database().rows("select replica from bursar.term_history where term = 1").await;
    assert_eq!(accepted.len(), 1, "the store accepts a term from one tenure: {accepted:?}");
    let expected = match first {
        First::Earlier => Some("r0"),
        First::Later => Some("r1"),
        First::Both => None,
    };
    assert!(expected.is_none_or(|expected| accepted[0].0 == expected), "{first:?}: {accepted:?}");
    let run = cluster.run_now("outside").await;
    assert_eq!(cluster.run_shown(run)["summary"]["units"]["settled"], 20);
    assert!(calls.by_key().values().all(|count| *count == 1));
    calls.assert_terms_only_rise();
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn of_two_that_won_one_term_the_earlier_is_accepted_where_it_comes_first() {
    one_term_won_twice(First::Earlier).await;
}

#[tokio::test]
async fn of_two_that_won_one_term_the_later_is_accepted_where_it_comes_first() {
    one_term_won_twice(First::Later).await;
}

#[tokio::test]
async fn of_two_that_won_one_term_one_is_accepted_where_they_come_together() {
    one_term_won_twice(First::Both).await;
}

#[tokio::test]
async fn a_wiped_coordinator_goes_on_above_the_terms_that_the_store_knows() {
    let etcd = Etcd::start(1);
    let cluster = Setup::new(2, &each_second()).on_etcd(&etcd).start().await;
    cluster.wait_leader(READY).await;
    // A few terms, so that a coordinator that begins anew would be far behind.
    for _ in 0..3 {
        let term = cluster.term().await;
        let lease = cluster.leaders_lease(&etcd).await;
        etcd.revoke(lease).await;
        cluster.wait_work_above(term, TAKEOVER).await;
    }
    let mut sampler = cluster.watch();
    sampler.tolerate(TWO_LEADERS);
    let term = cluster.term().await;
    assert!(term >= 4);
    etcd.wipe();
    let next = cluster.wait_work_above(term, TAKEOVER * 2).await;
    assert_eq!(etcd.get(&cluster.term_key()).await, Some(next.to_string()));
    let settled = cluster.settled().await;
    cluster.wait_settled(settled + 2, SETTLED).await;
    cluster.assert_sound().await;
    sampler.finish();
}

/// What a hand does to the leader's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hand {
    Deletes,
    PutsNonsense,
    PutsACopy,
    /// On the leader's lease, which it goes on renewing.
    PutsNonsenseOnItsLease,
    /// And what is no number under the term.
    DeletesAndSpoilsTheTerm,
}

#[tokio::test]
async fn a_leader_key_that_a_hand_deletes_or_replaces_is_followed_by_one_leader_again() {
    let etcd = Etcd::shared();
    let cluster = Setup::new(2, &each_second()).start().await;
    cluster.wait_leader(READY).await;
    for replica in cluster.replicas() {
        replica.wait_ready(READY).await;
    }
    let mut sampler = cluster.watch();
    sampler.tolerate(TWO_LEADERS);
    for hand in [
        Hand::Deletes,
        Hand::PutsNonsense,
        Hand::PutsACopy,
        Hand::PutsNonsenseOnItsLease,
        Hand::DeletesAndSpoilsTheTerm,
    ] {
        let term = cluster.term().await;
        let key = cluster.leader_key();
        match hand {
            Hand::Deletes => assert!(etcd.delete(&key).await),
            Hand::PutsNonsense => etcd.put(&key, "by hand").await,
            Hand::PutsACopy => {
                let record = etcd.get(&key).await.expect("there is a leader");
                etcd.put(&key, &record).await;
            }
            Hand::PutsNonsenseOnItsLease => {
                let lease = cluster.leaders_lease(etcd).await;
                etcd.put_on(&key, "by hand", lease).await;
            }
            Hand::DeletesAndSpoilsTheTerm => {
                etcd.put(&cluster.term_key(), "seven").await;
                assert!(etcd.delete(&key).await);
            }
        }
        let done = boottime();
        let next = cluster.wait_work_above(term, TAKEOVER).await;
        let took = boottime().since(done);
        assert!(took < Duration::from_secs(10), "{hand:?}: one leads again after {took:?}");
        let leader = cluster.wait_leader(TAKEOVER).await;
        let record: serde_json::Value =
            serde_json::from_str(&etcd.get(&key).await.expect("there is a leader")).expect("a record");
        assert_eq!(
            (record["term"].as_i64(), record["leader_id"].as_str()),
            (Some(next), Some(cluster.replica(leader).id()))
        );
        assert_ne!(cluster.leaders_lease(etcd).await, 0, "its key stands on a lease");
        let told = match hand {
            Hand::Deletes => "",
            Hand::PutsNonsense | Hand::PutsACopy => "without a lease",
            Hand::PutsNonsenseOnItsLease => "on this replica's lease",
            Hand::DeletesAndSpoilsTheTerm => "it counts as no term",
        };
        if !told.is_empty() {
            let log: String = cluster.replicas().iter().map(Replica::log).collect();
            let alert = log.lines().any(|line| line.contains("ERROR") && line.contains(told));
            assert!(alert, "{hand:?}: there is an alert:\n{log}");
        }
        let settled = cluster.settled().await;
        cluster.wait_settled(settled + 2, SETTLED).await;
        for replica in cluster.replicas() {
            replica.wait_ready(READY).await;
        }
    }
    cluster.assert_sound().await;
    sampler.finish();
}

/// Waits for so many more ticks with their runs.
async fn wait_ticks(cluster: &Cluster, more: i64) {
    let settled = cluster.settled().await;
    cluster.wait_settled(settled + more, SETTLED).await;
}

#[tokio::test]
async fn a_leader_whose_wall_clock_is_an_hour_off_fires_no_tick_early_and_loses_none() {
    let clock = FakeClock::new();
    let cluster = Setup::new(1, &each_second()).steady().prepare().await;
    let replica = cluster.replica(0);
    for (key, value) in clock.env() {
        replica.set_env(&key, &value);
    }
    replica.start();
    cluster.wait_leader(READY).await;
    let sampler = cluster.watch();
    let term = cluster.term().await;
    wait_ticks(&cluster, 2).await;
    for (offset, seconds) in [("+3600s", 3600.0), ("-3600s", -3600.0), ("+0s", 0.0)] {
        clock.set(offset);
        eventually(READY, "the skew is seen", async || {
            let skew = replica.metric("bursar_store_clock_skew_seconds", &[]).await?;
            ((skew - seconds).abs() < 60.0).then_some(())
        })
        .await;
        wait_ticks(&cluster, 4).await;
        // A command with the same clock asks for a run: its times are the store's too.
        cluster.run_now("each-second").await;
    }
    // And a start under a clock that is ahead.
    replica.kill();
    clock.set("+3600s");
    replica.start();
    cluster.wait_work_above(term, TAKEOVER).await;
    wait_ticks(&cluster, 4).await;

    let early = "select count(*) from bursar.run where opened_at < due_at or tick > opened_at or cutoff_at > opened_at";
    assert_eq!(cluster.database().value::<i64>(early).await, 0, "no tick is early, no cutoff lies in the future");
    let runs = "select tick, state from bursar.run where kind = 'tick' order by tick";
    let runs: Vec<(DateTime<Utc>, String)> = cluster.database().rows(runs).await;
    for pair in runs.windows(2) {
        assert_eq!(pair[1].0 - pair[0].0, TimeDelta::seconds(1), "a tick is missing: {pair:?}");
    }
    let now = cluster.store_clock().await;
    let newest = runs.last().expect("there are ticks").0;
    assert!(newest <= now && now - newest < TimeDelta::seconds(30), "ticks are the store's: {newest} at {now}");
    assert!(runs.iter().all(|(_, state)| state == "complete" || state == "open" || state == "planning"), "{runs:?}");
    cluster.assert_sound().await;
    sampler.finish();
}
