//! What an operator does to a fleet that works: hand-overs one after another, and a restart of each replica in turn. The gap in
//! which nobody led is measured, and what was settled is counted twice.

use chrono::{DateTime, Utc};

use super::{READY, SETTLED, TAKEOVER, wait_heirs};
use crate::support::{
    Cluster, EVERY_SECOND, Entries, Job, LedgerJob, Setup, eventually, measured, repetitions, schedule,
};

/// Units of a batch: so few that one is nearly always under way.
const BATCH: u32 = 20;
/// Merchants with open entries, so units of a run.
const MERCHANTS: usize = 200;

/// Three replicas on etcd and PostgreSQL that settle entries every second, and the number of the leader.
async fn at_work() -> (Cluster, usize) {
    let job = LedgerJob::new("ledger").cron(EVERY_SECOND).batch(BATCH, 2).key("misfire", "\"run_all\"");
    let ticking = schedule(&[Job::probe("ticking", 1).cron(EVERY_SECOND).set("wait_ms", "5")]);
    let text = ticking.replace("[job.batch]", "misfire = \"run_all\"\n[job.batch]") + &job.text();
    let setup = Setup::new(3, &text).steady().key("database", "max_connections", "12");
    let cluster = setup.start().await;
    for replica in cluster.replicas() {
        replica.wait_ready(READY).await;
    }
    let leader = cluster.wait_leader(READY).await;
    (cluster, leader)
}

/// More to settle.
fn bring(cluster: &Cluster, round: usize) {
    cluster.import(&Entries::with_ids(&format!("r{round}-")).bulk(MERCHANTS, 1), "psp").ok();
}

/// Every second from the first tick to the last has its run, once; every entry is settled, once; nothing was refused.
async fn assert_nothing_is_lost_or_doubled(cluster: &Cluster, rounds: usize) {
    let open = "select count(*) from bursar.entry where unit_id is null";
    eventually(SETTLED, "every entry is settled", async || (cluster.number(open).await == 0).then_some(())).await;
    let bound = cluster.number("select count(*) from bursar.entry where unit_id is not null").await;
    assert_eq!(usize::try_from(bound).ok(), Some(rounds * MERCHANTS), "each entry is bound, to one unit");
    let ticks = "select job, count(*), count(distinct tick), (extract(epoch from max(tick) - min(tick)) + 1)::bigint
                   from bursar.run where kind = 'tick' group by job order by job";
    let ticks: Vec<(String, i64, i64, i64)> = cluster.database().rows(ticks).await;
    for (job, runs, distinct, seconds) in &ticks {
        assert_eq!((runs, distinct), (seconds, seconds), "{job}: every tick has one run: {ticks:?}");
    }
    assert_eq!(cluster.number("select count(*) from bursar.fence_reject").await, 0, "nothing was refused by the fence");
    cluster.assert_sound().await;
}

/// When a term ended, and when the next one first worked.
type Change = (Option<DateTime<Utc>>, Option<DateTime<Utc>>);

/// From the end of each term to the first work of the next, in milliseconds, by the store's clock.
async fn gaps(cluster: &Cluster) -> Vec<i64> {
    let query = "select ended_at, lead(worked_at) over (order by term) from bursar.term_history order by term";
    let rows: Vec<Change> = cluster.database().rows(query).await;
    let (_, before) = rows.split_last().expect("somebody led");
    let mut gaps: Vec<i64> = before
        .iter()
        .map(|(ended, worked)| (worked.expect("the next worked") - ended.expect("it ended")).num_milliseconds())
        .collect();
    gaps.sort_unstable();
    gaps
}

#[tokio::test]
async fn hand_overs_under_load_are_short_and_nothing_is_refused_lost_or_done_twice() {
    let (cluster, mut leader) = at_work().await;
    let sampler = cluster.watch();
    let rounds = repetitions("hand-overs under load", 4, 50);
    for round in 0..rounds {
        bring(&cluster, round);
        wait_heirs(&cluster, 3).await;
        let settled = cluster.settled().await;
        cluster.wait_settled(settled + 1, SETTLED).await;
        let mut args = vec!["transfer", "--json", "--reason", "a drill", "--force"];
        let to = cluster.replica((leader + 1) % 3).id().to_owned();
        if round % 2 == 0 {
            args.extend(["--to", &to]);
        }
        let said = cluster.command(&args).ok().json();
        assert_eq!(said["from"], cluster.replica(leader).id(), "{said}");
        let next = cluster.wait_leader(TAKEOVER).await;
        assert_eq!(said["to"], cluster.replica(next).id(), "{said}");
        leader = next;
    }
    sampler.finish();
    assert_nothing_is_lost_or_doubled(&cluster, rounds).await;
    let changed = "select count(*) from bursar.term_history where end_reason = 'transfer'";
    assert_eq!(usize::try_from(cluster.number(changed).await).ok(), Some(rounds), "nobody had to be elected anew");
    let gaps = gaps(&cluster).await;
    assert_eq!(gaps.len(), rounds);
    measured(&format!(
        "hand-overs under load, {rounds} times, ms from the end to the next one's first work: p50 {}, max {}",
        gaps[gaps.len() / 2],
        gaps[gaps.len() - 1]
    ));
    let told = cluster.command(&["history", "--stories", "1"]).ok().stdout;
    for words in ["handed over, without an election", "after the end of term", "nothing: no write of it came too late"]
    {
        assert!(told.contains(words), "{words}:\n{told}");
    }
}

#[tokio::test]
async fn a_restart_of_each_replica_in_turn_changes_the_leader_once_per_leader_and_every_tick_has_one_run() {
    let (cluster, _) = at_work().await;
    bring(&cluster, 0);
    cluster.wait_settled(1, SETTLED).await;
    wait_heirs(&cluster, 3).await;
    let sampler = cluster.watch();
    let (mut leaders, first) = (0, cluster.term().await);
    for replica in 0..3 {
        let leads = cluster.wait_leader(TAKEOVER).await == replica;
        leaders += usize::from(leads);
        let terms = cluster.number("select count(*) from bursar.term_history").await;
        cluster.replica(replica).term();
        assert!(cluster.replica(replica).wait_end(TAKEOVER).success());
        cluster.replica(replica).start();
        cluster.replica(replica).wait_ready(READY).await;
        wait_heirs(&cluster, 3).await;
        bring(&cluster, replica + 1);
        let settled = cluster.settled().await;
        cluster.wait_settled(settled + 1, SETTLED).await;
        let more = cluster.number("select count(*) from bursar.term_history").await - terms;
        assert_eq!(more, i64::from(leads), "the restart of r{replica}, which led: {leads}");
    }
    sampler.finish();
    assert_nothing_is_lost_or_doubled(&cluster, 4).await;
    let gaps = gaps(&cluster).await;
    assert_eq!(gaps.len(), leaders);
    assert!(cluster.term().await > first);
    measured(&format!(
        "a rolling restart of three replicas under load: {leaders} changes of leader, {} ms without a leader in all",
        gaps.iter().sum::<i64>()
    ));
}
