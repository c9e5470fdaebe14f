//! A collector of traces: OTLP over gRPC on loopback, that keeps every span it was sent.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use tonic::{Request, Response, Status};

/// A span as it came, with its attributes as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// What of.
    pub name: String,
    /// The trace.
    pub trace: Vec<u8>,
    /// Its own identity.
    pub id: Vec<u8>,
    /// Its parent's; empty for a root.
    pub parent: Vec<u8>,
    /// Nanoseconds from its begin to its end.
    pub took: u64,
    /// Its attributes, by name.
    pub attributes: std::collections::BTreeMap<String, String>,
}

/// What was sent so far.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<Seen>>>);

/// A collector; gone when it is dropped.
#[derive(Debug)]
pub struct Collector {
    kept: Kept,
    at: SocketAddr,
    runtime: Option<tokio::runtime::Runtime>,
}

fn text(value: Option<Value>) -> String {
    match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

fn seen(span: Span) -> Seen {
    let attributes = span.attributes.into_iter().map(|pair| (pair.key, text(pair.value.and_then(|value| value.value))));
    Seen {
        name: span.name,
        trace: span.trace_id,
        id: span.span_id,
        parent: span.parent_span_id,
        took: span.end_time_unix_nano - span.start_time_unix_nano,
        attributes: attributes.collect(),
    }
}

#[tonic::async_trait]
impl TraceService for Kept {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let scopes = request.into_inner().resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        let spans = scopes.flat_map(|scope| scope.spans).map(seen);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(spans);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    /// One that listens, on a thread of its own.
    ///
    /// # Panics
    /// When there is no port.
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        // The port is taken and given back: what asks for it at once is told where.
        let at = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|port| port.local_addr()).expect("a free port");
        let kept = Kept::default();
        let service = TraceServiceServer::new(kept.clone());
        runtime.spawn(tonic::transport::Server::builder().add_service(service).serve(at));
        Self { kept, at, runtime: Some(runtime) }
    }

    /// Where it is, for `[traces] endpoint`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.at)
    }

    /// Every span so far.
    pub fn spans(&self) -> Vec<Seen> {
        self.kept.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
