//! Wrong files taken back, before and after they were settled: every merchant stands where it stood without them.

use std::collections::BTreeMap;

use super::one_replica;
use crate::support::{Cluster, Entries};

/// What each merchant is owed over all time, by currency, in minor units: all entries in force, carries (which only move
/// money from run to run) left out.
async fn owed(cluster: &Cluster) -> BTreeMap<String, i64> {
    let query = "select currency || ':' || merchant, sum(amount - fee)::bigint from bursar.entry
                  where withdrawn_at is null and kind <> 'carry' group by 1 having sum(amount - fee) <> 0";
    cluster.database().rows(query).await.into_iter().collect()
}

/// What has left, and what is still open.
async fn paid_and_open(cluster: &Cluster) -> BTreeMap<String, i64> {
    let query = "select key, sum(amount)::bigint from (
                   select currency || ':' || merchant as key, amount from bursar.instruction
                   union all
                   select currency || ':' || merchant, amount - fee from bursar.entry
                    where unit_id is null and withdrawn_at is null) as all_of_it
                  group by key having sum(amount) <> 0";
    cluster.database().rows(query).await.into_iter().collect()
}

fn revert(cluster: &Cluster, import: i64) -> serde_json::Value {
    cluster.command(&["imports", "revert", &import.to_string(), "--reason", "wrong day", "--json"]).ok().json()
}

fn import(cluster: &Cluster, entries: &Entries) -> i64 {
    let imported = cluster.import_file(&entries.write("entries.csv"), "psp").ok().json();
    imported["import"]["id"].as_i64().unwrap_or_else(|| panic!("an import: {imported}"))
}

#[tokio::test]
async fn a_wrong_import_is_taken_back_before_and_after_it_was_settled() {
    let cluster = one_replica().await;
    import(&cluster, &Entries::with_ids("good").capture("a", "EUR", "10.00").fee("0.30").capture("b", "JPY", "500"));
    cluster.run_now("daily").await;
    let before = owed(&cluster).await;
    assert_eq!(before, [("EUR:a".to_owned(), 970), ("JPY:b".to_owned(), 500)].into());

    // Taken back before it was settled: withdrawn, and its ids are free for the corrected file.
    let wrong = Entries::with_ids("w").capture("a", "EUR", "1.00").capture("c", "EUR", "7.00").fee("0.07");
    let id = import(&cluster, &wrong);
    assert_ne!(owed(&cluster).await, before);
    assert_eq!(revert(&cluster, id), serde_json::json!({ "outcome": "reverted", "withdrawn": 2, "adjusted": 0 }));
    assert_eq!(owed(&cluster).await, before);
    assert_eq!(revert(&cluster, id)["outcome"], "already");
    let run = cluster.run_now("daily").await;
    assert_eq!(cluster.units_shown(run), [].into(), "what was taken back is not settled");
    cluster.assert_sound().await;

    let right = Entries::with_ids("w").capture("a", "EUR", "2.00").capture("c", "EUR", "3.00").fee("0.05");
    let id = import(&cluster, &right);
    let run = cluster.run_now("daily").await;
    assert_eq!(cluster.unit_shown(run, "EUR:c")["net"], "2.95");

    // Taken back after it was settled: what was paid stays written, its opposite is open.
    assert_eq!(revert(&cluster, id), serde_json::json!({ "outcome": "reverted", "withdrawn": 0, "adjusted": 2 }));
    assert_eq!(owed(&cluster).await, before);
    assert_eq!(paid_and_open(&cluster).await, before);
    cluster.assert_sound().await;
    let run = cluster.run_now("daily").await;
    let expected = [("EUR:a", "-2.00"), ("EUR:c", "-2.95")];
    assert_eq!(
        cluster.units_shown(run),
        expected.map(|(key, net)| (key.to_owned(), (net.to_owned(), "carried".to_owned()))).into()
    );
    assert_eq!(owed(&cluster).await, before);

    // Settled in part when it is taken back.
    let half = Entries::with_ids("h").capture("c", "EUR", "5.00").capture("a", "EUR", "1.50");
    let half = half.available("2100-01-01T00:00:00Z");
    let id = import(&cluster, &half);
    let run = cluster.run_now("daily").await;
    assert_eq!(cluster.unit_shown(run, "EUR:c")["net"], "2.05", "the carry is netted with what came");
    assert_eq!(revert(&cluster, id), serde_json::json!({ "outcome": "reverted", "withdrawn": 1, "adjusted": 1 }));
    let shown = cluster.command(&["imports", "show", &id.to_string(), "--json"]).ok().json();
    assert_eq!((&shown["withdrawn"], &shown["reverted"], &shown["open"]), (&1.into(), &1.into(), &0.into()), "{shown}");
    cluster.run_now("daily").await;
    assert_eq!(owed(&cluster).await, before);
    assert_eq!(paid_and_open(&cluster).await, before);
    let acts = cluster.command(&["history", "--json"]).ok().json();
    let reverts = acts["acts"].as_array().expect("a list").iter().filter(|act| act["action"] == "imports revert");
    assert_eq!(reverts.filter(|act| act["reason"] == "wrong day").count(), 3, "{acts}");
    cluster.assert_sound().await;
}
