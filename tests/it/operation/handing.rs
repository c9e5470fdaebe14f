//! Planned hand-overs by an operator, and replicas that are kept from leading.

use serde_json::Value;

use super::{READY, TAKEOVER, wait_heirs};
use crate::support::{Cluster, Job, Pair, Setup, eventually, repetitions, schedule};

fn setup() -> Setup<'static> {
    Setup::new(3, &schedule(&[Job::probe("work", 20)])).steady()
}

async fn started(pair: Pair) -> (Cluster, usize) {
    let cluster = setup().on(pair).start().await;
    let leader = cluster.wait_leader(READY).await;
    for replica in cluster.replicas() {
        replica.wait_ready(READY).await;
    }
    wait_heirs(&cluster, 3).await;
    (cluster, leader)
}

/// Hands over, to a replica or to any, and answers what was said.
fn hand_over(cluster: &Cluster, to: Option<&str>) -> Value {
    let mut args = vec!["transfer", "--json", "--reason", "a drill", "--force"];
    args.extend(to.into_iter().flat_map(|to| ["--to", to]));
    let done = cluster.command(&args);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    serde_json::from_str(&done.stdout).expect("JSON")
}

#[expect(clippy::print_stdout, reason = "the measured gaps are what a long run is for")]
async fn hands_over_again_and_again(pair: Pair) {
    let (cluster, mut leader) = started(pair).await;
    let sampler = cluster.watch();
    let mut gaps = Vec::new();
    for round in 0..repetitions("hand-overs", 4, 50) {
        let to = (leader + 1) % 3;
        // Named and not by turns.
        let named = (round % 2 == 0).then(|| cluster.replica(to).id().to_owned());
        let said = hand_over(&cluster, named.as_deref());
        assert_eq!(said["from"], cluster.replica(leader).id(), "{said}");
        if let Some(named) = named {
            assert_eq!(said["to"], named.as_str(), "{said}");
        }
        gaps.push(said["gap_ms"].as_i64().expect("measured"));
        wait_heirs(&cluster, 3).await;
        let next = cluster.wait_leader(TAKEOVER).await;
        assert_eq!(said["to"], cluster.replica(next).id());
        leader = next;
    }
    gaps.sort_unstable();
    println!("hand-overs {}: median {} ms, max {} ms", gaps.len(), gaps[gaps.len() / 2], gaps[gaps.len() - 1]);
    let history: Value = serde_json::from_str(&cluster.command(&["history", "--json"]).stdout).expect("JSON");
    let ends: Vec<_> = history["terms"].as_array().expect("terms").iter().skip(1).map(|t| &t["end_reason"]).collect();
    assert!(ends.iter().all(|reason| *reason == "transfer"), "nobody had to be elected anew: {history}");
    assert!(history["rejects"].as_array().is_some_and(Vec::is_empty), "{history}");
    cluster.assert_audited();
    sampler.finish();
}

#[tokio::test]
async fn an_election_is_handed_over_without_an_election() {
    hands_over_again_and_again(Pair::EtcdPostgres).await;
}

#[tokio::test]
async fn an_election_is_handed_over_on_one_file_too() {
    hands_over_again_and_again(Pair::Embedded).await;
}

#[tokio::test]
async fn what_cannot_be_handed_over_is_refused_with_who_could() {
    let (cluster, leader) = started(Pair::EtcdPostgres).await;
    let refused = |args: &[&str]| {
        let done = cluster.command(&[&["transfer", "--reason", "a drill", "--force"], args].concat());
        assert_eq!(done.code(), Some(1), "{}{}", done.stdout, done.stderr);
        done.stderr
    };
    let own = cluster.replica(leader).id();
    assert!(refused(&["--to", own]).contains("already"));
    let other = cluster.replica((leader + 1) % 3).id();
    assert!(refused(&["--to", "nobody-here"]).contains(other), "those that may are named");
    assert!(refused(&["--election", "other"]).contains("settlement"));
    let terms = cluster.number("select count(*) from bursar.term_history").await;
    assert_eq!(terms, 1, "nothing was changed");
}

#[tokio::test]
async fn a_cordoned_leader_makes_room_stands_no_more_and_may_lead_again_when_it_is_let() {
    let (cluster, leader) = started(Pair::EtcdPostgres).await;
    let id = cluster.replica(leader).id().to_owned();
    let act = |what: &str, replica: &str| {
        let done = cluster.command(&[what, replica, "--reason", "its host is drained"]);
        assert_eq!(done.code(), Some(0), "{}", done.stderr);
        done.stdout
    };
    act("cordon", &id);
    let next = cluster.wait_other_leader(TAKEOVER, &[leader]).await;
    let third = 3 - leader - next;
    act("cordon", cluster.replica(third).id());
    eventually(READY, "the third has heard of it", async || {
        let status = cluster.replica(third).status().await?;
        (status["session"]["cordoned"] == true).then_some(())
    })
    .await;
    let shown = cluster.command(&["status"]).ok().stdout;
    assert_eq!(shown.matches("nothing: cordoned").count(), 2, "{shown}");
    let told = cluster.command(&["history", "--term", "1"]).ok().stdout;
    assert!(told.contains(&format!("cordon {id}")) && told.contains("its host is drained"), "{told}");
    // Nobody but the leader may lead now: killed, it is followed by nobody until one is let.
    cluster.replica(next).kill();
    act("uncordon", &id);
    let again = cluster.wait_other_leader(TAKEOVER, &[next, third]).await;
    assert_eq!(again, leader);
    assert!(act("uncordon", &id).contains("nothing changed"));
    let ends = cluster.number("select count(*) from bursar.term_history where end_reason = 'cordoned'").await;
    assert_eq!(ends, 1, "it resigned as planned");
    cluster.assert_audited();
}

#[tokio::test]
async fn a_hand_over_close_to_a_tick_is_refused_unless_it_is_forced() {
    let text = schedule(&[Job::probe("often", 1).cron("*/5 * * * * *")]);
    let cluster = Setup::new(2, &text).steady().start().await;
    cluster.wait_leader(READY).await;
    wait_heirs(&cluster, 2).await;
    let done = cluster.command(&["transfer", "--reason", "a drill"]);
    assert_eq!(done.code(), Some(1), "{}", done.stdout);
    assert!(done.stderr.contains("often") && done.stderr.contains("--force"), "{}", done.stderr);
    hand_over(&cluster, None);
}

#[tokio::test]
async fn a_hand_over_of_a_halted_election_is_done_when_another_leads() {
    let (cluster, leader) = started(Pair::EtcdPostgres).await;
    cluster.command(&["halt", "--reason", "wrong fees"]).ok();
    let said = hand_over(&cluster, None);
    assert_eq!((&said["from"], &said["gap_ms"]), (&cluster.replica(leader).id().into(), &Value::Null), "{said}");
    let next = cluster.wait_leader(TAKEOVER).await;
    assert_eq!(said["to"], cluster.replica(next).id());
    cluster.command(&["resume", "--reason", "fees are right"]).ok();
    cluster.assert_audited();
}
