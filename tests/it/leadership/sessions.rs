//! Sessions and tenures when something goes wrong between a replica and etcd.

use std::time::Duration;

use bursar::leadership::etcd::EtcdConfig;
use bursar::leadership::{ExitReason, Report, SessionState};

use super::app::{App, Fences, Manners, PATIENCE};
use crate::support::etcd::{Etcd, fresh_prefix};
use crate::support::ports::free_port;
use crate::support::proxy::Proxy;
use crate::support::wait::{eventually, holds_for};

const TTL: Duration = Duration::from_secs(5);

fn config(endpoints: Vec<String>, prefix: &str) -> EtcdConfig {
    EtcdConfig { endpoints, prefix: prefix.to_owned(), tls: None, auth: None }
}

fn app(id: &str, endpoints: Vec<String>, prefix: &str, fences: &Fences) -> App {
    App::start(id, config(endpoints, prefix), TTL, fences, Manners::default())
}

#[tokio::test]
async fn two_replicas_agree_on_one_leader_and_the_record_says_who() {
    let (etcd, prefix, fences) = (Etcd::shared(), fresh_prefix(), Fences::default());
    let apps = [app("a", etcd.endpoints(), &prefix, &fences), app("b", etcd.endpoints(), &prefix, &fences)];
    let leading = |apps: &[App; 2]| apps.iter().filter(|app| app.leads_now()).count();
    eventually(PATIENCE, "one leads", async || (leading(&apps) == 1).then_some(())).await;
    holds_for(Duration::from_secs(2), "one leader", async || {
        if leading(&apps) == 1 { Ok(()) } else { Err(format!("{} lead", leading(&apps))) }
    })
    .await;
    let leader = apps.iter().find(|app| app.leads_now()).expect("one leads").claims().pop().expect("a claim");
    for app in &apps {
        let seen = eventually(PATIENCE, "the record is seen", async || app.view().leader).await;
        assert_eq!((seen.term, seen.tenure_id), (leader.term, leader.tenure_id));
    }
    let stored = etcd.get(&format!("{prefix}/elections/settlement/term")).await;
    assert_eq!(stored, Some(leader.term.to_string()));
    let replicas = etcd.list(&format!("{prefix}/replicas/")).await;
    assert_eq!(replicas.len(), 2);
    assert!(replicas.iter().all(|(_, _, lease)| *lease != 0), "on their leases: {replicas:?}");
}

#[tokio::test]
async fn a_lease_revoked_behind_its_owners_back_demotes_within_a_renewal_interval_and_it_stands_again() {
    let (etcd, prefix, fences) = (Etcd::shared(), fresh_prefix(), Fences::default());
    let app = app("a", etcd.endpoints(), &prefix, &fences);
    let first = app.until_it_leads().await;
    let lease = app.handle.view().borrow().lease.expect("a lease");
    etcd.revoke(lease.0).await;
    eventually(Duration::from_secs(3), "demoted", async || app.ended().contains(&first).then_some(())).await;
    let second = eventually(PATIENCE, "it leads again", async || {
        app.claims().into_iter().find(|claim| claim.term > first.term && app.leads_now())
    })
    .await;
    assert_ne!(second.tenure_id, first.tenure_id);
    assert_ne!(app.handle.view().borrow().lease, Some(lease));
}

#[tokio::test]
async fn a_leader_key_deleted_by_hand_ends_the_tenure_and_not_the_session() {
    let (etcd, prefix, fences) = (Etcd::shared(), fresh_prefix(), Fences::default());
    let app = app("a", etcd.endpoints(), &prefix, &fences);
    let first = app.until_it_leads().await;
    let lease = app.handle.view().borrow().lease;
    assert!(etcd.delete(&format!("{prefix}/elections/settlement/leader")).await);
    eventually(PATIENCE, "a second tenure", async || (app.claims().len() == 2 && app.leads_now()).then_some(())).await;
    assert_eq!(app.ended(), [first]);
    assert_eq!(app.handle.view().borrow().lease, lease);
    // A key without a lease in its place holds nobody up either.
    etcd.put(&format!("{prefix}/elections/settlement/leader"), "by hand").await;
    eventually(PATIENCE, "a third tenure", async || (app.claims().len() == 3 && app.leads_now()).then_some(())).await;
}

#[tokio::test]
async fn a_dead_endpoint_listed_first_costs_a_start_no_more_than_seconds() {
    let (etcd, prefix, fences) = (Etcd::shared(), fresh_prefix(), Fences::default());
    let mut endpoints = vec![format!("http://127.0.0.1:{}", free_port())];
    endpoints.extend(etcd.endpoints());
    let app = app("a", endpoints, &prefix, &fences);
    eventually(Duration::from_secs(4), "it leads", async || app.leads_now().then_some(())).await;
    let members = eventually(PATIENCE, "members were asked", async || {
        let members = app.handle.view().borrow().members;
        (members.total > 0).then_some(members)
    })
    .await;
    assert_eq!((members.reachable, members.total), (1, 2));
}

#[tokio::test]
async fn a_coordinator_that_is_away_at_the_start_is_waited_for_and_a_drain_is_obeyed_within_a_second() {
    let fences = Fences::default();
    let app = app("a", vec![format!("http://127.0.0.1:{}", free_port())], &fresh_prefix(), &fences);
    eventually(PATIENCE, "it says so", async || {
        (app.handle.view().borrow().coordinator_up == Some(false)).then_some(())
    })
    .await;
    app.handle.report(Report::Drain);
    tokio::time::timeout(Duration::from_secs(1), app.handle.join()).await.expect("obeyed within a second");
}

#[tokio::test]
async fn a_leader_that_is_cut_off_is_demoted_before_another_can_lead_and_comes_back_in_good_order() {
    let (etcd, prefix, fences) = (Etcd::shared(), fresh_prefix(), Fences::default());
    let proxy = Proxy::to(etcd.ports()[0]);
    let cut_off = app("a", vec![proxy.http()], &prefix, &fences);
    let first = cut_off.until_it_leads().await;
    let other = app("b", etcd.endpoints(), &prefix, &fences);
    proxy.cut();
    let both = || (cut_off.leads_now(), other.leads_now());
    eventually(PATIENCE, "the other leads", async || {
        assert_ne!(both(), (true, true), "two lead");
        other.leads_now().then_some(())
    })
    .await;
    assert!(cut_off.ended().contains(&first), "ended before the other began");
    assert_eq!(cut_off.exits(), []);
    proxy.heal();
    eventually(PATIENCE, "a live session again", async || {
        assert_ne!(both(), (true, true), "two lead");
        (cut_off.handle.view().borrow().session == SessionState::Live).then_some(())
    })
    .await;
    assert!(!cut_off.leads_now() && other.leads_now());
    let second = other.claims().pop().expect("a claim");
    assert!(second.term > first.term);
}

#[tokio::test]
async fn a_frozen_member_in_use_is_left_for_another_before_the_lease_lapses() {
    let (etcd, prefix, fences) = (Etcd::start(3), fresh_prefix(), Fences::default());
    // A follower: losing the raft leader takes an election on top, which has a test of its own at a longer TTL.
    let follower = (etcd.raft_leader().await + 1) % 3;
    let mut endpoints = etcd.endpoints();
    endpoints.swap(0, follower);
    let app = app("a", endpoints, &prefix, &fences);
    let first = app.until_it_leads().await;
    // It stays on the first endpoint while that works.
    etcd.pause(follower);
    // Longer than the TTL: it could not go on leading on the frozen member.
    holds_for(Duration::from_secs(8), "it goes on leading", async || {
        if app.leads_now() { Ok(()) } else { Err(format!("{:?}", app.view())) }
    })
    .await;
    assert_eq!(app.handle.view().borrow().session, SessionState::Live);
    assert_eq!(app.claims(), [first]);
    etcd.resume(follower);
}

#[tokio::test]
async fn a_tenure_that_hangs_ends_the_process_before_its_lease_can_be_given_to_another() {
    let (etcd, prefix, fences) = (Etcd::shared(), fresh_prefix(), Fences::default());
    let manners = Manners { hangs: true, ..Manners::default() };
    let app = App::start("a", config(etcd.endpoints(), &prefix), TTL, &fences, manners);
    app.until_it_leads().await;
    let lease = app.handle.view().borrow().lease.expect("a lease");
    etcd.revoke(lease.0).await;
    let exits = eventually(PATIENCE, "it ends itself", async || app.exits().first().copied()).await;
    assert_eq!(exits, ExitReason::TeardownOverrun);
}

#[tokio::test]
async fn workers_that_are_stuck_end_the_process() {
    let (etcd, prefix, fences) = (Etcd::shared(), fresh_prefix(), Fences::default());
    let manners = Manners { is_stuck: true, ..Manners::default() };
    let app = App::start("a", config(etcd.endpoints(), &prefix), Duration::from_secs(2), &fences, manners);
    let exits = eventually(PATIENCE, "it ends itself", async || app.exits().first().copied()).await;
    assert_eq!(exits, ExitReason::WorkersStuck);
}

#[tokio::test]
async fn a_frozen_raft_leader_costs_no_leadership_at_a_ttl_of_ten_seconds() {
    let (etcd, prefix, fences) = (Etcd::start(3), fresh_prefix(), Fences::default());
    let ttl = Duration::from_secs(10);
    let app = App::start("a", config(etcd.endpoints(), &prefix), ttl, &fences, Manners::default());
    let first = app.until_it_leads().await;
    let raft_leader = etcd.raft_leader().await;
    etcd.pause(raft_leader);
    holds_for(
        ttl,
        "it goes on leading",
        async || if app.leads_now() { Ok(()) } else { Err(format!("{:?}", app.view())) },
    )
    .await;
    assert_eq!(app.claims(), [first]);
    eventually(PATIENCE, "live", async || (app.handle.view().borrow().session == SessionState::Live).then_some(()))
        .await;
    etcd.resume(raft_leader);
}
