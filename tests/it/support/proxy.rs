//! A TCP proxy on loopback between one replica and one of its servers, whose line can be cut, delayed, reset and refused.
//!
//! *Cut* is what dropped packets are: connections stay open, nothing passes, nobody is told, not even of an end; new
//! connections are accepted by the kernel and then see nothing either. What was sent meanwhile is held, as a sender's kernel
//! holds what is not acknowledged, and arrives late when the line is whole again, unless the connection was reset before.
//! Each direction is cut by itself, so an answer can be lost while its request arrives.
//!
//! Proxies run on a runtime of their own, so that no blocking call of a test holds up a byte. One per (replica, server): one
//! replica alone can be cut off.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::ports::free_port;
use super::wait::eventually_blocking;

/// As the driver of PostgreSQL writes it, in either case.
const COMMIT: &[u8] = b"COMMIT";
/// What one read takes from a connection.
const CHUNK: usize = 64 * 1024;
/// How long after the client a server is reset.
const LAST_WORDS: Duration = Duration::from_millis(20);

/// What becomes of bytes in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// They pass.
    Pass,
    /// They are held, with the end of the connection too.
    Cut,
    /// They pass after that time.
    Delay(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    /// From the replica to the server.
    requests: Flow,
    /// From the server to the replica.
    answers: Flow,
    /// Whether new connections are refused.
    refuse: bool,
    /// Whether the server is not told of connections that were reset.
    half_open: bool,
    /// Raised by a reset; connections of a lower one end with RST.
    era: u64,
    /// The proxy is gone.
    closed: bool,
}

#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicU64,
    open: AtomicU64,
    requests: AtomicU64,
    answers: AtomicU64,
    listening: AtomicU64,
    /// How many more connections are to be reset behind their COMMIT.
    commits_to_reset: AtomicU64,
    /// Whether the answers are to be cut behind the next COMMIT.
    hold_commit: AtomicBool,
    /// Whether they were.
    holds_commit: AtomicBool,
}

/// The proxy; dropped, its connections are reset and its port is closed.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    line: watch::Sender<Line>,
    counts: Arc<Counts>,
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("proxy")
            .enable_all()
            .build()
            .expect("a runtime can be built")
    })
}

impl Proxy {
    /// A proxy to a port of loopback, which need not be listened on yet.
    ///
    /// # Panics
    /// When it cannot listen.
    pub fn to(target: u16) -> Self {
        let port = free_port();
        let line =
            Line { requests: Flow::Pass, answers: Flow::Pass, refuse: false, half_open: false, era: 0, closed: false };
        let (line, watching) = watch::channel(line);
        let counts = Arc::new(Counts::default());
        runtime().spawn(serve(port, target, line.clone(), watching, Arc::clone(&counts)));
        let proxy = Self { port, line, counts };
        proxy.wait_listening(true);
        proxy
    }

    /// Where it listens on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address as etcd's clients and HTTP have it.
    pub fn http(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Cuts both directions.
    pub fn cut(&self) {
        self.set(Flow::Cut, Flow::Cut);
    }

    /// Cuts what goes to the server.
    pub fn cut_requests(&self) {
        self.line.send_modify(|line| line.requests = Flow::Cut);
    }

    /// Cuts what comes from the server.
    pub fn cut_answers(&self) {
        self.line.send_modify(|line| line.answers = Flow::Cut);
    }

    /// Delays both directions, each by that time.
    pub fn delay(&self, time: Duration) {
        self.set(Flow::Delay(time), Flow::Delay(time));
    }

    /// Sets both directions.
    pub fn set(&self, requests: Flow, answers: Flow) {
        self.line.send_modify(|line| (line.requests, line.answers) = (requests, answers));
    }

    /// Makes the line whole: what was held passes, new connections are taken.
    pub fn heal(&self) {
        self.counts.commits_to_reset.store(0, Ordering::SeqCst);
        self.counts.hold_commit.store(false, Ordering::SeqCst);
        self.counts.holds_commit.store(false, Ordering::SeqCst);
        self.line.send_modify(|line| {
            (line.requests, line.answers) = (Flow::Pass, Flow::Pass);
            (line.refuse, line.half_open) = (false, false);
        });
        self.wait_listening(true);
    }

    /// Ends all connections with RST; what was held is lost. New ones are treated as before.
    pub fn reset(&self) {
        self.line.send_modify(|line| line.era += 1);
    }

    /// Ends all connections with RST towards the client alone: until the line is healed, the server takes them for open.
    /// New ones are treated as before.
    pub fn half_open(&self) {
        self.line.send_modify(|line| (line.era, line.half_open) = (line.era + 1, true));
    }

    /// Ends the next so many connections that hand over a COMMIT: the server gets it, the client gets RST for an answer.
    pub fn reset_after_commits(&self, connections: u64) {
        self.counts.commits_to_reset.store(connections, Ordering::SeqCst);
    }

    /// How many of these are still to come.
    pub fn commits_to_reset(&self) -> u64 {
        self.counts.commits_to_reset.load(Ordering::SeqCst)
    }

    /// Cuts the answers behind the next COMMIT: the server gets it, and nobody hears of it until the line is whole again.
    pub fn hold_behind_commit(&self) {
        self.counts.hold_commit.store(true, Ordering::SeqCst);
    }

    /// Whether a COMMIT has passed whose answer is held.
    pub fn holds_a_commit(&self) -> bool {
        self.counts.holds_commit.load(Ordering::SeqCst)
    }

    /// Ends all connections with RST and refuses new ones.
    pub fn refuse(&self) {
        self.line.send_modify(|line| (line.era, line.refuse) = (line.era + 1, true));
        self.wait_listening(false);
    }

    fn wait_listening(&self, wanted: bool) {
        eventually_blocking(Duration::from_secs(10), "the proxy's listener follows", || {
            ((self.counts.listening.load(Ordering::SeqCst) == 1) == wanted).then_some(())
        });
    }

    /// How many connections were ever taken.
    pub fn accepted(&self) -> u64 {
        self.counts.accepted.load(Ordering::SeqCst)
    }

    /// How many are open.
    pub fn open(&self) -> u64 {
        self.counts.open.load(Ordering::SeqCst)
    }

    /// How many bytes reached the server.
    pub fn request_bytes(&self) -> u64 {
        self.counts.requests.load(Ordering::SeqCst)
    }

    /// How many bytes came back from it.
    pub fn answer_bytes(&self) -> u64 {
        self.counts.answers.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.line.send_modify(|line| (line.era, line.closed) = (line.era + 1, true));
    }
}

/// Waits until the line is as wanted; `false` where that can no longer come to be.
async fn until<T>(line: &mut watch::Receiver<T>, wanted: impl FnMut(&T) -> bool) -> bool {
    // The reference that it gives is let go here: held on, it would lock the line.
    line.wait_for(wanted).await.is_ok()
}

async fn serve(port: u16, target: u16, set: watch::Sender<Line>, mut line: watch::Receiver<Line>, counts: Arc<Counts>) {
    let mut connections = JoinSet::new();
    while !line.borrow().closed {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.expect("the port is ours");
        counts.listening.store(1, Ordering::SeqCst);
        let mut changes = line.clone();
        loop {
            tokio::select! {
                biased;
                _ = until(&mut changes, |line| line.refuse || line.closed) => break,
                accepted = listener.accept() => {
                    let Ok((client, _)) = accepted else { continue };
                    counts.accepted.fetch_add(1, Ordering::SeqCst);
                    connections.spawn(connection(client, target, set.clone(), line.clone(), Arc::clone(&counts)));
                }
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
            }
        }
        drop(listener);
        counts.listening.store(0, Ordering::SeqCst);
        until(&mut line, |line| !line.refuse || line.closed).await;
    }
    while connections.join_next().await.is_some() {}
}

async fn connection(
    client: TcpStream,
    target: u16,
    set: watch::Sender<Line>,
    mut line: watch::Receiver<Line>,
    counts: Arc<Counts>,
) {
    counts.open.fetch_add(1, Ordering::SeqCst);
    let era = line.borrow().era;
    let mut ends = relay(client, target, &set, line.clone(), era, &counts).await.into_iter();
    if let Some(client) = ends.next() {
        // Not told so, the kernel would end it in good order.
        client.set_zero_linger().ok();
    }
    if let Some(server) = ends.next() {
        // What it was sent last is to be read before the end is.
        tokio::time::sleep(LAST_WORDS).await;
        until(&mut line, |line| !line.half_open || line.closed).await;
        server.set_zero_linger().ok();
    }
    counts.open.fetch_sub(1, Ordering::SeqCst);
}

/// Passes bytes until both directions have ended (gives nothing) or the connection is to be reset (gives its ends).
async fn relay(
    client: TcpStream,
    target: u16,
    set: &watch::Sender<Line>,
    mut line: watch::Receiver<Line>,
    era: u64,
    counts: &Counts,
) -> Vec<TcpStream> {
    let passes = |line: &Line| line.era > era || (line.requests != Flow::Cut && line.answers != Flow::Cut);
    if !until(&mut line, passes).await || line.borrow().era > era {
        return vec![client];
    }
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await else {
        return vec![client];
    };
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let broken = watch::Sender::new(false);
    let commits = Some((counts, set));
    let way = Way { flow: |line| line.requests, count: &counts.requests, commits };
    let requests = pump(from_client, to_server, line.clone(), era, way, &broken);
    let way = Way { flow: |line| line.answers, count: &counts.answers, commits: None };
    let answers = pump(from_server, to_client, line, era, way, &broken);
    let ((from_client, to_server, one), (from_server, to_client, other)) = tokio::join!(requests, answers);
    if one == Ended::Orderly && other == Ended::Orderly {
        return Vec::new();
    }
    let client = from_client.reunite(to_client).expect("two halves of one");
    let server = from_server.reunite(to_server).expect("two halves of one");
    vec![client, server]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Orderly,
    Broken,
}

/// One direction of one connection.
#[derive(Clone, Copy)]
struct Way<'a> {
    flow: fn(&Line) -> Flow,
    count: &'a AtomicU64,
    /// What is to be done behind a COMMIT, and the line, where it may carry one.
    commits: Option<(&'a Counts, &'a watch::Sender<Line>)>,
}

fn is_commit(bytes: &[u8]) -> bool {
    bytes.windows(COMMIT.len()).any(|word| word.eq_ignore_ascii_case(COMMIT))
}

impl Way<'_> {
    /// Whether these bytes are the last ones to pass.
    fn ends_with(&self, bytes: &[u8]) -> bool {
        let takes_one = |left: u64| left.checked_sub(1);
        self.commits.is_some_and(|(Counts { commits_to_reset: left, .. }, _)| {
            left.load(Ordering::SeqCst) > 0
                && is_commit(bytes)
                && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, takes_one).is_ok()
        })
    }

    /// Cuts the answers where these bytes are the COMMIT whose answer is to be held; called before they go.
    fn hold(&self, bytes: &[u8]) {
        let Some((counts, line)) = self.commits else { return };
        if counts.hold_commit.load(Ordering::SeqCst)
            && is_commit(bytes)
            && counts.hold_commit.swap(false, Ordering::SeqCst)
        {
            line.send_modify(|line| line.answers = Flow::Cut);
            counts.holds_commit.store(true, Ordering::SeqCst);
        }
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut line: watch::Receiver<Line>,
    era: u64,
    way: Way<'_>,
    broken: &watch::Sender<bool>,
) -> (OwnedReadHalf, OwnedWriteHalf, Ended) {
    let (mut reset, mut other_broken, flow) = (line.clone(), broken.subscribe(), way.flow);
    let pass = async {
        let mut chunk = vec![0; CHUNK];
        loop {
            if !until(&mut line, |line| flow(line) != Flow::Cut).await {
                return Ended::Broken;
            }
            let read = tokio::select! {
                biased;
                // Cut while waiting for bytes: they stay where they are.
                _ = until(&mut line, |line| flow(line) == Flow::Cut) => continue,
                read = from.read(&mut chunk) => read,
            };
            let Ok(length) = read else { return Ended::Broken };
            if let Flow::Delay(time) = { flow(&line.borrow()) } {
                tokio::time::sleep(time).await;
            }
            // Cut between the read and here: the bytes, or the end, are held.
            if !until(&mut line, |line| flow(line) != Flow::Cut).await {
                return Ended::Broken;
            }
            if length == 0 {
                to.shutdown().await.ok();
                return Ended::Orderly;
            }
            let bytes = chunk.get(..length).unwrap_or_default();
            way.hold(bytes);
            let last = way.ends_with(bytes);
            if last {
                // Before the bytes go: their answer is not to pass.
                broken.send_replace(true);
            }
            let Ok(()) = to.write_all(bytes).await else {
                return Ended::Broken;
            };
            way.count.fetch_add(length as u64, Ordering::SeqCst);
            if last {
                return Ended::Broken;
            }
        }
    };
    let ended = tokio::select! {
        biased;
        _ = until(&mut reset, |line| line.era > era) => Ended::Broken,
        _ = until(&mut other_broken, |broken| *broken), if way.commits.is_none() => Ended::Broken,
        ended = pass => ended,
    };
    (from, to, ended)
}

#[cfg(test)]
mod tests;
