//! Payouts on whole replicas: a leader sends what a run has settled to a receiver that keeps a book, and the book is the judge.
//! What the receiver answers, what it does not, and what is killed meanwhile.

mod answers;
mod deaths;
mod embedded;
mod meanwhile;
mod pauses;
mod storms;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::receiver::Receiver;
use crate::support::{Cluster, Entries, LedgerJob, Setup, eventually};

/// A start on a busy machine.
const READY: Duration = Duration::from_secs(30);
/// Some payouts, on a busy machine.
const PAID: Duration = Duration::from_mins(1);

/// One job with payouts to this receiver, which is idempotent or not.
fn job(receiver: &Receiver, idempotent: bool) -> LedgerJob {
    LedgerJob::new("daily")
        .paying(&receiver.url())
        .payout("idempotent", if idempotent { "true" } else { "false" })
        .payout("refusals", "[402, 422]")
        .payout("timeout", "\"2s\"")
}

/// One replica that leads, with that job.
async fn one_replica(job: &LedgerJob) -> Cluster {
    let cluster = Setup::new(1, &job.text()).steady().start().await;
    cluster.wait_leader(READY).await;
    cluster
}

/// Entries of so many merchants, 10.00 EUR each.
fn entries(count: usize) -> Entries {
    (0..count).fold(Entries::new(), |entries, n| entries.capture(&format!("m{n}"), "EUR", "10.00"))
}

impl Cluster {
    /// Keys of payouts by state.
    async fn payouts(&self) -> BTreeMap<String, Vec<String>> {
        let rows: Vec<(String, String)> = self
            .database()
            .rows("select state, idempotency_key from bursar.instruction where kind = 'payout' order by id")
            .await;
        let mut payouts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (state, key) in rows {
            payouts.entry(state).or_default().push(key);
        }
        payouts
    }

    /// Waits until all payouts are in these states, and answers their keys by state.
    async fn wait_payouts(&self, states: &[(&str, usize)]) -> BTreeMap<String, Vec<String>> {
        let expected: BTreeMap<String, usize> =
            states.iter().filter(|(_, count)| *count > 0).map(|(state, count)| ((*state).to_owned(), *count)).collect();
        eventually(PAID, &format!("payouts are {expected:?}"), async || {
            let payouts = self.payouts().await;
            let found: BTreeMap<String, usize> =
                payouts.iter().map(|(state, keys)| (state.clone(), keys.len())).collect();
            (found == expected).then_some(payouts)
        })
        .await
    }

    /// Whether the audit finds the store in order, and the judge the requests.
    async fn assert_paid_soundly(&self, receiver: &Receiver) {
        receiver.judge();
        for key in self.payouts().await.remove("paid").unwrap_or_default() {
            assert!(receiver.payment(&key).await.is_some(), "{key} is paid here and not in the receiver's book");
        }
        self.assert_audited();
    }
}

#[tokio::test]
async fn what_a_run_settles_is_paid_once_each_and_posted() {
    let receiver = Receiver::start().await;
    let cluster = one_replica(&job(&receiver, true)).await;
    cluster.import(&entries(40), "psp").ok();
    cluster.run_now("daily").await;
    let paid = cluster.wait_payouts(&[("paid", 40)]).await.remove("paid").expect("they are paid");
    for key in &paid {
        assert_eq!(receiver.tries(key).len(), 1, "{key}");
    }
    assert_eq!(receiver.log().len(), 40);
    let logged = &receiver.log()[0];
    assert_eq!(logged.token, cluster.term().await);
    assert!(logged.scope.ends_with("/settlement"), "{}", logged.scope);
    let counted = eventually(PAID, "the attempts are counted", async || {
        cluster.replica(0).metric("bursar_payout_attempts_total", &[("outcome", "paid")]).await.filter(|n| *n >= 40.0)
    });
    assert!((counted.await - 40.0).abs() < 0.5);
    cluster.assert_paid_soundly(&receiver).await;
}
