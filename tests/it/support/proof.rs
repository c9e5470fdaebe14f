//! What tests of faults ask of a cluster's store while and after things go wrong, first of all what is always true.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::cluster::{Cluster, ELECTION};
use super::process::Finished;
use super::wait::{eventually, eventually_blocking};

/// What a lower term left on the wire is taken up within this time, also on a busy machine.
const TAKEN_UP_WITHIN: Duration = Duration::from_secs(30);

/// From leading to the jobs of the schedule being in the store, on a busy machine.
const JOBS_ARE_IN: Duration = Duration::from_secs(30);

/// What must give no row at any time, with what it would mean.
const NEVER: &[(&str, &str)] = &[
    (
        "two runs of one job and tick",
        "select job_id::text || ' ' || tick from bursar.run where kind = 'tick' group by job_id, tick having count(*) > 1",
    ),
    (
        "a journal whose lines do not sum to zero",
        "select journal_id::text from bursar.ledger_line group by journal_id, currency having sum(amount) <> 0",
    ),
    (
        "a unit that ended without a batch or a term",
        // What a promotion sets aside with its run is in no batch.
        "select key from bursar.unit
          where state <> 'pending' and (term is null or (batch_id is null and state <> 'set_aside'))",
    ),
    (
        "a batch that counts other units than it has",
        "select b.id::text from bursar.batch b where b.units <> (select count(*) from bursar.unit u where u.batch_id = b.id)",
    ),
    (
        "a unit that was ended under another term than its batch",
        "select u.key from bursar.unit u join bursar.batch b on b.id = u.batch_id where b.term <> u.term",
    ),
    (
        "a term accepted after a higher one",
        "select h.term::text from bursar.term_history h join bursar.term_history o using (election)
          where h.term < o.term and h.accepted_at > o.accepted_at",
    ),
    (
        "work of a term that nobody was accepted for",
        "select b.id::text from bursar.batch b
          where not exists (select from bursar.term_history h where h.election = b.election and h.term = b.term)",
    ),
];

/// Counts of what one process has in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// Threads.
    pub threads: usize,
    /// Descriptors: sockets, files, timers of the kernel.
    pub descriptors: usize,
    /// Resident memory.
    pub resident_kb: u64,
}

impl Cluster {
    /// Has the leader open a run of a job, and waits until it has.
    ///
    /// # Panics
    /// When it does not.
    pub fn trigger(&self, job: &str) -> Finished {
        // A replica leads from the moment that the store accepts its term; the jobs of its schedule are in a moment later.
        eventually_blocking(JOBS_ARE_IN, &format!("{job} is in the store"), || {
            let triggered = self.command(&["trigger", job, "--wait", "60s", "--json"]);
            let too_early = triggered.code() == Some(1) && triggered.stderr.contains("does not exist in the store");
            (!too_early).then_some(triggered)
        })
        .ok()
    }

    /// The term in force; 0 where nobody ever led.
    pub async fn term(&self) -> i64 {
        let query = format!("select coalesce(max(term), 0) from bursar.fence where election = '{ELECTION}'");
        self.number(&query).await
    }

    /// The store's time, as SQL reads it.
    pub async fn store_time(&self) -> String {
        self.database().value("select clock_timestamp()::text").await
    }

    /// The store's time.
    pub async fn store_clock(&self) -> DateTime<Utc> {
        self.database().value("select clock_timestamp()").await
    }

    /// From a moment of the store's clock to the one that a query finds.
    ///
    /// # Panics
    /// When that lies before it.
    pub async fn since(&self, then: DateTime<Utc>, query: &str) -> Duration {
        let found: DateTime<Utc> = self.database().value(query).await;
        (found - then).to_std().expect("what is asked for comes after")
    }

    /// From a moment of the store's clock to the note of a term's first work.
    pub async fn worked_since(&self, term: i64, then: DateTime<Utc>) -> Duration {
        let query =
            format!("select worked_at from bursar.term_history where election = '{ELECTION}' and term = {term}");
        self.since(then, &query).await
    }

    /// How many units are settled.
    pub async fn settled(&self) -> i64 {
        self.number("select count(*) from bursar.unit where state = 'settled'").await
    }

    /// Waits until so many units are settled, or more.
    ///
    /// # Panics
    /// When they are not in time.
    pub async fn wait_settled(&self, units: i64, within: Duration) {
        eventually(within, &format!("{units} units are settled"), async || {
            (self.settled().await >= units).then_some(())
        })
        .await;
    }

    /// Waits until no run is open.
    ///
    /// # Panics
    /// When one still is.
    pub async fn wait_no_open_run(&self, within: Duration) {
        let query = "select count(*) from bursar.run where state in ('planning', 'open')";
        eventually(within, "no run is open", async || (self.number(query).await == 0).then_some(())).await;
    }

    /// Waits until a higher term than that has done its first work; gives it.
    ///
    /// # Panics
    /// When none does in time.
    pub async fn wait_work_above(&self, term: i64, within: Duration) -> i64 {
        let query = format!(
            "select coalesce(max(term), 0) from bursar.term_history
              where election = '{ELECTION}' and term > {term} and worked_at is not null"
        );
        eventually(within, &format!("a term above {term} works"), async || {
            let found = self.number(&query).await;
            (found > 0).then_some(found)
        })
        .await
    }

    /// The lease that the leader's key stands on.
    ///
    /// # Panics
    /// When there is no leader.
    pub async fn leaders_lease(&self, etcd: &super::etcd::Etcd) -> i64 {
        let found = etcd.list(&self.leader_key()).await;
        found.first().expect("there is a leader").2
    }

    /// What a replica has in hand.
    pub fn resources(&self, replica: usize) -> Resources {
        let replica = self.replica(replica);
        Resources { threads: replica.threads(), descriptors: replica.descriptors(), resident_kb: replica.resident_kb() }
    }

    /// Sees that everything holds that always does, by the product's own audit and by queries that do not know its code.
    ///
    /// # Panics
    /// When something does not.
    pub async fn assert_sound(&self) {
        if !self.has_server() {
            // The queries are PostgreSQL's; the audit knows both stores.
            self.assert_audited();
            return;
        }
        let stale = format!(
            "select count(*) from bursar.instruction i join bursar.fence f using (election)
              where i.state = 'sending' and i.sending_term < f.term and i.election = '{ELECTION}'"
        );
        eventually(TAKEN_UP_WITHIN, "what a lower term left on the wire is taken up", async || {
            (self.database().value::<i64>(&stale).await == 0).then_some(())
        })
        .await;
        for (what, query) in NEVER {
            let found: Vec<(String,)> = self.database().rows(query).await;
            assert!(found.is_empty(), "{what}: {found:?}");
        }
        self.assert_audited();
    }
}
