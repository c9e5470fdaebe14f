//! A database that is set back to an earlier copy under a running fleet: the election halts and says why, and what is made
//! again after the resume has the same keys.

use std::collections::BTreeMap;

use super::{READY, SETTLED, TAKEOVER};
use crate::support::postgres::Restored;
use crate::support::{Cluster, Entries, Etcd, LedgerJob, Postgres, Setup, eventually, holds_for};

/// Instructions by key: whom they pay, how much, and the bytes.
async fn instructions(cluster: &Cluster) -> BTreeMap<String, (String, i64, Vec<u8>)> {
    let query = "select idempotency_key, merchant, amount, body from bursar.instruction";
    let rows: Vec<(String, String, i64, Vec<u8>)> = cluster.database().rows(query).await;
    rows.into_iter().map(|(key, merchant, amount, body)| (key, (merchant, amount, body))).collect()
}

async fn wait_instructions(cluster: &Cluster, count: usize) -> BTreeMap<String, (String, i64, Vec<u8>)> {
    let query = "select count(*) from bursar.instruction";
    let count = i64::try_from(count).expect("few");
    eventually(SETTLED, &format!("{count} instructions"), async || {
        // The server may be on its way up.
        let rows = cluster.database().try_rows::<(i64,)>(query).await.ok()?;
        (rows[0].0 >= count).then_some(())
    })
    .await;
    instructions(cluster).await
}

/// Waits until what the coordinator remembers of the store has been renewed after now.
async fn wait_remembered(cluster: &Cluster, etcd: &Etcd) {
    let key = cluster.term_key().replace("/term", "/accepted");
    for _ in 0..2 {
        let before = etcd.get(&key).await;
        // Something for the log to move on with.
        cluster
            .database()
            .execute(
                "create table if not exists moved_on (n int); insert into moved_on select generate_series(1, 1000)",
            )
            .await;
        eventually(TAKEOVER, "what is remembered is renewed", async || (etcd.get(&key).await != before).then_some(()))
            .await;
    }
}

/// Why the election is halted; empty where it is not.
async fn halt_reason(cluster: &Cluster) -> String {
    let query = "select coalesce(max(halt_reason), '') from bursar.fence";
    cluster.database().try_rows::<(String,)>(query).await.map(|rows| rows[0].0.clone()).unwrap_or_default()
}

async fn set_back(how: Restored) {
    let (server, etcd) = (Postgres::start(), Etcd::shared());
    // All ticks are run, each with its own cutoff: what a tick took, the same tick takes again.
    let job = LedgerJob::new("often").cron("*/5 * * * * *").key("misfire", "\"run_all\"");
    let cluster = Setup::new(2, &job.text()).on_postgres(&server).start().await;
    cluster.wait_leader(READY).await;
    for replica in cluster.replicas() {
        replica.wait_ready(READY).await;
    }
    let sampler = cluster.watch();
    let first = Entries::with_ids("first").bulk(10, 2);
    cluster.import(&first, "psp").ok();
    wait_instructions(&cluster, 10).await;
    let backup = server.backup();
    cluster.wait_leader(TAKEOVER).await;

    // Available from a moment on that no tick before the copy can reach.
    let since = cluster.store_clock().await + chrono::TimeDelta::seconds(1);
    let since = since.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let mut second = Entries::with_ids("second");
    for n in 0..20 {
        second = second.capture(&format!("s{n}"), "EUR", "3.00").fee("0.10").available(&since);
    }
    cluster.import(&second, "psp").ok();
    let before = wait_instructions(&cluster, 30).await;
    wait_remembered(&cluster, etcd).await;

    server.restore(&backup, how);
    let reason = eventually(TAKEOVER, "the election is halted", async || {
        Some(halt_reason(&cluster).await).filter(|reason| !reason.is_empty())
    })
    .await;
    assert!(reason.contains("the database forgot"), "{reason}");
    let status = cluster.command(&["status"]).ok().stdout;
    assert!(status.contains("the database forgot"), "it says why:\n{status}");
    assert_eq!(instructions(&cluster).await.len(), 10, "what came after the copy is lost");
    // Entries may come in; nothing is settled with them.
    cluster.import(&second, "psp").ok();
    let works = "select (select count(*) from bursar.run), (select count(*) from bursar.batch)";
    let standing: (i64, i64) = cluster.database().rows(works).await[0];
    holds_for(std::time::Duration::from_secs(6), "nothing happens while halted", async || {
        let now: (i64, i64) = cluster.database().rows(works).await[0];
        if now == standing { Ok(()) } else { Err(format!("{now:?} after {standing:?}")) }
    })
    .await;

    // Row numbers are not those of before: a sequence that was restored has leapt ahead, or stands behind.
    cluster
        .database()
        .execute("select setval(pg_get_serial_sequence('bursar.run', 'id'), max(id) + 1000) from bursar.run")
        .await;
    cluster.command(&["resume", "--reason", "restored from the copy of this morning"]).ok();
    let after = wait_instructions(&cluster, 30).await;
    assert_eq!(after, before, "what is made again has the same keys, payees, amounts and bytes");
    assert_eq!(halt_reason(&cluster).await, "");
    // The new baseline is remembered: whoever leads next does not halt.
    let term = cluster.term().await;
    let leader = cluster.wait_leader(TAKEOVER).await;
    cluster.replica(leader).term();
    cluster.wait_work_above(term, TAKEOVER).await;
    cluster.import(&Entries::with_ids("third").bulk(5, 1), "psp").ok();
    wait_instructions(&cluster, 35).await;
    assert_eq!(halt_reason(&cluster).await, "");
    cluster.assert_sound().await;
    sampler.finish();
}

#[tokio::test]
async fn a_database_whose_files_are_put_back_halts_the_election_until_the_resume() {
    set_back(Restored::SameTimeline).await;
}

#[tokio::test]
async fn a_database_recovered_to_another_timeline_halts_the_election_until_the_resume() {
    set_back(Restored::NextTimeline).await;
}
