//! Traces: from a tick to its payouts, with parents that are right across changes of the leader, and a collector that nobody
//! waits for.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::collector::Seen;
use crate::support::receiver::{Act, Receiver, say};
use crate::support::replica::quoted;
use crate::support::{Collector, EVERY_SECOND, Entries, Job, LedgerJob, Setup, eventually, schedule};

const READY: Duration = Duration::from_secs(30);
const SETTLED: Duration = Duration::from_mins(1);

/// All spans by identity.
fn by_id(spans: &[Seen]) -> BTreeMap<Vec<u8>, Seen> {
    spans.iter().map(|span| (span.id.clone(), span.clone())).collect()
}

#[tokio::test]
async fn spans_of_a_run_hang_together_from_its_tick_to_its_payouts_also_when_another_leader_sends_them() {
    let (collector, receiver) = (Collector::start(), Receiver::start().await);
    receiver.always(Some(Act::Say(say(503, &[], ""))));
    let job = LedgerJob::new("daily").batch(3, 1).paying(&receiver.url()).payout("idempotent", "true");
    let setup = Setup::new(2, &job.text()).steady().key("traces", "endpoint", &quoted(&collector.endpoint()));
    let cluster = setup.start().await;
    let leader = cluster.wait_leader(READY).await;
    cluster.replica(1 - leader).wait_ready(READY).await;
    cluster.import(&Entries::new().bulk(7, 1), "psp").ok();
    let term = cluster.term().await;
    let run = cluster.run_now("daily").await.to_string();
    let named = |name: &str| collector.spans().into_iter().filter(|span| span.name == name).collect::<Vec<_>>();
    eventually(SETTLED, "a payout was tried", async || (!named("payout").is_empty()).then_some(())).await;
    cluster.replica(leader).term();
    cluster.wait_work_above(term, SETTLED).await;
    receiver.always(None);
    let paid = async || {
        let paid = named("payout").into_iter().filter(|span| span.attributes["bursar.outcome"] == "paid");
        let paid: Vec<Seen> = paid.collect();
        (paid.len() == 7).then_some(paid)
    };
    let paid = eventually(SETTLED, "each payout was paid, and its span is here", paid).await;

    let spans = collector.spans();
    let all = by_id(&spans);
    for span in spans.iter().filter(|span| span.attributes["bursar.run"] == run) {
        assert_eq!(span.trace, paid[0].trace, "one trace for a run: {span:?}");
    }
    for payout in &paid {
        assert!(payout.attributes["bursar.term"].parse::<i64>().expect("a number") > term, "another sent it");
        let batch = &all[&payout.parent];
        let run_span = &all[&batch.parent];
        let tick = &all[&run_span.parent];
        let chain = [batch, run_span, tick].map(|span| span.name.as_str());
        assert_eq!(chain, ["batch", "run", "tick"]);
        assert!(tick.parent.iter().all(|byte| *byte == 0), "the root: {tick:?}");
        for span in [batch, run_span, tick] {
            let of = |key: &str| span.attributes[key].as_str();
            assert_eq!(
                (of("bursar.run"), of("bursar.job"), of("bursar.term")),
                (run.as_str(), "daily", &*term.to_string())
            );
        }
    }
    let units: Vec<_> = named("batch").iter().map(|span| span.attributes["bursar.units"].clone()).collect();
    assert_eq!(units, ["3", "3", "1"]);
    let said = format!("{spans:?}");
    for kept_in in ["m0000", "EUR", "0.99", "psp"] {
        assert!(!said.contains(kept_in), "no money and no merchants: {kept_in}");
    }
    cluster.assert_sound().await;
}

#[tokio::test]
async fn a_collector_that_is_away_costs_its_spans_one_warning_and_nothing_else() {
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    let text = schedule(&[Job::probe("each-second", 5).cron(EVERY_SECOND)]);
    let cluster = Setup::new(1, &text).steady().key("traces", "endpoint", &quoted(&endpoint)).start().await;
    cluster.wait_leader(READY).await;
    eventually(SETTLED, "spans come", async || (!collector.spans().is_empty()).then_some(())).await;
    let dropped = async || cluster.replica(0).metric("bursar_trace_spans_dropped_total", &[]).await;
    assert_eq!(dropped().await, Some(0.0));
    drop(collector);
    eventually(SETTLED, "spans are dropped", async || (dropped().await? > 10.0).then_some(())).await;
    let settled = cluster.settled().await;
    cluster.wait_settled(settled + 10, SETTLED).await;
    let log = cluster.replica(0).log();
    assert_eq!(log.matches("the collector of traces does not answer").count(), 1, "{log}");
    let lag =
        "select max(extract(epoch from opened_at - due_at) * 1000)::bigint from bursar.run where caught_up = false";
    assert!(cluster.number(lag).await < 5000, "ticks are on time");
    cluster.assert_sound().await;
}
