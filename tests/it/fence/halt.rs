//! The kill switch: in force with the next transaction, waits for what is under way, lets outcomes be recorded.

use std::time::Duration;

use bursar::clock;
use bursar::store::Store;

use super::ground::{accepted, actor, claim, election, entered, migrated, open};

#[tokio::test(flavor = "multi_thread")]
async fn a_halt_waits_for_sixteen_transactions_under_way_and_ends_none() {
    let database = migrated().await;
    let store = open(&database.url());
    let old = claim(1);
    accepted(&store, &old).await;
    let mut holders = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let mut holder = entered(&database, &old).await;
        holders
            .spawn(async move { sqlx::raw_sql("select pg_sleep(0.5); commit").execute(&mut holder).await.map(|_| ()) });
    }
    let began = clock::boottime();
    let report = store.halt(&election(), "drill", &actor()).await.expect("halted");
    let took = clock::boottime().since(began);
    assert!(report.waited_ms >= 100, "{report:?}");
    assert!(took < Duration::from_secs(3), "{took:?}");
    while let Some(ended) = holders.join_next().await {
        ended.expect("joined").expect("no transaction is ended for a halt");
    }
}
