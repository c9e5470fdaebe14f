//! What a new leader makes of what the last one left: ticks that fell in between, units in flight, runs that kill their
//! leaders, all of it beside an import. And what becomes of units that cannot be settled at all.

mod edits;
mod ticks;

use std::time::Duration;

use crate::support::{Calls, Cluster, Entries, Etcd, Job, LedgerJob, Pair, Setup, eventually, schedule};

/// A start on a busy machine.
const READY: Duration = Duration::from_secs(30);
/// A lease that lapses, and what follows, on a busy machine.
const TAKEOVER: Duration = Duration::from_secs(30);
/// A run of some seconds, on a busy machine.
const SETTLED: Duration = Duration::from_mins(2);

/// SIGKILL to the leader, and its lease revoked: what lapses is tested elsewhere, here it is what follows that counts. A lease
/// in a file lapses.
async fn kill_leader(cluster: &Cluster, etcd: &Etcd, leader: usize) {
    if !cluster.has_server() {
        return cluster.replica(leader).kill();
    }
    let lease = cluster.leaders_lease(etcd).await;
    cluster.replica(leader).kill();
    etcd.revoke(lease).await;
}

/// How many units this replica has in hand.
async fn in_flight(cluster: &Cluster, replica: usize) -> f64 {
    cluster.replica(replica).metric("bursar_in_flight_units", &[]).await.unwrap_or(0.0)
}

#[tokio::test]
async fn units_in_flight_of_a_killed_leader_are_taken_up_first() {
    for outside in [true, false] {
        let calls = Calls::none_yet();
        let job = if outside {
            Job::calling("hundred", 100, &calls).batch(8, 1)
        } else {
            Job::probe("hundred", 100).batch(1, 8)
        };
        let setup =
            Setup::new(2, &schedule(&[job.set("wait_ms", "300")])).steady().key("database", "max_connections", "16");
        let cluster = setup.start().await;
        let old = cluster.wait_leader(READY).await;
        cluster.replica(1 - old).wait_ready(READY).await;
        let sampler = cluster.watch();
        let term = cluster.term().await;
        let run = cluster.open_now("hundred");
        cluster.wait_settled(8, SETTLED).await;
        eventually(SETTLED, "eight units are in flight", async || {
            (in_flight(&cluster, old).await >= 8.0).then_some(())
        })
        .await;
        kill_leader(&cluster, Etcd::shared(), old).await;
        let settled = cluster.settled().await;
        assert!(settled < 100, "it was killed in the middle");
        let left: Vec<(String,)> =
            cluster.database().rows("select u.key from bursar.instruction i join bursar.unit u on u.id = i.unit_id where i.state = 'sending'").await;
        assert_eq!(left.is_empty(), !outside, "what was on the wire is written down: {left:?}");
        let higher = cluster.wait_work_above(term, TAKEOVER).await;
        cluster.wait_run_ended(run).await;

        let shown = cluster.run_shown(run);
        assert_eq!(
            (&shown["summary"]["state"], &shown["summary"]["units"]["settled"], &shown["deaths"]),
            (&"complete".into(), &100.into(), &0.into()),
            "{shown}"
        );
        let attempts: i64 = cluster.database().value("select sum(attempts)::bigint from bursar.unit").await;
        assert_eq!(attempts, 0, "a leader's death is no attempt of a unit");
        if outside {
            // Only what was on the wire was called a second time, before any other unit, and it was known to be in doubt.
            let by_key = calls.by_key();
            assert_eq!(by_key.len(), 100);
            for (key, count) in by_key {
                let doubted = left.iter().any(|(left,)| *left == key);
                assert!(count == 1 || (count == 2 && doubted), "{key} was called {count} times");
            }
            let first_of_new: Vec<String> =
                calls.all().into_iter().filter(|call| call.1 == higher).map(|call| call.0).collect();
            for key in first_of_new.iter().take(left.len()) {
                assert!(left.iter().any(|(left,)| left == key), "{key} came before what was left: {left:?}");
            }
            calls.assert_terms_only_rise();
        }
        cluster.assert_sound().await;
        sampler.finish();
    }
}

#[tokio::test]
async fn on_sqlite_units_in_flight_of_a_killed_leader_are_taken_up_first() {
    let calls = Calls::none_yet();
    let job = Job::calling("hundred", 100, &calls).batch(8, 1).set("wait_ms", "300");
    let cluster = Setup::new(2, &schedule(&[job])).on(Pair::Embedded).start().await;
    let old = cluster.wait_leader(READY).await;
    cluster.replica(1 - old).wait_ready(READY).await;
    let term = cluster.term().await;
    let run = cluster.open_now("hundred");
    cluster.wait_settled(8, SETTLED).await;
    eventually(SETTLED, "eight units are in flight", async || (in_flight(&cluster, old).await >= 8.0).then_some(()))
        .await;
    cluster.replica(old).kill();
    let left = cluster.number("select count(*) from bursar.instruction where state = 'sending'").await;
    assert!(cluster.settled().await < 100, "it was killed in the middle");
    let higher = cluster.wait_work_above(term, TAKEOVER).await;
    cluster.wait_run_ended(run).await;
    let shown = cluster.run_shown(run);
    assert_eq!(
        (&shown["summary"]["state"], &shown["summary"]["units"]["settled"], &shown["deaths"]),
        (&"complete".into(), &100.into(), &0.into()),
        "{shown}"
    );
    assert_eq!(cluster.number("select sum(attempts) from bursar.unit").await, 0, "a death is no attempt of a unit");
    let by_key = calls.by_key();
    let again: Vec<&String> = by_key.iter().filter(|(_, count)| **count > 1).map(|(key, _)| key).collect();
    assert_eq!(by_key.len(), 100);
    assert!(
        by_key.values().all(|count| *count <= 2) && i64::try_from(again.len()).is_ok_and(|again| again <= left),
        "{again:?}, {left} were left"
    );
    // Before any unit that nobody had tried.
    let of_new: Vec<String> = calls.all().into_iter().filter(|call| call.1 == higher).map(|call| call.0).collect();
    let first = of_new.iter().take(again.len());
    assert!(first.clone().all(|key| again.contains(&key)), "{:?}, again {again:?}", first.collect::<Vec<_>>());
    calls.assert_terms_only_rise();
    cluster.assert_sound().await;
}

#[tokio::test]
async fn a_run_whose_leaders_die_three_times_is_set_aside_and_the_others_go_on() {
    let etcd = Etcd::shared();
    // Never comes to an end; beside it one that does.
    let jobs = [
        Job::probe("deadly", 3).batch(3, 1).set("wait_ms", "600000"),
        Job::probe("sound", 1).cron(crate::support::EVERY_SECOND),
    ];
    let cluster = Setup::new(2, &schedule(&jobs)).steady().start().await;
    let mut leader = cluster.wait_leader(READY).await;
    cluster.replica(1 - leader).wait_ready(READY).await;
    let sampler = cluster.watch();
    let run = cluster.open_now("deadly");
    for death in 1..=3 {
        let term = cluster.term().await;
        let at_work = format!("select count(*) from bursar.run where id = {run} and worked_term = {term}");
        eventually(TAKEOVER, "the leader works on it", async || {
            (cluster.database().value::<i64>(&at_work).await == 1).then_some(())
        })
        .await;
        kill_leader(&cluster, etcd, leader).await;
        cluster.wait_work_above(term, TAKEOVER).await;
        let dead = leader;
        leader = cluster.wait_other_leader(TAKEOVER, &[dead]).await;
        cluster.replica(dead).start();
        cluster.replica(dead).wait_ready(READY).await;
        let deaths = format!("select deaths from bursar.run where id = {run}");
        eventually(TAKEOVER, "the death is counted", async || {
            (cluster.database().value::<i32>(&deaths).await == death).then_some(())
        })
        .await;
    }
    cluster.wait_run_ended(run).await;
    let shown = cluster.run_shown(run);
    assert_eq!(
        (&shown["summary"]["state"], &shown["summary"]["units"]["set_aside"], &shown["deaths"]),
        (&"complete_set_aside".into(), &3.into(), &3.into()),
        "{shown}"
    );
    let why = shown["summary"]["why"].as_str().unwrap_or_default();
    assert!(why.contains("3 leaders died"), "{shown}");
    let log = cluster.replica(leader).log();
    let alert = log.lines().any(|line| line.contains("ERROR") && line.contains("a run is set aside"));
    assert!(alert, "there is an alert:\n{log}");
    let settled = cluster.settled().await;
    cluster.wait_settled(settled + 2, SETTLED).await;
    assert_eq!(cluster.run_shown(run)["summary"]["state"], "complete_set_aside", "nobody takes it up again");
    cluster.assert_sound().await;
    sampler.finish();
}

async fn two_of_five_thousand_units_are_set_aside(pair: Pair) {
    let job = Job::probe("many", 5_000)
        .batch(1_000, 2)
        .retry(3, "10ms..100ms")
        .set("fail", "[\"unit-00123\"]")
        .set("panic", "[\"unit-04321\"]");
    let cluster = Setup::new(1, &schedule(&[job])).on(pair).steady().start().await;
    let leader = cluster.wait_leader(READY).await;
    let run = cluster.run_now("many").await;
    let shown = cluster.run_shown(run);
    let units = &shown["summary"]["units"];
    assert_eq!(
        (&shown["summary"]["state"], &units["settled"], &units["set_aside"], &units["pending"]),
        (&"complete_set_aside".into(), &4_998.into(), &2.into(), &0.into()),
        "{shown}"
    );
    for (key, words) in [("unit-00123", "set to fail"), ("unit-04321", "panicked: probe: set to panic")] {
        let unit = cluster.unit_shown(run, key);
        assert_eq!((&unit["state"], &unit["attempts"]), (&"set_aside".into(), &3.into()), "{unit}");
        assert!(unit["last_error"].as_str().unwrap_or_default().contains(words), "{unit}");
    }
    let others = cluster.number("select count(*) from bursar.unit where state = 'settled' and attempts > 0").await;
    assert_eq!(others, 0, "who stood in a batch with them was charged nothing");
    let metrics = eventually(READY, "a scrape", async || cluster.replica(leader).metrics().await).await;
    assert_eq!(metrics.value("bursar_units_settled_total", &[]), Some(4_998.0));
    let table = cluster.command(&["runs", "show", &run.to_string()]).ok().stdout;
    assert!(table.contains("complete_set_aside") && table.contains("set aside 2"), "{table}");
    cluster.assert_sound().await;
}

#[tokio::test]
async fn of_five_thousand_units_two_are_set_aside_after_exactly_their_attempts_and_all_others_settle() {
    two_of_five_thousand_units_are_set_aside(Pair::EtcdPostgres).await;
}

#[tokio::test]
async fn on_sqlite_too_of_five_thousand_units_two_are_set_aside_and_all_others_settle() {
    two_of_five_thousand_units_are_set_aside(Pair::Embedded).await;
}

async fn an_import_a_run_and_a_takeover_at_once(pair: Pair) {
    let etcd = Etcd::shared();
    let job = LedgerJob::new("daily").batch(100, 3);
    let setup = Setup::new(2, &job.text()).on(pair);
    let setup = match pair {
        Pair::Embedded => setup,
        Pair::EtcdPostgres | Pair::PostgresAlone => setup.steady().key("database", "max_connections", "12"),
    };
    let cluster = setup.start().await;
    let old = cluster.wait_leader(READY).await;
    cluster.replica(1 - old).wait_ready(READY).await;
    let sampler = cluster.watch();
    cluster.import(&Entries::with_ids("a").bulk(5_000, 2), "psp").ok();
    // More for the same merchants, while they are settled and while the next leader recovers.
    let file = Entries::with_ids("b").bulk(5_000, 10).write("many.csv");
    let term = cluster.term().await;
    let run = cluster.open_now("daily");
    cluster.wait_settled(100, SETTLED).await;
    let importing = cluster.replica(1 - old).begin(&["import", &file.to_string_lossy(), "--source", "psp"]);
    kill_leader(&cluster, etcd, old).await;
    assert!(cluster.settled().await < 5_000, "it was killed in the middle");
    cluster.wait_work_above(term, TAKEOVER).await;
    cluster.wait_run_ended(run).await;
    assert!(importing.wait(SETTLED).success(), "{}", importing.log());
    let last = cluster.run_now("daily").await;

    let charged = "select count(*) from bursar.unit where attempts > 0 or last_error is not null";
    assert_eq!(cluster.number(charged).await, 0, "no unit was charged an attempt");
    for run in [run, last] {
        assert_eq!(cluster.run_shown(run)["summary"]["state"], "complete");
    }
    let wrong = "select count(*) from (select merchant from bursar.instruction group by merchant
                 having sum(amount) <> 12 * (99 + cast(substr(merchant, 2) as bigint))) w";
    assert_eq!(cluster.number(wrong).await, 0, "every entry is paid once");
    assert_eq!(cluster.number("select count(distinct merchant) from bursar.instruction").await, 5_000);
    assert_eq!(cluster.wait_leader(TAKEOVER).await, 1 - old);
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn an_import_a_run_and_a_takeover_at_once_disturb_no_unit() {
    an_import_a_run_and_a_takeover_at_once(Pair::EtcdPostgres).await;
}

#[tokio::test]
async fn on_sqlite_an_import_a_run_and_a_takeover_at_once_disturb_no_unit() {
    an_import_a_run_and_a_takeover_at_once(Pair::Embedded).await;
}
