//! What is peculiar to leases as rows of PostgreSQL: the clock that counts, and one that is stepped.

use super::*;

/// Longer than what is left of a lease in these tests, shorter than a wait for a lock may be.
const HELD: Duration = Duration::from_millis(300);

async fn expire_in(database: &Database, lease: LeaseId, interval: &str) {
    let change = format!(
        "update bursar.coordinator_lease set expires_at = clock_timestamp() + interval '{interval}' where id = {}",
        lease.0
    );
    assert_eq!(database.execute(&change).await, 1);
}

/// How far beyond its time to live a lease would live, in seconds; below zero where it would not.
async fn beyond(database: &Database, lease: LeaseId) -> f64 {
    let query = format!(
        "select extract(epoch from expires_at - clock_timestamp() - ttl)::float8 from bursar.coordinator_lease where id = {}",
        lease.0
    );
    database.value(&query).await
}

#[tokio::test]
async fn a_lease_expires_by_the_clock_read_after_the_lock_was_had() {
    let database = migrated().await;
    let port = on_postgres(&database)();
    let lease = lease(&*port).await;
    let mut holder = database.connect().await;
    let mut held = sqlx::Connection::begin(&mut holder).await.expect("a transaction");
    let nearly = "update bursar.coordinator_lease set expires_at = clock_timestamp() + interval '100 ms' where id = $1";
    sqlx::query(nearly).bind(lease.0).execute(&mut *held).await.expect("the lease's row");
    // The renewal is sent while the lease lives, and has its lock when it does not.
    let renewal = port.renew(lease);
    let release = async {
        tokio::time::sleep(HELD).await;
        held.commit().await.expect("committed");
    };
    let (renewed, ()) = tokio::join!(renewal, release);
    assert_eq!(renewed.expect("an answer"), RenewOutcome::Gone);
}

#[tokio::test]
async fn a_campaign_that_waits_for_the_lock_judges_the_leaders_lease_when_it_has_it() {
    let database = migrated().await;
    let port = on_postgres(&database)();
    let election = election("waits");
    let (first, second) = (lease(&*port).await, lease(&*port).await);
    let (_, won) = win(&*port, &election, first).await;
    let mut holder = database.connect().await;
    let mut held = sqlx::Connection::begin(&mut holder).await.expect("a transaction");
    // A renewal that is under way: not seen by others yet, who see the lease lapsed, and over before they decide.
    expire_in(&database, first, "-1 ms").await;
    let renewal = "update bursar.coordinator_lease set expires_at = clock_timestamp() + ttl where id = $1";
    sqlx::query(renewal).bind(first.0).execute(&mut *held).await.expect("the lease's row");
    let late = record(&election, "second", second, 2);
    let standing = campaign(&*port, &late, Vacancy::Absent, won);
    let release = async {
        tokio::time::sleep(HELD).await;
        held.commit().await.expect("committed");
    };
    let (outcome, ()) = tokio::join!(standing, release);
    assert!(matches!(outcome, CampaignOutcome::Lost(_)), "won over a lease that was renewed: {outcome:?}");
}

#[tokio::test]
async fn a_lease_of_a_clock_that_was_stepped_back_is_capped_by_whoever_sees_it() {
    let database = migrated().await;
    let port = on_postgres(&database)();
    let election = election("stepped");
    let (leader, other) = (lease(&*port).await, lease(&*port).await);
    let (_, won) = win(&*port, &election, leader).await;
    let stepped = async || {
        expire_in(&database, leader, "1 hour").await;
        assert!(beyond(&database, leader).await > 3000.0);
    };
    stepped().await;
    read(&*port, &election).await;
    assert!(beyond(&database, leader).await <= 0.0, "a read caps");
    stepped().await;
    let outcome = campaign(&*port, &record(&election, "second", other, 2), Vacancy::Absent, won).await;
    assert!(matches!(outcome, CampaignOutcome::Lost(_)), "{outcome:?}");
    assert!(beyond(&database, leader).await <= 0.0, "a campaign caps");
    stepped().await;
    port.list_replicas().await.expect("an answer");
    assert!(beyond(&database, leader).await <= 0.0, "a listing caps");
    assert_eq!(port.renew(leader).await.expect("an answer"), RenewOutcome::Renewed { ttl: TTL });
}

#[tokio::test]
async fn a_lease_that_was_found_lapsed_and_acted_upon_does_not_come_back_with_the_clock() {
    let database = migrated().await;
    let port = on_postgres(&database)();
    let election = election("back");
    let (first, second) = (lease(&*port).await, lease(&*port).await);
    let (_, won) = win(&*port, &election, first).await;
    expire_in(&database, first, "-1 second").await;
    let outcome = campaign(&*port, &record(&election, "second", second, 2), Vacancy::Absent, won).await;
    assert!(matches!(outcome, CampaignOutcome::Won { .. }), "{outcome:?}");
    let left: i64 =
        database.value(&format!("select count(*) from bursar.coordinator_lease where id = {}", first.0)).await;
    assert_eq!(left, 0);
    assert_eq!(port.renew(first).await.expect("an answer"), RenewOutcome::Gone);
}

#[tokio::test]
async fn a_database_without_the_schema_says_what_to_do() {
    let database = Postgres::shared().fresh_database().await;
    let error = on_postgres(&database)().grant(TTL).await.expect_err("no schema");
    assert!(error.to_string().contains("bursar migrate"), "{error}");
}

#[tokio::test]
async fn a_database_that_takes_connections_and_answers_nothing_costs_one_deadline() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("postgres://bursar@127.0.0.1:{}/none", silent.local_addr().expect("bound").port());
    let port = PgCoordinator::new(PgCoordinatorSettings { url: url.into(), ..PgCoordinatorSettings::default() });
    let before = clock::boottime();
    let error = port.renew(LeaseId(1)).await.expect_err("no answer");
    assert!(error.to_string().contains("the outcome is unknown"), "{error}");
    let took = clock::boottime().since(before);
    assert!(took >= Duration::from_millis(900) && took < Duration::from_secs(5), "{took:?}");
    assert_eq!(port.members().await.reachable, 0);
}
