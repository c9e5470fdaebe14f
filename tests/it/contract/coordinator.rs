//! The contract of the coordinator's port, for etcd of two versions, both databases and the memory of simulators: each
//! operation, and each condition not met.

mod conditions;
mod file;
mod race;
mod rows;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bursar::clock;
use bursar::domain::{ElectionName, ReplicaId, TenureId, Term};
use bursar::leadership::database::{
    PgCoordinator, PgCoordinatorSettings, SqliteCoordinator, SqliteCoordinatorSettings,
};
use bursar::leadership::etcd::{EtcdConfig, EtcdCoordinator};
use bursar::leadership::memory::MemoryCoordinator;
use bursar::leadership::{
    AcceptedOutcome, Campaign, CampaignOutcome, Coordinator, ElectionState, LeaderRecord, LeaseId, RegisterOutcome,
    RenewOutcome, ReplicaRecord, ResignOutcome, Revision, RevokeOutcome, Transfer, TransferOutcome, Vacancy, Win,
};

use crate::support::cluster::migrated_database;
use crate::support::etcd::{Etcd, fresh_prefix};
use crate::support::{Database, Postgres, scratch};

/// Long enough for a whole case.
const TTL: Duration = Duration::from_secs(30);
/// A lease to be seen lapsing: what etcd grants at least.
const SHORT_TTL: Duration = Duration::from_secs(2);
/// From the last renewal to the lapse at etcd: the TTL and half a second, and one TTL more where it has just elected.
const LAPSES_WITHIN: Duration = Duration::from_secs(8);
/// A watch fires within milliseconds; the rest is for a busy machine.
const FIRES_WITHIN: Duration = Duration::from_secs(5);

/// Makes further clients of one and the same coordinator.
type Clients = Arc<dyn Fn() -> Arc<dyn Coordinator> + Send + Sync>;

fn on_etcd(etcd: &Etcd) -> Clients {
    let (endpoints, prefix) = (etcd.endpoints(), fresh_prefix());
    Arc::new(move || {
        let config = EtcdConfig { endpoints: endpoints.clone(), prefix: prefix.clone(), tls: None, auth: None };
        Arc::new(EtcdCoordinator::new(config))
    })
}

fn on_memory() -> Clients {
    let memory = MemoryCoordinator::new(Arc::new(clock::boottime));
    Arc::new(move || Arc::new(memory.clone()))
}

fn on_postgres(database: &Database) -> Clients {
    let url = database.url();
    Arc::new(move || {
        Arc::new(PgCoordinator::new(PgCoordinatorSettings {
            url: url.clone().into(),
            ..PgCoordinatorSettings::default()
        }))
    })
}

fn on_sqlite(path: &Path) -> Clients {
    let settings = SqliteCoordinatorSettings { path: path.to_owned(), ttl: TTL };
    Arc::new(move || Arc::new(SqliteCoordinator::new(settings.clone())))
}

async fn migrated() -> Database {
    migrated_database(Postgres::shared()).await
}

fn lease_file() -> PathBuf {
    scratch::folder("lease").join("bursar.db.lease")
}

#[tokio::test]
async fn etcd_3_4_keeps_the_contract() {
    keeps_the_contract(&on_etcd(Etcd::shared())).await;
}

#[tokio::test]
async fn etcd_3_5_keeps_the_contract() {
    keeps_the_contract(&on_etcd(&Etcd::start_3_5(1))).await;
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    keeps_the_contract(&on_memory()).await;
}

#[tokio::test]
async fn postgres_keeps_the_contract() {
    keeps_the_contract(&on_postgres(&migrated().await)).await;
}

#[tokio::test]
async fn sqlite_keeps_the_contract() {
    keeps_the_contract(&on_sqlite(&lease_file())).await;
}

/// Cases that stand alone, so that one who broke the adapter for etcd knows within a second.
#[tokio::test]
async fn etcd_calls_a_lease_gone_as_soon_as_it_is_revoked() {
    a_renewal_says_the_ttl_and_a_revoked_lease_is_gone(&*on_etcd(Etcd::shared())()).await;
}

#[tokio::test]
async fn etcd_resigns_only_ones_own_win() {
    resigning_takes_only_ones_own_win(&*on_etcd(Etcd::shared())()).await;
}

#[tokio::test]
async fn etcd_issues_no_term_to_who_has_not_seen_the_last_one() {
    a_campaign_loses_where_the_term_key_has_changed(&*on_etcd(Etcd::shared())()).await;
}

async fn keeps_the_contract(clients: &Clients) {
    run(&*clients()).await;
    let clients = Arc::clone(clients);
    // Blocks, in threads of its own.
    tokio::task::spawn_blocking(move || race::one_of_two_wins_each_time_and_terms_rise(&clients))
        .await
        .expect("it ends");
}

/// The whole contract, each case in an election of its own.
async fn run(port: &dyn Coordinator) {
    an_election_begins_vacant_without_a_term(port).await;
    a_campaign_wins_a_vacant_place_once(port).await;
    a_campaign_loses_where_the_term_key_has_changed(port).await;
    a_campaign_on_a_lease_that_is_gone_puts_nothing(port).await;
    resigning_takes_only_ones_own_win(port).await;
    a_transfer_needs_ones_own_win_the_term_unchanged_and_the_successor_there(port).await;
    what_was_accepted_is_noted_by_the_leader_alone_and_outlives_it(port).await;
    a_watch_wakes_for_every_change_from_its_revision_on(port).await;
    replicas_are_listed_while_their_lease_stands(port).await;
    a_renewal_says_the_ttl_and_a_revoked_lease_is_gone(port).await;
    a_lease_that_is_not_renewed_lapses_with_its_keys(port).await;
    conditions::run(port).await;
    assert_eq!(port.members().await.reachable, port.members().await.total);
}

fn election(name: &str) -> ElectionName {
    ElectionName::new(name).expect("a valid name")
}

fn term(number: i64) -> Term {
    Term::new(number).expect("not negative")
}

fn record(election: &ElectionName, leader: &str, lease: LeaseId, number: i64) -> LeaderRecord {
    LeaderRecord {
        election: election.clone(),
        leader_id: ReplicaId::new(leader).expect("a valid id"),
        tenure_id: TenureId(clock::random_id()),
        lease_id: lease,
        term: term(number),
        host: "host".into(),
        address: "127.0.0.1:1".into(),
        version: "0".into(),
        schedule_fingerprint: "f".into(),
        won_at: None,
    }
}

async fn lease(port: &dyn Coordinator) -> LeaseId {
    port.grant(TTL).await.expect("granted").lease
}

async fn read(port: &dyn Coordinator, election: &ElectionName) -> ElectionState {
    port.read_election(election).await.expect("read")
}

async fn campaign(
    port: &dyn Coordinator,
    record: &LeaderRecord,
    vacancy: Vacancy,
    term_revision: Revision,
) -> CampaignOutcome {
    let campaign = Campaign { record: record.clone(), vacancy, term_revision };
    port.campaign(&campaign).await.expect("an answer")
}

/// A win, as the key shows it.
const fn of(revision: Revision, lease: LeaseId) -> Win {
    Win { revision, lease }
}

/// Wins a vacant election with the next term.
async fn win(port: &dyn Coordinator, election: &ElectionName, lease: LeaseId) -> (LeaderRecord, Revision) {
    let before = read(port, election).await;
    let record = record(election, "first", lease, before.term.get() + 1);
    match campaign(port, &record, Vacancy::Absent, before.term_revision).await {
        CampaignOutcome::Won { revision } => (record, revision),
        other => panic!("expected a win, found {other:?}"),
    }
}

async fn an_election_begins_vacant_without_a_term(port: &dyn Coordinator) {
    let state = read(port, &election("untouched")).await;
    assert_eq!((state.leader, state.term, state.term_revision), (None, Term::NONE, Revision::ABSENT));
}

async fn a_campaign_wins_a_vacant_place_once(port: &dyn Coordinator) {
    let election = election("wins");
    let lease = lease(port).await;
    let (won, revision) = win(port, &election, lease).await;
    let state = read(port, &election).await;
    assert_eq!((state.term, state.term_revision), (term(1), revision));
    assert!(state.read_at >= revision);
    let leader = state.leader.expect("a leader");
    assert_eq!((leader.record.as_ref(), leader.revision, leader.lease), (Some(&won), revision, lease));

    // The place is taken: the term key is as it was read, the leader key is not.
    let late = record(&election, "second", lease, 2);
    match campaign(port, &late, Vacancy::Absent, revision).await {
        CampaignOutcome::Lost(found) => assert_eq!(found.leader.expect("a leader").record, Some(won)),
        other => panic!("expected a loss, found {other:?}"),
    }
    // A key on a lease is not taken for one without, whatever revision was seen.
    let outcome = campaign(port, &late, Vacancy::Leaseless(revision), revision).await;
    assert!(matches!(outcome, CampaignOutcome::Lost(_)), "{outcome:?}");
}

async fn a_campaign_loses_where_the_term_key_has_changed(port: &dyn Coordinator) {
    let election = election("term-changed");
    let lease = lease(port).await;
    let before = read(port, &election).await;
    let (_, revision) = win(port, &election, lease).await;
    assert_eq!(port.resign(&election, of(revision, lease)).await.expect("an answer"), ResignOutcome::Resigned);
    let late = record(&election, "second", lease, 1);
    match campaign(port, &late, Vacancy::Absent, before.term_revision).await {
        CampaignOutcome::Lost(found) => assert_eq!((found.leader, found.term), (None, term(1))),
        other => panic!("expected a loss, found {other:?}"),
    }
    // With what was found it wins.
    let outcome = campaign(port, &record(&election, "second", lease, 9), Vacancy::Absent, revision).await;
    assert!(matches!(outcome, CampaignOutcome::Won { .. }), "{outcome:?}");
    assert_eq!(read(port, &election).await.term, term(9));
}

async fn a_campaign_on_a_lease_that_is_gone_puts_nothing(port: &dyn Coordinator) {
    let election = election("lease-gone");
    let lease = lease(port).await;
    assert_eq!(port.revoke(lease).await.expect("an answer"), RevokeOutcome::Revoked);
    let record = record(&election, "first", lease, 1);
    let outcome = campaign(port, &record, Vacancy::Absent, Revision::ABSENT).await;
    assert_eq!(outcome, CampaignOutcome::LeaseGone);
    let state = read(port, &election).await;
    assert_eq!((state.leader, state.term), (None, Term::NONE), "the term is not put either");
}

async fn resigning_takes_only_ones_own_win(port: &dyn Coordinator) {
    let election = election("resigns");
    let lease = lease(port).await;
    let (first, first_revision) = win(port, &election, lease).await;
    let other = Revision(first_revision.0 + 1000);
    match port.resign(&election, of(other, lease)).await.expect("an answer") {
        ResignOutcome::NotMine { found } => assert_eq!(found.expect("a leader").record, Some(first)),
        ResignOutcome::Resigned => panic!("another's key was deleted"),
    }
    assert_eq!(port.resign(&election, of(first_revision, lease)).await.expect("an answer"), ResignOutcome::Resigned);
    let again = port.resign(&election, of(first_revision, lease)).await.expect("an answer");
    assert_eq!(again, ResignOutcome::NotMine { found: None });
    let (second, _) = win(port, &election, lease).await;
    let late = port.resign(&election, of(first_revision, lease)).await.expect("an answer");
    assert!(matches!(late, ResignOutcome::NotMine { found: Some(_) }), "{late:?}");
    assert_eq!(read(port, &election).await.leader.expect("untouched").record, Some(second));
}

async fn a_transfer_needs_ones_own_win_the_term_unchanged_and_the_successor_there(port: &dyn Coordinator) {
    let election = election("transfers");
    let (mine, theirs) = (lease(port).await, lease(port).await);
    let (_, won) = win(port, &election, mine).await;
    let successor = record(&election, "successor", theirs, 2);
    let attempt = |won, term_revision| Transfer { won: of(won, mine), term_revision, record: successor.clone() };
    let refused = |outcome: TransferOutcome| match outcome {
        TransferOutcome::NotTransferred { found } => assert_eq!(found.leader.expect("a leader").revision, won),
        TransferOutcome::Transferred { .. } => panic!("transferred against a condition"),
    };
    refused(port.transfer(&attempt(won, won)).await.expect("an answer"));
    register(port, "successor", mine).await;
    refused(port.transfer(&attempt(won, won)).await.expect("an answer"));
    register(port, "successor", theirs).await;
    refused(port.transfer(&attempt(Revision(won.0 + 1000), won)).await.expect("an answer"));
    refused(port.transfer(&attempt(won, Revision(won.0 + 1000))).await.expect("an answer"));
    match port.transfer(&attempt(won, won)).await.expect("an answer") {
        TransferOutcome::Transferred { revision } => {
            let leader = read(port, &election).await.leader.expect("a leader");
            assert_eq!((leader.record, leader.revision, leader.lease), (Some(successor), revision, theirs));
        }
        TransferOutcome::NotTransferred { found } => panic!("not transferred: {found:?}"),
    }
}

async fn what_was_accepted_is_noted_by_the_leader_alone_and_outlives_it(port: &dyn Coordinator) {
    let election = election("accepted");
    assert_eq!(port.read_accepted(&election).await.expect("an answer"), None);
    let none = port.put_accepted(&election, of(Revision(1), LeaseId(1)), "no").await.expect("an answer");
    assert_eq!(none, AcceptedOutcome::NotLeader { found: None });
    let lease = lease(port).await;
    let (_, won) = win(port, &election, lease).await;
    let other = port.put_accepted(&election, of(Revision(won.0 + 1000), lease), "no").await.expect("an answer");
    assert!(matches!(other, AcceptedOutcome::NotLeader { found: Some(_) }), "{other:?}");
    assert_eq!(port.read_accepted(&election).await.expect("an answer"), None);
    let noted = port.put_accepted(&election, of(won, lease), "{\"term\":1}").await.expect("an answer");
    assert_eq!(noted, AcceptedOutcome::Noted);
    port.revoke(lease).await.expect("an answer");
    assert_eq!(port.read_accepted(&election).await.expect("an answer").as_deref(), Some("{\"term\":1}"));
}

async fn a_watch_wakes_for_every_change_from_its_revision_on(port: &dyn Coordinator) {
    let election = election("watched");
    let from = read(port, &election).await.read_at.next();
    let lease = lease(port).await;
    let (_, won) = win(port, &election, lease).await;
    // Opened late: what happened since its revision still wakes.
    let mut watch = port.watch(&election, from).await.expect("a watch");
    let fires = async |watch: &mut Box<dyn bursar::leadership::ElectionWatch>, why: &str| {
        tokio::time::timeout(FIRES_WITHIN, watch.woken()).await.expect(why).expect(why);
    };
    fires(&mut watch, "the win").await;
    port.resign(&election, of(won, lease)).await.expect("an answer");
    fires(&mut watch, "the resignation").await;
    let (_, _) = win(port, &election, lease).await;
    fires(&mut watch, "the second win").await;
    port.revoke(lease).await.expect("an answer");
    fires(&mut watch, "the revocation").await;
    // Quiet for longer than it is asked whether it lives: it lives, and does not wake.
    let quiet = tokio::time::timeout(Duration::from_secs(5), watch.woken()).await;
    assert!(quiet.is_err(), "woken without a change: {quiet:?}");
}

async fn register(port: &dyn Coordinator, replica: &str, lease: LeaseId) -> RegisterOutcome {
    let record = ReplicaRecord {
        replica_id: ReplicaId::new(replica).expect("a valid id"),
        lease_id: lease,
        host: "host".into(),
        address: String::new(),
        version: "0".into(),
        schedule_fingerprint: "f".into(),
        eligible: vec![election("settlement")],
    };
    port.put_replica(&record).await.expect("an answer")
}

async fn listed(port: &dyn Coordinator, replica: &str) -> Option<ReplicaRecord> {
    let all = port.list_replicas().await.expect("an answer");
    all.into_iter().find(|record| record.replica_id.as_str() == replica)
}

async fn replicas_are_listed_while_their_lease_stands(port: &dyn Coordinator) {
    let lease = lease(port).await;
    assert_eq!(listed(port, "listed-1").await, None);
    assert_eq!(register(port, "listed-1", lease).await, RegisterOutcome::Registered);
    assert_eq!(listed(port, "listed-1").await.expect("listed").lease_id, lease);
    port.revoke(lease).await.expect("an answer");
    assert_eq!(listed(port, "listed-1").await, None);
    assert_eq!(register(port, "listed-1", lease).await, RegisterOutcome::LeaseGone);
}

async fn a_renewal_says_the_ttl_and_a_revoked_lease_is_gone(port: &dyn Coordinator) {
    let grant = port.grant(TTL).await.expect("granted");
    assert_eq!(grant.ttl, TTL);
    for _ in 0..3 {
        assert_eq!(port.renew(grant.lease).await.expect("an answer"), RenewOutcome::Renewed { ttl: TTL });
    }
    assert_eq!(port.revoke(grant.lease).await.expect("an answer"), RevokeOutcome::Revoked);
    for _ in 0..2 {
        assert_eq!(port.renew(grant.lease).await.expect("an answer"), RenewOutcome::Gone);
    }
    assert_eq!(port.revoke(grant.lease).await.expect("an answer"), RevokeOutcome::Gone);
    let another = port.grant(TTL).await.expect("granted");
    assert_ne!(another.lease, grant.lease);
    assert_eq!(port.renew(another.lease).await.expect("an answer"), RenewOutcome::Renewed { ttl: TTL });
    port.revoke(another.lease).await.expect("an answer");
}

async fn a_lease_that_is_not_renewed_lapses_with_its_keys(port: &dyn Coordinator) {
    let election = election("lapses");
    let grant = port.grant(SHORT_TTL).await.expect("granted");
    let (_, _) = win(port, &election, grant.lease).await;
    let from = read(port, &election).await.read_at.next();
    let mut watch = port.watch(&election, from).await.expect("a watch");
    tokio::time::timeout(LAPSES_WITHIN, watch.woken()).await.expect("it lapses").expect("the watch lives");
    let state = read(port, &election).await;
    assert_eq!((state.leader, state.term), (None, term(1)), "the term stays");
    assert_eq!(port.renew(grant.lease).await.expect("an answer"), RenewOutcome::Gone);
}
