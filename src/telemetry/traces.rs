//! Traces over OTLP (gRPC), off unless `[traces] endpoint` is set: what became of a tick, its run, the run's batches and payouts.
//!
//! Invariants:
//! - A span costs the work one push into a bounded queue. Where that is full, or the collector does not answer, spans are
//!   dropped, counted (`bursar_trace_spans_dropped_total`) and warned of once; nothing waits for it.
//! - Identities are derived from the deployment, the run and what the span is of, not drawn: so the spans of one run hang
//!   together whichever replica made them, and a payout that is sent by another leader than wrote it is below its batch.
//! - Attributes are the election, term, job, run, counts and outcomes. No unit, key, merchant, amount or text of a receiver.
//! - A run that is worked on several times under one term (it failed, or was halted) has one identity: the last span counts.
//!
//! Deliberately absent: a global tracer and context in threads. A span is noted when it is over, by whoever knows both ends.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Metrics;
use crate::domain::{ElectionName, JobName, Term};

/// Spans that may wait for the collector; further ones are dropped.
const QUEUE: usize = 8192;
/// Spans of one request.
const AT_ONCE: usize = 512;
/// Between two requests, while there are spans.
const EVERY: Duration = Duration::from_millis(500);
/// The longest wait for the collector's answer.
const WITHIN: Duration = Duration::from_secs(5);
/// The same for what is left when the process leaves.
const WITHIN_AT_THE_END: Duration = Duration::from_millis(500);

/// What a span is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// A tick, from its due time to the opening of its run: the root.
    Tick,
    /// Work on a run under one term.
    Run,
    /// The writing of a run's units.
    Plan,
    /// One transaction that ends units.
    Batch {
        /// Its row; `None` where it was rolled back.
        batch: Option<i64>,
        /// Units taken.
        units: u64,
    },
    /// One try at a payout.
    Payout {
        /// The batch that wrote it.
        batch: Option<i64>,
        /// Which try this is, from 1.
        attempt: u32,
    },
    /// One call of an outside handler.
    Call {
        /// Which try this is, from 1.
        attempt: u32,
    },
}

/// One piece of work that is over.
#[derive(Debug, Clone)]
pub struct Span {
    /// What of.
    pub work: Work,
    /// The deployment.
    pub deployment: Uuid,
    /// The election.
    pub election: ElectionName,
    /// The term that it was done under.
    pub term: Term,
    /// The job.
    pub job: JobName,
    /// The run.
    pub run: i64,
    /// When it began, by the store's clock.
    pub began_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// What came of it, a word of a closed set.
    pub outcome: &'static str,
    /// Whether that is a failure.
    pub failed: bool,
}

impl Work {
    const fn name(self) -> &'static str {
        match self {
            Self::Tick => "tick",
            Self::Run => "run",
            Self::Plan => "plan",
            Self::Batch { .. } => "batch",
            Self::Payout { .. } => "payout",
            Self::Call { .. } => "call",
        }
    }

    /// Of what leaves the house the receiver is the other side.
    const fn kind(self) -> SpanKind {
        match self {
            Self::Payout { .. } | Self::Call { .. } => SpanKind::Client,
            Self::Tick | Self::Run | Self::Plan | Self::Batch { .. } => SpanKind::Internal,
        }
    }
}

/// The first bytes of a digest over parts, each with its length before it.
fn digest<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut first = [0; N];
    first.copy_from_slice(&hash.finalize()[..N]);
    first
}

impl Span {
    fn trace(&self) -> TraceId {
        TraceId::from_bytes(digest(&[b"bursar.trace", self.deployment.as_bytes(), &self.run.to_be_bytes()]))
    }

    fn id_of(&self, what: &str, number: i64) -> SpanId {
        SpanId::from_bytes(digest(&[
            what.as_bytes(),
            self.deployment.as_bytes(),
            &self.run.to_be_bytes(),
            &number.to_be_bytes(),
        ]))
    }

    /// Its own identity and its parent's.
    fn ids(&self) -> (SpanId, SpanId) {
        let run = self.id_of("run", self.term.get());
        let fresh = || SpanId::from_bytes(crate::clock::random_u64().max(1).to_be_bytes());
        match self.work {
            Work::Tick => (self.id_of("tick", 0), SpanId::INVALID),
            Work::Run => (run, self.id_of("tick", 0)),
            Work::Plan | Work::Call { .. } | Work::Batch { batch: None, .. } | Work::Payout { batch: None, .. } => {
                (fresh(), run)
            }
            Work::Batch { batch: Some(batch), .. } => (self.id_of("batch", batch), run),
            Work::Payout { batch: Some(batch), .. } => (fresh(), self.id_of("batch", batch)),
        }
    }

    fn attributes(&self) -> Vec<KeyValue> {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let mut all = vec![
            KeyValue::new("bursar.election", self.election.as_str().to_owned()),
            KeyValue::new("bursar.term", self.term.get()),
            KeyValue::new("bursar.job", self.job.as_str().to_owned()),
            KeyValue::new("bursar.run", self.run),
            KeyValue::new("bursar.outcome", self.outcome),
        ];
        match self.work {
            Work::Tick | Work::Run | Work::Plan => {}
            Work::Batch { batch, units } => {
                all.extend(batch.map(|batch| KeyValue::new("bursar.batch", batch)));
                all.push(KeyValue::new("bursar.units", number(units)));
            }
            Work::Payout { attempt, .. } | Work::Call { attempt } => {
                all.push(KeyValue::new("bursar.attempt", i64::from(attempt)));
            }
        }
        all
    }

    fn data(&self) -> SpanData {
        let (id, parent) = self.ids();
        SpanData {
            span_context: SpanContext::new(self.trace(), id, TraceFlags::SAMPLED, false, TraceState::NONE),
            parent_span_id: parent,
            parent_span_is_remote: false,
            span_kind: self.work.kind(),
            name: self.work.name().into(),
            start_time: self.began_at.into(),
            end_time: self.ended_at.max(self.began_at).into(),
            attributes: self.attributes(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: if self.failed { Status::error(self.outcome) } else { Status::Unset },
            instrumentation_scope: InstrumentationScope::builder("bursar")
                .with_version(env!("CARGO_PKG_VERSION"))
                .build(),
        }
    }
}

/// Where spans are put.
#[derive(Clone)]
pub struct Traces {
    queue: mpsc::Sender<SpanData>,
    metrics: Arc<Metrics>,
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").field("waiting", &(QUEUE - self.queue.capacity())).finish_non_exhaustive()
    }
}

/// What sends them; run by whoever owns the process' tasks.
pub struct TraceExport {
    queue: mpsc::Receiver<SpanData>,
    metrics: Arc<Metrics>,
    endpoint: String,
    replica: String,
}

/// A queue, and its other end, for a collector at `http://HOST:PORT` or `https://…`. Nothing is connected to yet.
#[must_use]
pub fn traces(endpoint: &str, replica: &str, metrics: &Arc<Metrics>) -> (Traces, TraceExport) {
    let (queue, from) = mpsc::channel(QUEUE);
    let export = TraceExport {
        queue: from,
        metrics: Arc::clone(metrics),
        endpoint: endpoint.to_owned(),
        replica: replica.to_owned(),
    };
    (Traces { queue, metrics: Arc::clone(metrics) }, export)
}

impl Traces {
    /// Notes a piece of work. Never waits; what finds no room is dropped and counted.
    pub fn note(&self, span: &Span) {
        if self.queue.try_send(span.data()).is_err() {
            self.metrics.spans_dropped(1);
        }
    }
}

impl TraceExport {
    /// Sends spans until it is asked to end; then what is left, once, within half a second in all. A collector that is away costs the
    /// spans and a warning.
    pub async fn run(mut self, ending: CancellationToken) {
        let (mut exporter, mut answers) = (None, true);
        // Also what is on its way then.
        let ended = ending.clone();
        let over = async move {
            ended.cancelled().await;
            tokio::time::sleep(WITHIN_AT_THE_END).await;
        };
        tokio::pin!(over);
        loop {
            let is_last = ending.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_none();
            while let Some(spans) = self.next_spans() {
                let count = spans.len() as u64;
                tokio::select! {
                    biased;
                    () = self.send(&mut exporter, spans, &mut answers, WITHIN) => {}
                    () = &mut over => {
                        self.metrics.spans_dropped(count + self.queue.len() as u64);
                        return;
                    }
                }
            }
            if is_last {
                return;
            }
        }
    }

    /// What waits, as much as goes at once; none where nothing does.
    fn next_spans(&mut self) -> Option<Vec<SpanData>> {
        let mut spans = Vec::with_capacity(AT_ONCE.min(self.queue.len()));
        while spans.len() < AT_ONCE
            && let Ok(span) = self.queue.try_recv()
        {
            spans.push(span);
        }
        (!spans.is_empty()).then_some(spans)
    }

    async fn send(
        &self,
        exporter: &mut Option<SpanExporter>,
        spans: Vec<SpanData>,
        answers: &mut bool,
        within: Duration,
    ) {
        let count = spans.len() as u64;
        let sent = match self.ready(exporter) {
            Ok(exporter) => match tokio::time::timeout(within, exporter.export(spans)).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_elapsed) => Err(format!("no answer within {within:?}")),
            },
            Err(error) => Err(error),
        };
        match sent {
            Ok(()) if *answers => {}
            Ok(()) => tracing::info!("the collector of traces answers again"),
            Err(ref error) => {
                self.metrics.spans_dropped(count);
                if *answers {
                    tracing::warn!(
                        error,
                        endpoint = self.endpoint,
                        "the collector of traces does not answer: spans are dropped"
                    );
                }
            }
        }
        *answers = sent.is_ok();
    }

    /// The exporter, made with the first spans: it belongs to the runtime that it is made in.
    fn ready<'a>(&self, exporter: &'a mut Option<SpanExporter>) -> Result<&'a SpanExporter, String> {
        if exporter.is_none() {
            let built = SpanExporter::builder().with_tonic().with_endpoint(&self.endpoint).with_timeout(WITHIN).build();
            let mut built = built.map_err(|error| error.to_string())?;
            let about = [
                KeyValue::new("service.name", "bursar"),
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
                KeyValue::new("service.instance.id", self.replica.clone()),
            ];
            built.set_resource(&Resource::builder_empty().with_attributes(about).build());
            *exporter = Some(built);
        }
        exporter.as_ref().ok_or_else(|| "it was not made".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Labels;

    fn span(work: Work, term: i64) -> Span {
        Span {
            work,
            deployment: Uuid::from_u128(7),
            election: ElectionName::new("settlement").expect("a name"),
            term: Term::new(term).expect("a term"),
            job: JobName::new("daily").expect("a name"),
            run: 42,
            began_at: DateTime::UNIX_EPOCH,
            ended_at: DateTime::UNIX_EPOCH,
            outcome: "complete",
            failed: false,
        }
    }

    #[test]
    fn a_payout_hangs_below_its_batch_its_run_and_its_tick_whoever_sends_it() {
        let [tick, run, batch] =
            [Work::Tick, Work::Run, Work::Batch { batch: Some(9), units: 3 }].map(|work| span(work, 5));
        let payout = span(Work::Payout { batch: Some(9), attempt: 2 }, 6);
        assert_eq!(tick.ids().1, SpanId::INVALID);
        assert_eq!(run.ids().1, tick.ids().0);
        assert_eq!(batch.ids().1, run.ids().0);
        assert_eq!(payout.ids().1, batch.ids().0);
        assert_ne!(payout.ids().0, payout.ids().0, "each try is a span of its own");
        assert_eq!(tick.trace(), payout.trace());
        assert_ne!(tick.trace(), Span { run: 43, ..tick.clone() }.trace());
        assert_ne!(run.ids().0, span(Work::Run, 6).ids().0, "the work of another term");
    }

    #[test]
    fn what_finds_no_room_is_counted_and_waits_for_nothing() {
        let metrics = Arc::new(Metrics::new(Labels::default()).expect("metrics"));
        let (traces, export) = traces("http://127.0.0.1:1", "r1", &metrics);
        for _ in 0..QUEUE + 3 {
            traces.note(&span(Work::Tick, 1));
        }
        assert_eq!(export.queue.len(), QUEUE);
        let page = metrics.render(crate::telemetry::Observation::default);
        assert!(page.contains("bursar_trace_spans_dropped_total 3"), "{page}");
    }
}
