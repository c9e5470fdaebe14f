//! Bad clients of the read-only port: whatever they do, health is answered, memory is bounded, and the leader stays one.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::ELECTION;
use crate::support::cluster::IDLE;
use crate::support::{Cluster, Replica, Setup, holds_for, measured, repetitions};

/// A health check's own limit, as a kubelet's.
const ANSWERED: Duration = Duration::from_secs(1);
/// What a replica's memory may grow by, in kilobytes.
const GROWTH: u64 = 48 * 1024;
/// Connections of the siege in a plain run, and in a long one.
const FEW: usize = 500;
const ALL: usize = 10_000;

fn address(replica: &Replica) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, replica.http_port()).into()
}

async fn connected(to: SocketAddr) -> TcpStream {
    TcpStream::connect(to).await.expect("the port is open")
}

/// Everything that comes back for these bytes, until the other side closes or has been silent for a while.
async fn answer_to(to: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = connected(to).await;
    // The other side may have enough in the middle of it, and read no more.
    let _ = tokio::time::timeout(ANSWERED, stream.write_all(bytes)).await;
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(Ok(read @ 1..)) = tokio::time::timeout(ANSWERED, stream.read(&mut chunk)).await {
        answer.extend_from_slice(&chunk[..read]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Asks how a replica is, again and again, each time on a connection of its own; and how much memory it has.
struct Watch {
    stop: Arc<AtomicBool>,
    slowest_us: Arc<AtomicU64>,
    most_kb: Arc<AtomicU64>,
    asking: tokio::task::JoinSet<u64>,
    before_kb: u64,
}

impl Watch {
    fn start(replica: &Replica) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (slowest_us, most_kb) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let (to, pid, before_kb) = (address(replica), replica.pid(), replica.resident_kb());
        let (ended, slowest, most) = (Arc::clone(&stop), Arc::clone(&slowest_us), Arc::clone(&most_kb));
        let mut asking = tokio::task::JoinSet::new();
        asking.spawn(async move {
            let mut asked = 0;
            while !ended.load(Ordering::Relaxed) {
                let since = bursar::clock::boottime();
                let answer = tokio::time::timeout(ANSWERED, health(to)).await.expect("health is answered in time");
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                let took = bursar::clock::boottime().since(since);
                slowest.fetch_max(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
                most.fetch_max(resident_kb(pid), Ordering::Relaxed);
                asked += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            asked
        });
        Self { stop, slowest_us, most_kb, asking, before_kb }
    }

    async fn finish(self, what: &str) {
        self.stop.store(true, Ordering::Relaxed);
        let asked: u64 = self.asking.join_all().await.into_iter().sum();
        let (slowest, most) = (self.slowest_us.load(Ordering::Relaxed), self.most_kb.load(Ordering::Relaxed));
        let grown = most.saturating_sub(self.before_kb);
        measured(&format!(
            "bad_http {what}: /livez asked {asked} times, slowest {slowest} us; memory {} kB before, at most {most} kB",
            self.before_kb
        ));
        assert!(asked > 10, "{what}: {asked}");
        assert!(grown < GROWTH, "{what}: memory grew by {grown} kB");
    }
}

async fn health(to: SocketAddr) -> String {
    let mut stream = connected(to).await;
    let asked = stream.write_all(b"GET /livez HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").await;
    let mut answer = String::new();
    match (asked, stream.read_to_string(&mut answer).await) {
        (Ok(()), Ok(_)) => answer,
        (asked, read) => format!("{answer} {asked:?} {read:?}"),
    }
}

fn resident_kb(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// One leader, in its term.
async fn leader() -> (Cluster, f64) {
    let cluster = Setup::new(1, IDLE).start().await;
    let term = cluster.replica(0).wait_leads().await;
    (cluster, term)
}

/// Its lease was renewed on time all the while.
async fn assert_renewed(replica: &Replica, term: f64) {
    replica.assert_still_leads(term).await;
    let expiries = replica.metric("bursar_lease_expiries_total", &[]).await.expect("it answers");
    assert!(expiries < 0.5, "no lease was lost:\n{}", replica.log());
    let remaining = replica.metric("bursar_lease_remaining_seconds", &[("election", ELECTION)]).await;
    assert!(remaining > Some(1.0), "{remaining:?}");
    assert!(!replica.log().contains("renewal_failed"), "{}", replica.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_asks_for_more_than_to_read_is_refused_unread_and_what_is_no_request_is_closed() {
    let (cluster, term) = leader().await;
    let replica = cluster.replica(0);
    let (to, watch) = (address(replica), Watch::start(replica));
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "CONNECT"] {
        for path in ["/livez", "/status.json", "/nothing"] {
            let answer = answer_to(to, format!("{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await;
            // To CONNECT a path is no target.
            let refused = answer.starts_with("HTTP/1.1 405") && answer.to_lowercase().contains("allow: get, head");
            assert!(
                refused || (method == "CONNECT" && answer.starts_with("HTTP/1.1 400")),
                "{method} {path}: {answer}"
            );
        }
    }
    let head = answer_to(to, b"HEAD /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    // Bodies that nobody reads: said to be large, and sent.
    let large = vec![b'x'; 32 * 1024 * 1024];
    for method in ["POST", "GET"] {
        let mut request =
            format!("{method} /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n").into_bytes();
        request.extend_from_slice(&large);
        // The connection is closed on what is still being sent; an answer may be lost by that.
        let answer = answer_to(to, &request).await;
        let expected = if method == "GET" { "HTTP/1.1 200" } else { "HTTP/1.1 405" };
        assert!(answer.is_empty() || answer.starts_with(expected), "{method}: {answer}");
    }
    // Heads that are too large, in one line and in many.
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(1024 * 1024));
    let wide = format!("GET /livez HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "a".repeat(1024 * 1024));
    let many = format!("GET /livez HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(1000));
    for request in [&long, &wide, &many] {
        let answer = answer_to(to, request.as_bytes()).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{}: {answer}", &request[..20]);
    }
    let broken: [&[u8]; 9] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET\0/ HTTP/1.1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
        b"GET /livez HTTP/1.1\r\n: no name\r\n\r\n",
        b"\r\n\r\n\r\n\r\n",
        &[0xff; 4096],
    ];
    for request in broken {
        let answer = answer_to(to, request).await;
        assert!(!answer.starts_with("HTTP/1.1 5"), "{request:?}: {answer}");
    }
    watch.finish("broken requests").await;
    assert_renewed(replica, term).await;
}

/// Connections that never come to a request: silent, speaking slowly, half closed, or not reading what they asked for.
async fn besiege(to: SocketAddr, connections: usize, stop: Arc<AtomicBool>) -> JoinSet<()> {
    let mut siege = JoinSet::new();
    for n in 0..connections {
        let mut stream = connected(to).await;
        let stop = Arc::clone(&stop);
        siege.spawn(async move {
            // Each of these may fail: room is made for others by closing what goes on for long.
            match n % 4 {
                0 => {}
                1 => {
                    let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: ").await;
                    while !stop.load(Ordering::Relaxed) && stream.write_all(b"x").await.is_ok() {
                        tokio::time::sleep(Duration::from_millis(500)).await;
                    }
                }
                2 => {
                    let _ = stream.write_all(b"GET /met").await;
                    let _ = stream.shutdown().await;
                }
                _ => {
                    let asked = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(50);
                    let _ = stream.write_all(&asked).await;
                }
            }
            while !stop.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    }
    siege
}

/// Lets this process have as many descriptors as it may, and says how many.
fn descriptors() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wider = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Where it may not, what there is has to do.
    let _ = setrlimit(Resource::Nofile, wider);
    getrlimit(Resource::Nofile).current.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX)
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_hold_on_to_the_port_keep_nobody_else_out() {
    let (cluster, term) = leader().await;
    let replica = cluster.replica(0);
    let connections = repetitions("connections at once to a replica's port", FEW, ALL);
    let may = descriptors();
    assert!(may > connections + 1000, "{may} descriptors are too few for {connections} connections: ulimit -n");
    let watch = Watch::start(replica);
    let stop = Arc::new(AtomicBool::new(false));
    let since = bursar::clock::boottime();
    let siege = besiege(address(replica), connections, Arc::clone(&stop)).await;
    let came = bursar::clock::boottime().since(since);
    // Longer than a lease: who does not renew leads no more by then.
    holds_for(Duration::from_secs(6), "it leads on", async || {
        if replica.leads(ELECTION).await { Ok(()) } else { Err(replica.log()) }
    })
    .await;
    let open = replica.descriptors();
    watch.finish(&format!("{connections} connections, which came in {came:?}; {open} descriptors open")).await;
    assert!(open < bursar::web::MOST_CONNECTIONS + 100, "{open} descriptors");
    assert_renewed(replica, term).await;
    stop.store(true, Ordering::Relaxed);
    siege.join_all().await;
}
