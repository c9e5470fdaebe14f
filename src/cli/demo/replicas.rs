//! The replicas, each a process of its own: this program with `run`.
//!
//! Invariants:
//! - None outlives the demo. Dropped, all are killed; and each has the kernel kill it when the thread that started it is
//!   gone (`run --dies-with`), stopped or not, so that also a demo that is killed leaves none behind.
//! - One is waited for only here, so its process id is never another process's.
//! - Each has a process group of its own: a Ctrl-C on the terminal is the demo's to hear.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::world::World;
use crate::clock;
use crate::config::CONFIG_VARIABLE;

/// How often one that ends is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a stop may take to be seen: the kernel stops a process at once, unless it hangs in the disk.
const STOPPED_WITHIN: Duration = Duration::from_secs(2);

/// One replica.
#[derive(Debug)]
pub(super) struct Replica {
    id: String,
    child: Child,
    /// Whether its end is part of the story.
    may_end: bool,
}

/// All of them, also those that have ended.
#[derive(Debug)]
pub(super) struct Replicas {
    executable: PathBuf,
    folder: PathBuf,
    all: Vec<Replica>,
}

impl Replicas {
    /// None yet.
    pub(super) fn new(world: &World) -> io::Result<Self> {
        Ok(Self { executable: std::env::current_exe()?, folder: world.folder().to_owned(), all: Vec::new() })
    }

    /// Where a replica writes its log.
    pub(super) fn log(&self, id: &str) -> PathBuf {
        self.folder.join("logs").join(format!("{id}.log"))
    }

    /// Starts one more and answers its id. To be called from the process's first thread, which lives as long as it does.
    pub(super) fn start(&mut self) -> io::Result<String> {
        let id = format!("demo-{}", self.all.len() + 1);
        let log = File::create(self.log(&id))?;
        let mut command = Command::new(&self.executable);
        // The configuration of whoever runs the demo is not the demo's.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("BURSAR__") || name == CONFIG_VARIABLE {
                command.env_remove(name);
            }
        }
        let child = command
            .arg("--config")
            .arg(self.folder.join("bursar.toml"))
            .args(["run", "--dies-with"])
            .arg(std::process::id().to_string())
            .env("BURSAR__REPLICA__ID", &id)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()?;
        self.all.push(Replica { id: id.clone(), child, may_end: false });
        Ok(id)
    }

    fn replica(&mut self, id: &str) -> io::Result<&mut Replica> {
        let found = self.all.iter_mut().find(|replica| replica.id == id);
        found.ok_or_else(|| io::Error::other(format!("no replica {id} was started by this demo")))
    }

    /// SIGKILL, and waits until it is gone.
    pub(super) fn kill(&mut self, id: &str) -> io::Result<ExitStatus> {
        let replica = self.replica(id)?;
        replica.may_end = true;
        replica.child.kill()?;
        replica.child.wait()
    }

    /// SIGSTOP, and sees it stopped. Answers whether it stands still without a lock for writing on any file.
    pub(super) fn stop(&mut self, id: &str) -> io::Result<bool> {
        let replica = self.replica(id)?;
        let pid = Pid::from_child(&replica.child);
        kill_process(pid, Signal::STOP)?;
        let until = clock::boottime() + STOPPED_WITHIN;
        while !is_stopped(pid) {
            if clock::boottime() >= until {
                return Err(io::Error::other(format!(
                    "{id} was sent SIGSTOP and did not stop within {STOPPED_WITHIN:?}"
                )));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        let locks = std::fs::read_to_string("/proc/locks")?;
        Ok(!holds_a_write_lock(&locks, pid.as_raw_nonzero().get()))
    }

    /// SIGCONT.
    pub(super) fn wake(&mut self, id: &str) -> io::Result<()> {
        kill_process(Pid::from_child(&self.replica(id)?.child), Signal::CONT).map_err(Into::into)
    }

    /// SIGTERM: it is to hand over and leave.
    pub(super) fn ask_to_leave(&mut self, id: &str) -> io::Result<()> {
        let replica = self.replica(id)?;
        replica.may_end = true;
        kill_process(Pid::from_child(&replica.child), Signal::TERM).map_err(Into::into)
    }

    /// The replica that has ended without being asked to, and how.
    pub(super) fn fallen(&mut self) -> io::Result<Option<(String, ExitStatus)>> {
        for replica in &mut self.all {
            if !replica.may_end
                && let Some(status) = replica.child.try_wait()?
            {
                return Ok(Some((replica.id.clone(), status)));
            }
        }
        Ok(None)
    }

    /// How a replica has ended, if it has.
    pub(super) fn ended(&mut self, id: &str) -> io::Result<Option<ExitStatus>> {
        self.replica(id)?.child.try_wait()
    }

    /// Those that run.
    pub(super) fn running(&mut self) -> io::Result<Vec<String>> {
        let mut running = Vec::new();
        for replica in &mut self.all {
            if replica.child.try_wait()?.is_none() {
                running.push(replica.id.clone());
            }
        }
        Ok(running)
    }

    /// Asks all of them to leave, followers first, and waits for a while. What is left is killed when this is dropped.
    pub(super) async fn leave(&mut self, leader: Option<&str>, within: Duration) -> io::Result<()> {
        let running = self.running()?;
        let (leading, following): (Vec<&String>, Vec<&String>) =
            running.iter().partition(|id| Some(id.as_str()) == leader);
        for id in following.into_iter().chain(leading) {
            self.ask_to_leave(id)?;
        }
        let until = clock::boottime() + within;
        while !self.running()?.is_empty() && clock::boottime() < until {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// The last lines of a replica's log.
    pub(super) fn last_words(&self, id: &str, lines: usize) -> String {
        let log = read(&self.log(id));
        let all: Vec<&str> = log.lines().collect();
        all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
    }

    /// Whether a replica's log has a line with all of these.
    pub(super) fn has_said(&self, id: &str, words: &[&str]) -> bool {
        read(&self.log(id)).lines().any(|line| words.iter().all(|word| line.contains(word)))
    }
}

impl Drop for Replicas {
    fn drop(&mut self) {
        for replica in &mut self.all {
            // One that has ended already cannot be killed, which is as well.
            let _ended = replica.child.kill();
            let _status = replica.child.wait();
        }
    }
}

fn read(log: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned()
}

fn is_stopped(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 'Z']))
}

/// Whether a process holds a lock for writing on any file. SQLite takes one on the store for a write transaction and one on
/// the lease's file for a renewal, and holds none in between.
fn holds_a_write_lock(locks: &str, pid: i32) -> bool {
    let pid = pid.to_string();
    // `7: POSIX  ADVISORY  WRITE 4711 08:01:1234 120 120`; one that waits has `->` before its class.
    locks.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().skip(1).take(4).collect();
        matches!(words.as_slice(), ["POSIX" | "OFDLCK", _, "WRITE", holder] if *holder == pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_for_writing_is_told_from_the_others() {
        let locks = "1: POSIX  ADVISORY  READ 10 08:01:77 120 120\n\
                     2: POSIX  ADVISORY  WRITE 11 08:01:77 120 120\n\
                     3: FLOCK  ADVISORY  WRITE 12 08:01:77 0 EOF\n\
                     3: -> POSIX  ADVISORY  WRITE 13 08:01:77 120 120\n";
        let holds = |pid| holds_a_write_lock(locks, pid);
        assert!(holds(11));
        assert!(!holds(10), "for reading");
        assert!(!holds(12), "of another kind, which SQLite does not use");
        assert!(!holds(13), "waits for it");
        assert!(!holds(1), "part of a number");
    }

    #[test]
    fn dropped_replicas_are_gone() {
        let world = World::make(None).expect("made");
        let mut replicas = Replicas::new(&world).expect("an executable");
        let child = Command::new("sleep").arg("600").spawn().expect("started");
        let pid = child.id();
        replicas.all.push(Replica { id: "demo-1".to_owned(), child, may_end: false });
        assert!(replicas.stop("demo-1").expect("stopped"), "sleep locks nothing");
        drop(replicas);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
