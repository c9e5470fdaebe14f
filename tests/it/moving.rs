//! Jobs that an edit moves from one election to another, where these are led by different replicas: no tick is lost or doubled,
//! order is kept, what was open stays where it was opened; also where leaders die in the middle of it.

use std::time::Duration;

use bursar::domain::job::JobDefinition;
use chrono::{DateTime, TimeDelta, Utc};

use crate::support::{Calls, Cluster, EVERY_SECOND, Setup, eventually};

/// A start on a busy machine.
const READY: Duration = Duration::from_secs(30);
/// Some ticks of a second, or a lease that lapses and what follows, on a busy machine.
const SOON: Duration = Duration::from_mins(1);
/// The elections that the job moves between.
const ELECTIONS: [&str; 2] = ["first", "second"];

/// A job that each election has, so that its replicas have one to stand for, and the one that moves.
fn schedule(election: &str, cron: &str, wait_ms: u32, calls: &Calls) -> String {
    let job = |name: &str, election: &str, cron: &str, more: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\ncron = \"{cron}\"\nelection = \"{election}\"\nhandler = \"probe\"\n\
             [job.probe]\nunits = 1\n{more}\n"
        )
    };
    let probe = format!(
        "shape = \"outside\"\nidempotent = true\nwait_ms = {wait_ms}\nlog_file = \"{}\"",
        calls.path().display()
    );
    let mut text = job("moves", election, cron, &probe);
    for election in ELECTIONS {
        text += &job(&format!("of-{election}"), election, "0 0 1 1 *", "");
    }
    text
}

/// A replica for each election, which stands for that one alone.
async fn one_for_each(schedule: &str, ttl: u64) -> Cluster {
    let cluster = Setup::new(ELECTIONS.len(), schedule).ttl(ttl).prepare().await;
    for (replica, election) in cluster.replicas().iter().zip(ELECTIONS) {
        replica.set("replica", "elections", &format!("[\"{election}\"]"));
    }
    cluster
}

/// Waits until the replica leads its election.
async fn wait_leads(cluster: &Cluster, replica: usize) {
    let what = format!("r{replica} leads {}", ELECTIONS[replica]);
    eventually(READY, &what, async || cluster.replica(replica).leads(ELECTIONS[replica]).await.then_some(())).await;
}

/// The job that moves, as it is in force.
async fn in_force(cluster: &Cluster) -> JobDefinition {
    let definition: sqlx::types::Json<JobDefinition> =
        cluster.database().value("select definition from bursar.job where name = 'moves' and removed_at is null").await;
    definition.0
}

/// Waits until so many more runs of the job have ended in an election.
async fn wait_more_of(cluster: &Cluster, election: &str, more: i64) {
    let query = format!(
        "select count(*) from bursar.run where job = 'moves' and election = '{election}' and state = 'complete'"
    );
    let before = cluster.number(&query).await;
    eventually(SOON, &format!("{more} more runs of {election} have ended"), async || {
        (cluster.number(&query).await >= before + more).then_some(())
    })
    .await;
}

/// Tick, election and state of each run of the job, in the order of ticks; with what must hold of them at any time.
async fn runs(cluster: &Cluster) -> Vec<(DateTime<Utc>, String, String)> {
    let twice = "select count(*) - count(distinct tick) from bursar.run where job = 'moves'";
    assert_eq!(cluster.number(twice).await, 0, "a tick has one run, whichever election opened it");
    let strays = "select count(*) from bursar.instruction i join bursar.unit u on u.id = i.unit_id
                    join bursar.run r on r.id = u.run_id
                   where r.job = 'moves' and (i.election <> r.election or u.election <> r.election
                     or not exists (select from bursar.term_history h where h.election = i.election and h.term = i.term))";
    assert_eq!(cluster.number(strays).await, 0, "units and calls are of the run's election, under a term of it");
    let overlaps = "with ended as (
                        select r.tick, r.finished_at, (select min(i.first_sent_at) from bursar.instruction i
                                 join bursar.unit u on u.id = i.unit_id where u.run_id = r.id) as sent_at
                          from bursar.run r where r.job = 'moves' and r.state = 'complete')
                    select count(*) from ended one join ended other on one.tick < other.tick
                     where other.sent_at < one.finished_at";
    assert_eq!(cluster.number(overlaps).await, 0, "one run after the other, in the order of ticks");
    let all = "select tick, election, state from bursar.run where job = 'moves' order by tick";
    cluster.database().rows(all).await
}

#[tokio::test]
async fn a_job_that_moves_between_two_leaders_loses_and_doubles_no_tick() {
    let calls = Calls::none_yet();
    let text = |election| schedule(election, EVERY_SECOND, 600, &calls);
    let cluster = one_for_each(&text("first"), 20).await;
    cluster.replicas().iter().for_each(crate::support::Replica::start);
    wait_leads(&cluster, 0).await;
    wait_leads(&cluster, 1).await;
    let sampler = cluster.watch();
    wait_more_of(&cluster, "first", 2).await;
    let targets = ["second", "first", "second"];
    for target in targets {
        cluster.write_schedule(&text(target));
        eventually(SOON, &format!("the job is of {target}"), async || {
            (in_force(&cluster).await.election.as_str() == target).then_some(())
        })
        .await;
        wait_more_of(&cluster, target, 2).await;
    }
    cluster.wait_no_open_run(SOON).await;
    let found = runs(&cluster).await;
    for pair in found.windows(2) {
        assert_eq!(pair[1].0 - pair[0].0, TimeDelta::seconds(1), "a tick is missing after {}", pair[0].0);
    }
    assert!(found.iter().all(|(_, _, state)| ["complete", "open", "planning"].contains(&state.as_str())), "{found:?}");
    let moves = found.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    assert_eq!(moves, targets.len(), "each move counts from one tick on: {found:?}");
    let ended = found.iter().filter(|(_, _, state)| state == "complete").count();
    let called = calls.all().len();
    assert!(ended > 0 && called >= ended, "each run that ended has been called for: {ended}, {called}");
    for (replica, election) in cluster.replicas().iter().zip(ELECTIONS) {
        assert!(replica.leads(election).await, "nobody lost an election over it");
    }
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn a_move_whose_leaders_die_in_the_middle_is_finished_and_waits_for_what_is_open_in_the_old_election() {
    let calls = Calls::none_yet();
    // Runs of three seconds each second: some are open at any time.
    let cluster = one_for_each(&schedule("first", EVERY_SECOND, 3000, &calls), 5).await;
    let [old, new] = [cluster.replica(0), cluster.replica(1)];
    old.start();
    wait_leads(&cluster, 0).await;
    new.set_chaos("tenure.take_over.after=crash");
    new.start();
    wait_leads(&cluster, 1).await;
    wait_more_of(&cluster, "first", 1).await;
    let open = "select count(*) from bursar.run where election = 'first' and state in ('planning', 'open')";
    eventually(SOON, "two runs are open", async || (cluster.number(open).await >= 2).then_some(())).await;
    old.kill();

    // The new leader dies after it took the job over and before the rest of the edit is in force.
    cluster.write_schedule(&schedule("second", "*/2 * * * * *", 10, &calls));
    new.wait_end(SOON);
    let between = in_force(&cluster).await;
    assert_eq!((between.election.as_str(), between.timing.cron.as_str()), ("second", EVERY_SECOND));
    new.unset_env("BURSAR_CHAOS");
    new.start();
    wait_leads(&cluster, 1).await;
    let later = "select count(*) from bursar.run where job = 'moves' and election = 'second'";
    eventually(SOON, "the edit is in force and ticks are opened", async || {
        let is_in_force = in_force(&cluster).await.timing.cron == "*/2 * * * * *";
        (is_in_force && cluster.number(later).await >= 6).then_some(())
    })
    .await;
    let waiting = cluster.number(open).await;
    assert!(waiting >= 2, "nobody but a leader of its election ends a run: {waiting} are open");
    let begun = format!("{later} and state <> 'planning'");
    assert_eq!(cluster.number(&begun).await, 0, "later runs wait for those that are open in the old election");

    old.start();
    wait_more_of(&cluster, "second", 8).await;
    assert_eq!(cluster.number(open).await, 0, "what was open was ended where it was opened");
    let found = runs(&cluster).await;
    let gaps: Vec<i64> = found.windows(2).map(|pair| (pair[1].0 - pair[0].0).num_seconds()).collect();
    let edited = gaps.iter().position(|gap| *gap == 2).unwrap_or(gaps.len());
    // Right at the edit the next even second may be one or two seconds away.
    assert!(gaps[..edited].iter().all(|gap| *gap == 1) && gaps[edited..].iter().all(|gap| *gap == 2), "{found:?}");
    assert!(found.is_sorted_by_key(|(_, election, _)| election.as_str() == "second"), "it moved once: {found:?}");
    cluster.assert_sound().await;
}
