//! Several elections beside each other: one process leads more than one, loses one and keeps the others; a replica that stands
//! for some leads no other, also where nobody else is there.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::support::{Cluster, EVERY_SECOND, Etcd, Setup, eventually};

/// A start on a busy machine.
const READY: Duration = Duration::from_secs(30);
/// A lease that lapses, and what follows, on a busy machine.
const TAKEOVER: Duration = Duration::from_secs(30);
/// Some ticks of a second, on a busy machine.
const SOON: Duration = Duration::from_mins(1);

const JOBS: [&str; 3] = ["first", "second", "third"];

/// A job for each election, which ticks every second and has the election's name.
fn schedule() -> String {
    let job = |name| {
        format!(
            "[[job]]\nname = \"{name}\"\nelection = \"{name}\"\ncron = \"{EVERY_SECOND}\"\nhandler = \"probe\"\n\
             [job.probe]\nunits = 1\n"
        )
    };
    JOBS.map(job).concat()
}

async fn wait_leads(cluster: &Cluster, replica: usize, election: &str) {
    eventually(TAKEOVER, &format!("r{replica} leads {election}"), async || {
        cluster.replica(replica).leads(election).await.then_some(())
    })
    .await;
}

async fn term(cluster: &Cluster, election: &str) -> i64 {
    cluster.number(&format!("select coalesce(max(term), 0) from bursar.fence where election = '{election}'")).await
}

/// Waits until so many more runs of an election have ended.
async fn wait_more(cluster: &Cluster, election: &str) {
    let query = format!("select count(*) from bursar.run where election = '{election}' and state = 'complete'");
    let before = cluster.number(&query).await;
    eventually(SOON, &format!("{election} goes on"), async || {
        (cluster.number(&query).await >= before + 2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_process_that_leads_three_loses_one_and_keeps_the_others_and_who_stands_for_one_leads_no_other() {
    let cluster = Setup::new(2, &schedule()).ttl(5).prepare().await;
    let [all, some] = [cluster.replica(0), cluster.replica(1)];
    some.set("replica", "elections", "[\"second\"]");
    all.start();
    for election in JOBS {
        wait_leads(&cluster, 0, election).await;
    }
    some.start();
    some.wait_ready(READY).await;
    let sampler = cluster.watch();
    let terms = [term(&cluster, "first").await, term(&cluster, "second").await, term(&cluster, "third").await];

    // It loses one for good: whoever takes it is told to end nothing else.
    let key = format!("{}/elections/second/leader", cluster.prefix());
    let (etcd, mut tries) = (Etcd::shared(), 0);
    while !some.leads("second").await {
        assert!(tries < 40, "the other one never wins");
        tries += 1;
        let before = term(&cluster, "second").await;
        etcd.delete(&key).await;
        eventually(TAKEOVER, "another term of second", async || {
            (term(&cluster, "second").await > before).then_some(())
        })
        .await;
        eventually(TAKEOVER, "somebody leads second", async || {
            (all.leads("second").await || some.leads("second").await).then_some(())
        })
        .await;
    }
    assert!(term(&cluster, "second").await > terms[1]);
    for (election, before) in [("first", terms[0]), ("third", terms[2])] {
        assert!(all.leads(election).await, "it keeps {election}");
        assert_eq!(term(&cluster, election).await, before, "under the same term");
    }
    for election in JOBS {
        wait_more(&cluster, election).await;
    }
    let unknown = some.metric("bursar_leader", &[("election", "first")]).await;
    assert_eq!(unknown, None, "it has no series of what it does not stand for");
    sampler.end_unchecked();

    // The one that stands for all is gone: the other one goes on with its own and takes no other.
    all.kill();
    eventually(TAKEOVER, "the leader's leases have lapsed", async || {
        etcd.list(&format!("{}/elections/first/leader", cluster.prefix())).await.is_empty().then_some(())
    })
    .await;
    wait_more(&cluster, "second").await;
    assert_eq!(term(&cluster, "first").await, terms[0], "nobody took it");
    all.start();
    wait_leads(&cluster, 0, "first").await;
    wait_more(&cluster, "third").await;
    for election in JOBS {
        let query = format!(
            "select (extract(epoch from max(tick) - min(tick)) + 1)::bigint - count(distinct tick)
               from bursar.run where election = '{election}'"
        );
        assert_eq!(cluster.number(&query).await, 0, "every tick of {election} is on record");
    }
    cluster.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halt_of_all_waits_for_one_election_and_holds_the_others_at_once() {
    let cluster = Setup::new(1, &schedule()).prepare().await;
    let mut busy = cluster.database().connect().await;
    let hold = "begin; select pg_advisory_xact_lock_shared(bursar.gate('first'))";
    sqlx::raw_sql(hold).execute(&mut busy).await.expect("work of one election is under way");
    let mut ends = JoinSet::new();
    ends.spawn(async move { sqlx::raw_sql("select pg_sleep(4); commit").execute(&mut busy).await.map(|_| ()) });
    let halted = cluster.command(&["halt", "--reason", "wrong fees", "--json"]).ok().json();
    ends.join_next().await.expect("one").expect("joined").expect("nothing was ended for it");
    let halted: Vec<_> = halted.as_array().into_iter().flatten().map(|report| report["election"].as_str()).collect();
    assert_eq!(halted, JOBS.map(Some), "also those that only the schedule knows");
    let earlier = "select count(*) from bursar.fence f join bursar.fence b on b.election = 'first'
                    where f.halted_at < b.halted_at - interval '2 seconds'";
    assert_eq!(cluster.number(earlier).await, 2, "they did not wait for it");
    let resumed = cluster.command(&["resume", "--reason", "fees are right", "--json"]).ok().json();
    assert_eq!(resumed.as_array().map(Vec::len), Some(3));
}
