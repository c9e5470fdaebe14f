//! The whole of it once: a fleet elects, settles, loses its leader and goes on.

use std::time::Duration;

use super::support::{Entries, Setup, eventually};

const EVERY_SECOND: &str = "[[job]]\nname = \"often\"\ncron = \"* * * * * *\"\nhandler = \"ledger\"\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_settle_what_is_imported_through_the_loss_of_their_leader() {
    let cluster = Setup::new(3, EVERY_SECOND).behind_proxies().start().await;
    let watch = cluster.watch();
    cluster.import(&Entries::with_ids("a").bulk(20, 3), "shop").ok();
    let first = cluster.wait_leader(Duration::from_secs(20)).await;
    let instructions = "select count(*) from bursar.instruction";
    let settled = async |wanted: i64| {
        eventually(Duration::from_secs(30), &format!("{wanted} instructions are written"), async || {
            (cluster.database().value::<i64>(instructions).await == wanted).then_some(())
        })
        .await;
    };
    settled(20).await;
    cluster.replica(first).kill();
    cluster.import(&Entries::with_ids("b").bulk(20, 3), "shop").ok();
    let second = cluster.wait_other_leader(Duration::from_secs(10), &[first]).await;
    settled(40).await;
    cluster.replica(second).stop();
    let third = cluster.wait_other_leader(Duration::from_secs(10), &[first, second]).await;
    cluster.replica(second).cont();
    cluster.replica(first).start();
    cluster.replica(first).wait_ready(Duration::from_secs(10)).await;
    let history = watch.finish();
    let leaders: Vec<usize> = history.tenures("settlement").into_iter().map(|(_, replica)| replica).collect();
    assert_eq!(leaders, [first, second, third]);
    assert_eq!(cluster.database().value::<i64>(instructions).await, 40);
    cluster.assert_audited();
    cluster.shut_down(Duration::from_secs(15));
}
