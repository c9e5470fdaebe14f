//! Tenures of two elections in one process: together they never open more sessions than the process may, and neither is
//! kept from its own.

use std::sync::Arc;
use std::time::Duration;

use bursar::domain::{Claim, ElectionName};
use bursar::store::postgres::{PgSettings, PgShares, PgStore};
use bursar::store::{Store, TenureLimits, TenureStore};

use super::ground::{accepted, claim, limits, lineage, migrated, mine};
use crate::support::{Database, always, eventually};

const SHARES: PgShares = PgShares { own: 1, common: 2 };
/// Each tenure's own, and the common ones.
const MOST: i64 = 2 + 2;

async fn tenure_of(store: &PgStore, election: &str) -> Arc<dyn TenureStore> {
    let claim = Claim { election: ElectionName::new(election).expect("a name"), ..claim(1) };
    accepted(store, &claim).await;
    let limits = TenureLimits { connections: SHARES.own + SHARES.common, ..limits() };
    store.tenure(&claim, limits, lineage(store).await, always()).await.expect("a tenure")
}

async fn open_sessions(database: &Database, name: &str) -> i64 {
    database
        .value(&format!(
            "select count(*) from pg_stat_activity where datname = current_database() and application_name like '{name}'"
        ))
        .await
}

async fn open_tenures_sessions(database: &Database) -> i64 {
    let of_tenures = "application_name like 'bursar/settlement/%' or application_name like 'bursar/other/%'";
    let all = "select count(*) from pg_stat_activity where datname = current_database()";
    database.value(&format!("{all} and ({of_tenures})")).await
}

/// As many transactions at once as a tenure may have sessions.
async fn busy(tenure: &Arc<dyn TenureStore>) {
    let (one, two, three) = tokio::join!(tenure.pulse(), tenure.pulse(), tenure.pulse());
    for pulse in [one, two, three] {
        mine(pulse);
    }
}

/// A tenure that is alone may have all common places; those that it needs are opened, and no more.
async fn takes_all_common_ones(database: &Database, tenure: &Arc<dyn TenureStore>, election: &str) {
    eventually(Duration::from_secs(10), &format!("{election} has all common places"), async || {
        busy(tenure).await;
        (open_sessions(database, &format!("bursar/{election}/%")).await == 3).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenures_of_two_elections_together_open_no_more_sessions_than_the_process_may() {
    let database = migrated().await;
    let settings = PgSettings {
        url: database.url().into(),
        replica: "replica-a".to_owned(),
        shares: Some(SHARES),
        ..PgSettings::default()
    };
    let store = PgStore::new(&settings).expect("the settings are right");
    let (one, other) = (tenure_of(&store, "settlement").await, tenure_of(&store, "other").await);
    takes_all_common_ones(&database, &one, "settlement").await;
    let work = async {
        for _ in 0..10 {
            busy(&other).await;
            busy(&one).await;
            tokio::join!(busy(&one), busy(&other));
        }
    };
    let looks = async {
        loop {
            // In one look: the place of one that has ended may be another's before a second look.
            let open = open_tenures_sessions(&database).await;
            assert!(open <= MOST, "{open} sessions, and {MOST} are allowed");
        }
    };
    tokio::select! {
        () = work => {}
        () = looks => {}
        () = tokio::time::sleep(Duration::from_mins(1)) => panic!("one kept the other from its work"),
    }
    assert!(one.end(Duration::from_secs(2)).await.confirmed);
    takes_all_common_ones(&database, &other, "other").await;
    assert!(other.end(Duration::from_secs(2)).await.confirmed);
}
