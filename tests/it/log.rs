//! Whatever becomes of its log, a replica runs, and leaves when it is told to.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::support::ports::free_port;
use super::support::process::Launch;
use super::support::replica::BINARY;
use super::support::{eventually_blocking, scratch};

/// For a start or an end on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// A replica alone on a file, ended with its owner.
struct Replica {
    child: Child,
    port: u16,
}

impl Replica {
    fn start(log: impl Into<Stdio>) -> Self {
        let (folder, port) = (scratch::folder("log"), free_port());
        let config = format!(
            "schedule = \"schedule.toml\"\n[coordinator]\nkind = \"database\"\n[database]\nurl = \"sqlite://bursar.db\"\n\
             [http]\nlisten = \"127.0.0.1:{port}\"\n[log]\nformat = \"text\"\nlevel = \"debug\"\n"
        );
        let job = "[[job]]\nname = \"by-hand\"\ncron = \"0 0 29 2 *\"\nhandler = \"ledger\"\n";
        std::fs::write(folder.join("bursar.toml"), config).expect("writable");
        std::fs::write(folder.join("schedule.toml"), job).expect("writable");
        Launch::new("log-migrates", BINARY).folder(&folder).args(["migrate"]).finish().ok();
        let mut command = Command::new(BINARY);
        command.arg("run").current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Self { child: command.spawn().expect("it can be started"), port }
    }

    /// Leads (or could), is told to leave, and does.
    fn serves_and_leaves(mut self) {
        eventually_blocking(SOON, "the replica is ready", || {
            assert_eq!(self.child.try_wait().expect("asked"), None, "it ended");
            self.is_ready().then_some(())
        });
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("it lives");
        let status: ExitStatus =
            eventually_blocking(SOON, "the replica leaves", || self.child.try_wait().expect("asked"));
        assert_eq!(status.code(), Some(0));
    }

    fn is_ready(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let mut answer = String::new();
        let asked = stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        asked.and_then(|()| stream.read_to_string(&mut answer)).is_ok() && answer.starts_with("HTTP/1.1 200")
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // It has ended, or the test has failed.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn to(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).expect("it is there")
}

#[test]
fn a_replica_runs_and_leaves_while_the_disk_under_its_log_is_full() {
    Replica::start(to(Path::new("/dev/full"))).serves_and_leaves();
}

#[test]
fn a_replica_runs_and_leaves_after_the_reader_of_its_log_has_gone() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    Replica::start(writer).serves_and_leaves();
}

#[test]
fn a_replica_runs_and_leaves_while_nobody_empties_the_pipe_of_its_log() {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    fcntl_setfl(&writer, OFlags::NONBLOCK).expect("set");
    while writer.write(&[b'x'; 4096]).is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).expect("set");
    Replica::start(writer).serves_and_leaves();
    drop(reader);
}

#[test]
fn a_replica_runs_and_leaves_on_a_terminal_and_writes_no_colours() {
    let mut terminal = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal"));
    grantpt(&terminal).expect("granted");
    unlockpt(&terminal).expect("unlocked");
    let name = ptsname(&terminal, Vec::new()).expect("a name").into_string().expect("text");
    Replica::start(to(Path::new(&name))).serves_and_leaves();
    let mut said = vec![0; 4096];
    let length = terminal.read(&mut said).expect("something was said");
    let said = String::from_utf8_lossy(&said[..length]).into_owned();
    assert!(said.contains("INFO") && !said.contains('\x1b') && !said.contains("panicked"), "{said}");
}
