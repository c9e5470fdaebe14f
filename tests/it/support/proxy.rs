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
use std::sync::atomic::{AtomicU64, Ordering};
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

/// What one read takes from a connection.
const CHUNK: usize = 64 * 1024;

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
        let line = Line { requests: Flow::Pass, answers: Flow::Pass, refuse: false, era: 0, closed: false };
        let (line, watching) = watch::channel(line);
        let counts = Arc::new(Counts::default());
        runtime().spawn(serve(port, target, watching, Arc::clone(&counts)));
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
        self.line.send_modify(|line| (line.requests, line.answers, line.refuse) = (Flow::Pass, Flow::Pass, false));
        self.wait_listening(true);
    }

    /// Ends all connections with RST; what was held is lost. New ones are treated as before.
    pub fn reset(&self) {
        self.line.send_modify(|line| line.era += 1);
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
async fn until(line: &mut watch::Receiver<Line>, wanted: impl FnMut(&Line) -> bool) -> bool {
    // The reference that it gives is let go here: held on, it would lock the line.
    line.wait_for(wanted).await.is_ok()
}

async fn serve(port: u16, target: u16, mut line: watch::Receiver<Line>, counts: Arc<Counts>) {
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
                    connections.spawn(connection(client, target, line.clone(), Arc::clone(&counts)));
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

async fn connection(client: TcpStream, target: u16, line: watch::Receiver<Line>, counts: Arc<Counts>) {
    counts.open.fetch_add(1, Ordering::SeqCst);
    let era = line.borrow().era;
    let ends = relay(client, target, line, era, &counts).await;
    for stream in ends {
        // Not told so, the kernel would end them in good order.
        stream.set_zero_linger().ok();
    }
    counts.open.fetch_sub(1, Ordering::SeqCst);
}

/// Passes bytes until both directions have ended (gives nothing) or the connection is to be reset (gives its ends).
async fn relay(
    client: TcpStream,
    target: u16,
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
    let requests = pump(from_client, to_server, line.clone(), era, |line| line.requests, &counts.requests);
    let answers = pump(from_server, to_client, line, era, |line| line.answers, &counts.answers);
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

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut line: watch::Receiver<Line>,
    era: u64,
    flow: impl Fn(&Line) -> Flow,
    count: &AtomicU64,
) -> (OwnedReadHalf, OwnedWriteHalf, Ended) {
    let mut reset = line.clone();
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
            let Ok(()) = to.write_all(chunk.get(..length).unwrap_or_default()).await else {
                return Ended::Broken;
            };
            count.fetch_add(length as u64, Ordering::SeqCst);
        }
    };
    let ended = tokio::select! {
        biased;
        _ = until(&mut reset, |line| line.era > era) => Ended::Broken,
        ended = pass => ended,
    };
    (from, to, ended)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    /// A server that sends back what it gets, for as long as the test lives.
    async fn echo(tasks: &mut JoinSet<()>) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback");
        let port = listener.local_addr().expect("it is bound").port();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                connections.spawn(async move {
                    let (mut from, mut to) = stream.split();
                    tokio::io::copy(&mut from, &mut to).await.ok();
                });
            }
        });
        port
    }

    async fn ask(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<Vec<u8>> {
        stream.write_all(text).await?;
        let mut answer = vec![0; text.len()];
        tokio::time::timeout(Duration::from_millis(300), stream.read_exact(&mut answer))
            .await
            .map_err(|_| ErrorKind::TimedOut)??;
        Ok(answer)
    }

    async fn connect(proxy: &Proxy) -> std::io::Result<TcpStream> {
        TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).await
    }

    #[tokio::test]
    async fn what_is_sent_over_a_cut_line_arrives_late_and_nobody_is_told() {
        let mut tasks = JoinSet::new();
        let proxy = Proxy::to(echo(&mut tasks).await);
        let mut stream = connect(&proxy).await.expect("it listens");
        assert_eq!(ask(&mut stream, b"one").await.expect("the line is whole"), b"one");
        proxy.cut();
        let mut fresh = connect(&proxy).await.expect("the kernel accepts");
        assert_eq!(ask(&mut stream, b"two").await.expect_err("cut").kind(), ErrorKind::TimedOut);
        assert_eq!(ask(&mut fresh, b"new").await.expect_err("cut").kind(), ErrorKind::TimedOut);
        proxy.heal();
        for (stream, text) in [(&mut stream, b"two"), (&mut fresh, b"new")] {
            let mut late = [0; 3];
            stream.read_exact(&mut late).await.expect("the line is whole");
            assert_eq!(&late, text);
        }
        assert_eq!((proxy.accepted(), proxy.open()), (2, 2));
    }

    #[tokio::test]
    async fn an_answer_is_lost_whose_request_arrived() {
        let mut tasks = JoinSet::new();
        let proxy = Proxy::to(echo(&mut tasks).await);
        let mut stream = connect(&proxy).await.expect("it listens");
        ask(&mut stream, b"one").await.expect("the line is whole");
        proxy.cut_answers();
        let before = proxy.request_bytes();
        assert_eq!(ask(&mut stream, b"two").await.expect_err("cut").kind(), ErrorKind::TimedOut);
        assert_eq!((proxy.request_bytes() - before, proxy.answer_bytes()), (3, 3));
        proxy.reset();
        assert_eq!(stream.read(&mut [0; 1]).await.expect_err("reset").kind(), ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn a_refused_line_resets_what_is_open_and_is_taken_again_when_healed() {
        let mut tasks = JoinSet::new();
        let proxy = Proxy::to(echo(&mut tasks).await);
        let mut stream = connect(&proxy).await.expect("it listens");
        ask(&mut stream, b"one").await.expect("the line is whole");
        proxy.refuse();
        assert_eq!(stream.read(&mut [0; 1]).await.expect_err("reset").kind(), ErrorKind::ConnectionReset);
        assert_eq!(connect(&proxy).await.expect_err("refused").kind(), ErrorKind::ConnectionRefused);
        proxy.heal();
        let mut again = connect(&proxy).await.expect("it listens");
        assert_eq!(ask(&mut again, b"two").await.expect("the line is whole"), b"two");
    }

    #[tokio::test]
    async fn a_delay_counts_in_each_direction() {
        let mut tasks = JoinSet::new();
        let proxy = Proxy::to(echo(&mut tasks).await);
        let mut stream = connect(&proxy).await.expect("it listens");
        proxy.delay(Duration::from_millis(50));
        let before = bursar::clock::boottime();
        ask(&mut stream, b"one").await.expect("within the test's patience");
        assert!(bursar::clock::boottime().since(before) >= Duration::from_millis(100));
    }

    #[tokio::test]
    async fn an_orderly_end_passes() {
        let mut tasks = JoinSet::new();
        let proxy = Proxy::to(echo(&mut tasks).await);
        let mut stream = connect(&proxy).await.expect("it listens");
        stream.write_all(b"last words").await.expect("the line is whole");
        stream.shutdown().await.expect("the line is whole");
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.expect("no reset");
        assert_eq!(all, b"last words");
    }
}
