//! A real etcd of one or three members on loopback, whose members can be killed, paused, wiped and set back.
//!
//! Members run without fsync: a test never pulls the plug of the machine, and what a killed process has written stays with
//! the kernel. Every call that manages members blocks, bounded in time.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use etcd_client::{Client, DeleteOptions, GetOptions, PutOptions};

use super::ports::{free_port, lent};
use super::process::{Launch, Process};
use super::scratch;
use super::wait::eventually_blocking;

/// Names the port of a member that another test process shares with this one.
pub const LENT: &str = "BURSAR_TEST_ETCD";

/// A member answers within a second; three that elect take two. The rest is for a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// One try at asking a member how it is.
const PROBE: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct Member {
    name: String,
    client_port: u16,
    peer_port: u16,
    data: PathBuf,
    process: Mutex<Option<Process>>,
}

impl Member {
    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A cluster; gone when dropped.
#[derive(Debug)]
pub struct Etcd {
    program: PathBuf,
    members: Vec<Member>,
    folder: PathBuf,
    /// Changed by a wipe, so that members never take each other for those of an earlier life.
    token: Mutex<u32>,
}

/// A copy of all members' data at one moment.
#[derive(Debug, Clone)]
pub struct EtcdSnapshot(PathBuf);

impl EtcdSnapshot {
    /// Removes it.
    pub fn discard(self) {
        scratch::remove(&self.0);
    }
}

impl Etcd {
    /// Starts a cluster of its own and waits until each member answers.
    ///
    /// # Panics
    /// When etcd is not installed or does not get ready.
    pub fn start(members: usize) -> Self {
        Self::start_program(PathBuf::from("etcd"), members)
    }

    /// As [`Self::start`], of version 3.5: Debian's is 3.4.
    ///
    /// # Panics
    /// When `scripts/test` has not brought it, or it does not get ready.
    pub fn start_3_5(members: usize) -> Self {
        let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/etcd-3.5/etcd");
        assert!(program.exists(), "{} is missing: scripts/test brings it", program.display());
        Self::start_program(program, members)
    }

    fn start_program(program: PathBuf, members: usize) -> Self {
        let folder = scratch::folder("etcd");
        let members = (0..members)
            .map(|index| Member {
                name: format!("etcd{index}"),
                client_port: free_port(),
                peer_port: free_port(),
                data: folder.join(format!("data{index}")),
                process: Mutex::new(None),
            })
            .collect();
        let etcd = Self { program, members, folder, token: Mutex::new(0) };
        etcd.start_all();
        etcd
    }

    /// The one member that all tests share which do not break it. Each uses a prefix of its own: [`fresh_prefix`].
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Etcd> = OnceLock::new();
        SHARED.get_or_init(|| lent(LENT).map_or_else(|| Self::start(1), Self::lent))
    }

    /// Another process's member, which it manages.
    fn lent(client_port: u16) -> Self {
        let (name, process) = ("etcd0".to_owned(), Mutex::new(None));
        let member = Member { name, client_port, peer_port: 0, data: PathBuf::new(), process };
        Self { program: PathBuf::new(), members: vec![member], folder: PathBuf::new(), token: Mutex::new(0) }
    }

    /// How many members there are.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// The members' ports for clients.
    pub fn ports(&self) -> Vec<u16> {
        self.members.iter().map(|member| member.client_port).collect()
    }

    /// The members' addresses for clients.
    pub fn endpoints(&self) -> Vec<String> {
        self.ports().into_iter().map(|port| format!("http://127.0.0.1:{port}")).collect()
    }

    /// A client of the first member that answers.
    ///
    /// # Panics
    /// When none does.
    pub async fn client(&self) -> Client {
        for index in 0..self.size() {
            if let Ok(Ok(mut client)) = tokio::time::timeout(PROBE, self.try_client_of(index)).await
                && matches!(tokio::time::timeout(PROBE, client.get("/", None)).await, Ok(Ok(_)))
            {
                return client;
            }
        }
        panic!("no member of etcd answers");
    }

    /// A client of that member alone.
    ///
    /// # Panics
    /// When it cannot be reached.
    pub async fn client_of(&self, index: usize) -> Client {
        self.try_client_of(index).await.unwrap_or_else(|error| panic!("etcd member {index}: {error}"))
    }

    async fn try_client_of(&self, index: usize) -> Result<Client, etcd_client::Error> {
        Client::connect([format!("http://127.0.0.1:{}", self.members[index].client_port)], None).await
    }

    /// The value of a key.
    pub async fn get(&self, key: &str) -> Option<String> {
        let answer = self.client().await.get(key, None).await.expect("etcd answers");
        answer.kvs().first().map(|pair| String::from_utf8_lossy(pair.value()).into_owned())
    }

    /// All keys below a prefix with their values and the leases that they hang on (0: none).
    pub async fn list(&self, prefix: &str) -> Vec<(String, String, i64)> {
        let options = GetOptions::new().with_prefix();
        let answer = self.client().await.get(prefix, Some(options)).await.expect("etcd answers");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        answer.kvs().iter().map(|pair| (text(pair.key()), text(pair.value()), pair.lease())).collect()
    }

    /// Writes a key by hand, on no lease.
    pub async fn put(&self, key: &str, value: &str) {
        self.client().await.put(key, value, None).await.expect("etcd answers");
    }

    /// Writes a key by hand on a lease, which may be another's.
    pub async fn put_on(&self, key: &str, value: &str, lease: i64) {
        let options = PutOptions::new().with_lease(lease);
        self.client().await.put(key, value, Some(options)).await.expect("etcd answers");
    }

    /// Deletes a key by hand; says whether it was there.
    pub async fn delete(&self, key: &str) -> bool {
        self.client().await.delete(key, None).await.expect("etcd answers").deleted() > 0
    }

    /// Deletes a key by hand, as far as a member answers at once; says whether it was there.
    pub async fn try_delete(&self, key: &str) -> Option<bool> {
        for index in 0..self.size() {
            let deleted = tokio::time::timeout(PROBE, async {
                let deleted = self.try_client_of(index).await?.delete(key, None).await?.deleted();
                Ok::<bool, etcd_client::Error>(deleted > 0)
            });
            if let Ok(Ok(deleted)) = deleted.await {
                return Some(deleted);
            }
        }
        None
    }

    /// Deletes all keys below a prefix, as a wipe of one deployment does; says how many.
    pub async fn delete_all(&self, prefix: &str) -> i64 {
        let options = DeleteOptions::new().with_prefix();
        self.client().await.delete(prefix, Some(options)).await.expect("etcd answers").deleted()
    }

    /// Revokes a lease behind its owner's back.
    pub async fn revoke(&self, lease: i64) {
        self.client().await.lease_revoke(lease).await.expect("etcd answers and knows the lease");
    }

    /// Which member leads the cluster, as raft sees it.
    ///
    /// # Panics
    /// When no living member knows, within the bound for getting ready.
    pub async fn raft_leader(&self) -> usize {
        let until = bursar::clock::boottime() + READY_WITHIN;
        while bursar::clock::boottime() < until {
            for index in 0..self.size() {
                let asked = tokio::time::timeout(PROBE, async {
                    let status = self.try_client_of(index).await?.status().await?;
                    let own = status.header().map_or(0, etcd_client::ResponseHeader::member_id);
                    Ok::<bool, etcd_client::Error>(own == status.leader())
                });
                if matches!(asked.await, Ok(Ok(true))) {
                    return index;
                }
            }
            tokio::time::sleep(super::wait::POLL).await;
        }
        panic!("no member of etcd leads");
    }

    /// SIGKILL to a member.
    pub fn kill(&self, index: usize) {
        // Dropping it kills it and waits for its end.
        drop(self.members[index].process().take());
    }

    /// SIGSTOP to a member: its connections stay open and nothing answers.
    pub fn pause(&self, index: usize) {
        self.with(index, Process::stop);
    }

    /// SIGCONT to a member.
    pub fn resume(&self, index: usize) {
        self.with(index, Process::cont);
    }

    fn with(&self, index: usize, act: impl FnOnce(&Process)) {
        act(self.members[index].process().as_ref().expect("the member runs"));
    }

    /// Starts a member again on its data, and waits until it answers, where the others let it.
    pub fn restart(&self, index: usize) {
        self.kill(index);
        self.launch(index);
        self.wait_ready(index);
    }

    /// Starts members again on their data, all at once, and waits until each answers: where they are the majority, none
    /// does before the others.
    pub fn restart_these(&self, members: &[usize]) {
        for index in members {
            self.kill(*index);
        }
        for index in members {
            self.launch(*index);
        }
        for index in members {
            self.wait_ready(*index);
        }
    }

    /// Kills all members.
    pub fn kill_all(&self) {
        for index in 0..self.size() {
            self.kill(index);
        }
    }

    /// Starts all members on what data there is.
    pub fn start_all(&self) {
        for index in 0..self.size() {
            self.launch(index);
        }
        for index in 0..self.size() {
            self.wait_ready(index);
        }
    }

    /// Kills all, removes all data and starts a new, empty cluster at the same addresses.
    pub fn wipe(&self) {
        self.kill_all();
        for member in &self.members {
            scratch::remove(&member.data);
        }
        *self.token.lock().expect("nobody panics while holding it") += 1;
        self.start_all();
    }

    /// Copies the data of all members while they hold still: what a crash at this moment would have left.
    pub fn snapshot(&self) -> EtcdSnapshot {
        let copy = scratch::folder("etcd-snapshot");
        for index in 0..self.size() {
            self.pause(index);
        }
        for member in &self.members {
            scratch::copy(&member.data, &copy.join(&member.name));
        }
        for index in 0..self.size() {
            self.resume(index);
        }
        EtcdSnapshot(copy)
    }

    /// Sets the cluster back to a snapshot: kills all, puts the data back, starts all.
    pub fn restore(&self, snapshot: &EtcdSnapshot) {
        self.kill_all();
        for member in &self.members {
            scratch::remove(&member.data);
            scratch::copy(&snapshot.0.join(&member.name), &member.data);
        }
        self.start_all();
    }

    fn launch(&self, index: usize) {
        let member = &self.members[index];
        let peers: Vec<String> =
            self.members.iter().map(|peer| format!("{}=http://127.0.0.1:{}", peer.name, peer.peer_port)).collect();
        let (client, peer) =
            (format!("http://127.0.0.1:{}", member.client_port), format!("http://127.0.0.1:{}", member.peer_port));
        let life = *self.token.lock().expect("nobody panics while holding it");
        let token = format!("cluster-{}-{life}", self.members[0].peer_port);
        let process = Launch::new(&member.name, &self.program)
            .args(["--name", &member.name, "--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &peers.join(","), "--initial-cluster-token", &token])
            .args(["--unsafe-no-fsync", "--logger", "zap", "--log-level", "warn", "--data-dir"])
            .arg(&member.data)
            .folder(&self.folder)
            .start();
        *member.process() = Some(process);
    }

    fn wait_ready(&self, index: usize) {
        let member = &self.members[index];
        eventually_blocking(READY_WITHIN, &format!("{} is healthy", member.name), || {
            self.with(index, |process| {
                assert!(process.is_running(), "{} has ended:\n{}", member.name, process.log_tail(40));
            });
            healthy(member.client_port).then_some(())
        });
    }
}

/// Asks a member over plain HTTP; only one that sees a leader says that it is healthy.
fn healthy(port: u16) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(PROBE))?;
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains(r#""health":"true""#))
}

/// A prefix that no other test of this process uses.
pub fn fresh_prefix() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    format!("/bursar/test-{}-{}", std::process::id(), NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_shared_member_keeps_keys_apart_by_prefix() {
        let etcd = Etcd::shared();
        let (mine, other) = (fresh_prefix(), fresh_prefix());
        etcd.put(&format!("{mine}/a"), "1").await;
        etcd.put(&format!("{other}/a"), "2").await;
        assert_eq!(etcd.list(&format!("{mine}/")).await, [(format!("{mine}/a"), "1".to_owned(), 0)]);
        assert!(etcd.delete(&format!("{mine}/a")).await);
        assert_eq!(etcd.get(&format!("{mine}/a")).await, None);
        assert_eq!(etcd.delete_all(&other).await, 1);
    }

    #[tokio::test]
    async fn three_members_survive_one_and_are_set_back_and_wiped() {
        let etcd = Etcd::start(3);
        etcd.put("/k", "old").await;
        let snapshot = etcd.snapshot();
        etcd.put("/k", "new").await;
        let leader = etcd.raft_leader().await;
        etcd.kill(leader);
        assert_ne!(etcd.raft_leader().await, leader);
        assert_eq!(etcd.get("/k").await.as_deref(), Some("new"));
        etcd.restart(leader);
        etcd.pause(0);
        assert!(!healthy(etcd.ports()[0]));
        etcd.resume(0);
        etcd.restore(&snapshot);
        assert_eq!(etcd.get("/k").await.as_deref(), Some("old"));
        etcd.wipe();
        assert_eq!(etcd.get("/k").await, None);
    }
}
