//! What these tests share: leave that is given or not, servers that speak raw bytes, and one try at a receiver.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bursar::clock::boottime;
use bursar::domain::Term;
use bursar::domain::outside::ReceiverDefinition;
use bursar::settlement::http::{Receiver, Request, StoreTime, Verdict};
use bursar::settlement::{Departure, Fence, Leave, NotSent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Gives leave, or does not; counts how often it was asked.
#[derive(Debug, Default)]
pub struct Gate {
    pub shut: bool,
    pub asked: AtomicUsize,
}

#[async_trait]
impl Leave for Gate {
    async fn leave(&self) -> Result<(), NotSent> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.shut { Err(NotSent) } else { Ok(()) }
    }
}

/// Leave that is given.
pub fn open() -> Departure {
    Departure::new(Arc::new(Gate::default()))
}

/// Leave that is refused.
pub fn shut() -> Departure {
    Departure::new(Arc::new(Gate { shut: true, ..Gate::default() }))
}

pub fn fence(term: i64) -> Fence {
    Fence { term: Term::new(term).expect("not negative"), scope: "deployment/settlement".to_owned() }
}

/// The bytes of a payout.
pub fn payout(key: &str) -> Vec<u8> {
    let body = serde_json::json!({
        "key": key, "merchant": "m-1", "amount": "109.00", "amount_minor": "10900", "currency": "EUR",
    });
    body.to_string().into_bytes()
}

pub fn definition(url: &str, idempotent: bool) -> ReceiverDefinition {
    ReceiverDefinition {
        url: url.to_owned(),
        idempotent,
        key_valid_for: Duration::from_hours(20),
        refusals: [422].into(),
        max_refusals: 20,
        not_done: [].into(),
        timeout: Duration::from_millis(1500),
        secret_files: Vec::new(),
        tls_ca: None,
        lookup_url: None,
        max_per_second: None,
        max_in_flight: 16,
    }
}

pub fn receiver(url: &str, idempotent: bool) -> Receiver {
    Receiver::new(definition(url, idempotent)).expect("a receiver")
}

pub fn store_time() -> StoreTime {
    StoreTime { store: bursar::clock::wall(), at: boottime() }
}

/// One try with key `k` under term 7.
pub async fn try_once(receiver: &Receiver, departure: &Departure) -> Verdict {
    try_key(receiver, departure, "k", 7).await
}

pub async fn try_key(receiver: &Receiver, departure: &Departure, key: &str, term: i64) -> Verdict {
    let (body, fence) = (payout(key), fence(term));
    let request =
        Request { key, body: &body, fence: &fence, in_doubt: false, store_time: store_time(), not_after: None };
    receiver.send(&request, departure).await
}

/// A server of raw bytes: what it does with each connection is up to the test. Dropped, it is gone.
pub struct Raw {
    pub url: String,
    pub connections: Arc<AtomicUsize>,
    _server: JoinSet<()>,
}

impl Raw {
    pub async fn start<F>(each: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let url = format!("http://{}/payouts", listener.local_addr().expect("bound"));
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let mut server = JoinSet::new();
        server.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                open.spawn(each(stream));
            }
        });
        Self { url, connections, _server: server }
    }

    /// One that reads a request and then says `text`, and closes.
    pub async fn saying(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::start(move |mut stream| {
            let text = text.clone();
            async move {
                read_request(&mut stream).await;
                // The other side may have gone.
                let _ = stream.write_all(text.as_bytes()).await;
            }
        })
        .await
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Reads head and body of one request; what there was of it.
pub async fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0) {
                return bytes;
            }
        }
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return bytes,
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
        }
    }
}
