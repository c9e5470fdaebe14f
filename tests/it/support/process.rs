//! Owned child processes: none outlives the test process, each has its output in a file, every wait is bounded.
//!
//! A child dies with its owner by the kernel's parent-death signal, set by `setpriv` (so that no unsafe code is needed
//! here). That signal is tied to the *thread* that forked, so one thread, living as long as the process, forks them all. A
//! shell between looks whether the parent was still there once the signal was set. The janitor of [`super::scratch`] is
//! the second line.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, mpsc};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::scratch;
use super::wait::eventually_blocking;

/// How much of a log a failing test shows, in lines.
const TAIL: usize = 60;
/// How long a process that was sent SIGKILL may take to be gone. It is at once, unless the machine is thrashing.
const KILLED_WITHIN: Duration = Duration::from_secs(10);
/// How long a command that is run to its end may take. Some wait for a minute themselves.
const FINISHED_WITHIN: Duration = Duration::from_mins(2);

/// `$0` is the parent's process id: a shell whose parent is another was orphaned before its death signal was set. The
/// variables of the environment are set for the program alone, so that what is preloaded into it is not into the wrappers.
const ORPHAN_CHECK: &str = r#"[ "$PPID" = "$0" ] || exit 125; exec env -- "$@""#;

type Spawned = std::io::Result<Child>;
/// A request to the spawner: what to start, and where the answer goes.
type Request = (Command, mpsc::Sender<Spawned>);

/// Forks on the one thread whose end is the process's end.
fn spawn_on_the_spawner(command: Command) -> Spawned {
    static SPAWNER: OnceLock<Mutex<mpsc::Sender<Request>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (requests, inbox) = mpsc::channel::<Request>();
        std::thread::Builder::new()
            .name("spawner".into())
            .spawn(move || {
                for (mut command, answer) in inbox {
                    // An asker that is gone has panicked; its child is dropped unwaited and dies with this process.
                    answer.send(command.spawn()).ok();
                }
            })
            .expect("a thread can be started");
        Mutex::new(requests)
    });
    let (answer, outcome) = mpsc::channel();
    spawner.lock().expect("a send does not panic").send((command, answer)).expect("the spawner lives for ever");
    outcome.recv().expect("the spawner answers every request")
}

/// What to start, and how.
#[derive(Debug, Clone)]
pub struct Launch {
    name: String,
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    folder: Option<PathBuf>,
    user: Option<String>,
    keeps_to_modes: bool,
    last_signal: Signal,
}

impl Launch {
    /// A program, under a name that logs and failures show.
    pub fn new(name: impl Into<String>, program: impl AsRef<OsStr>) -> Self {
        let program = program.as_ref().to_owned();
        Self {
            name: name.into(),
            program,
            args: Vec::new(),
            env: Vec::new(),
            folder: None,
            user: None,
            keeps_to_modes: false,
            last_signal: Signal::KILL,
        }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// One more variable of the environment, which is otherwise this process's.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((key.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// More variables.
    #[must_use]
    pub fn envs(mut self, variables: &[(String, String)]) -> Self {
        self.env.extend(variables.iter().map(|(key, value)| (key.into(), value.into())));
        self
    }

    /// The working folder; it must lie in the scratch folder. Without one the log's folder is it.
    #[must_use]
    pub fn folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// Runs it as that user where this process is root; otherwise as who we are.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        self.user = Some(user.to_owned());
        self
    }

    /// Holds it to the modes of files, which root may otherwise pass over.
    #[must_use]
    pub fn keeps_to_modes(mut self) -> Self {
        self.keeps_to_modes = true;
        self
    }

    /// For a server that leaves things behind in the kernel when it is killed: the signal by which it ends at once, but in
    /// order. It is what it gets when dropped or orphaned, with SIGKILL after it where it does not end.
    #[must_use]
    pub fn ends_at_once_by_quit(mut self) -> Self {
        self.last_signal = Signal::QUIT;
        self
    }

    fn command(&self, default_folder: &Path) -> Command {
        let mut command = Command::new("setpriv");
        if let Some(user) = &self.user
            && rustix::process::geteuid().is_root()
        {
            command.args(["--reuid", user, "--regid", user, "--init-groups"]);
        }
        if self.keeps_to_modes && rustix::process::geteuid().is_root() {
            command.args(["--bounding-set", "-dac_override,-dac_read_search"]);
        }
        let death = if self.last_signal == Signal::QUIT { "QUIT" } else { "KILL" };
        command
            .args(["--pdeathsig", death, "--", "sh", "-c", ORPHAN_CHECK])
            .arg(std::process::id().to_string())
            .args(self.env.iter().map(|(key, value)| [key.as_os_str(), value.as_os_str()].join(OsStr::new("="))))
            .arg(&self.program)
            .args(&self.args)
            .current_dir(self.folder.as_deref().unwrap_or(default_folder))
            .process_group(0)
            .stdin(Stdio::null());
        command
    }

    /// Starts it, its output going to a file.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(self) -> Process {
        let folder = scratch::folder(&self.name);
        let log = folder.join("log");
        let output = File::create(&log).expect("the folder is new");
        let mut command = self.command(&folder);
        command.stdout(output.try_clone().expect("a descriptor can be doubled")).stderr(output);
        let child = spawn_on_the_spawner(command).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let pid = Pid::from_child(&child);
        Process { name: self.name, pid, child: Mutex::new(child), log, last_signal: self.last_signal }
    }

    /// Runs it to its end, at most two minutes, and gives status and output.
    ///
    /// # Panics
    /// When it cannot be started or does not end.
    pub fn finish(self) -> Finished {
        self.finish_within(FINISHED_WITHIN)
    }

    /// Runs it to its end within a time.
    ///
    /// # Panics
    /// When it cannot be started or does not end.
    pub fn finish_within(self, within: Duration) -> Finished {
        let folder = scratch::folder(&self.name);
        let (stdout, stderr) = (folder.join("stdout"), folder.join("stderr"));
        let mut command = self.command(&folder);
        command
            .stdout(File::create(&stdout).expect("the folder is new"))
            .stderr(File::create(&stderr).expect("the folder is new"));
        let child = spawn_on_the_spawner(command).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let pid = Pid::from_child(&child);
        let process =
            Process { name: self.name, pid, child: Mutex::new(child), log: stderr.clone(), last_signal: Signal::KILL };
        let status = process.wait(within);
        Finished { name: process.name.clone(), status, stdout: read(&stdout), stderr: read(&stderr) }
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// A command that has ended.
#[derive(Debug)]
pub struct Finished {
    /// What it was called.
    pub name: String,
    /// How it ended.
    pub status: ExitStatus,
    /// All it wrote to standard output.
    pub stdout: String,
    /// All it wrote to standard error.
    pub stderr: String,
}

impl Finished {
    /// Its exit code; `None` where a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Itself, where it succeeded.
    ///
    /// # Panics
    /// Where it did not, with its output.
    pub fn ok(self) -> Self {
        assert!(self.status.success(), "{}: {}\n{}\n{}", self.name, self.status, self.stdout, self.stderr);
        self
    }

    /// What it wrote, read as JSON.
    ///
    /// # Panics
    /// Where it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{}: no JSON: {error}\n{}\n{}", self.name, self.stdout, self.stderr))
    }
}

/// A child that is ours until it is dropped, and gone then. A panicking test shows the end of its log.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: Pid,
    child: Mutex<Child>,
    log: PathBuf,
    last_signal: Signal,
}

impl Process {
    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Its name in failures.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id, also that of its process group.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends a signal; one that has ended meanwhile is left alone. It is not waited for before it is asked for, so the id
    /// is never another process's.
    pub fn signal(&self, signal: Signal) {
        let mut child = self.child();
        if matches!(child.try_wait(), Ok(None)) {
            kill_process(self.pid, signal).unwrap_or_else(|error| panic!("{}: {signal:?}: {error}", self.name));
        }
    }

    /// SIGSTOP, and sees it stopped.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        eventually_blocking(Duration::from_secs(5), "the process is stopped", || {
            matches!(self.state(), None | Some('T' | 'Z')).then_some(())
        });
    }

    /// SIGCONT.
    pub fn cont(&self) {
        self.signal(Signal::CONT);
    }

    /// SIGTERM.
    pub fn term(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGKILL to it and its group, and waits until it is gone.
    pub fn kill(&self) -> ExitStatus {
        {
            let mut child = self.child();
            if matches!(child.try_wait(), Ok(None)) {
                // Its group is gone only where it has ended since; then there is nothing to kill.
                kill_process_group(self.pid, Signal::KILL).ok();
            }
        }
        self.wait(KILLED_WITHIN)
    }

    /// Sends the signal by which it ends at once but in order, and gives it the time for that.
    fn end_in_order(&self) {
        self.cont();
        self.signal(self.last_signal);
        let until = bursar::clock::boottime() + KILLED_WITHIN;
        while self.is_running() && bursar::clock::boottime() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.child().try_wait().unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Whether it has not ended (a stopped one counts as running).
    pub fn is_running(&self) -> bool {
        self.ended().is_none()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it has not ended in time, with the end of its log.
    pub fn wait(&self, within: Duration) -> ExitStatus {
        let until = bursar::clock::boottime() + within;
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(
                bursar::clock::boottime() < until,
                "{} has not ended within {within:?}; its log ends:\n{}",
                self.name,
                self.log_tail(TAIL)
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The kernel's letter for its state (R, S, D, T, Z); `None` where it is gone.
    pub fn state(&self) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    }

    /// How many threads it has; 0 where it is gone.
    pub fn threads(&self) -> usize {
        fs::read_dir(format!("/proc/{}/task", self.pid())).map_or(0, Iterator::count)
    }

    /// How many descriptors it has open; 0 where it is gone.
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).map_or(0, Iterator::count)
    }

    /// Resident memory in kilobytes; 0 where it is gone.
    pub fn resident_kb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    /// All that it has written.
    pub fn log(&self) -> String {
        read(&self.log)
    }

    /// The last lines that it has written.
    pub fn log_tail(&self, lines: usize) -> String {
        let log = self.log();
        let all: Vec<&str> = log.lines().collect();
        all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
    }
}

impl Drop for Process {
    #[expect(clippy::print_stderr, reason = "a failing test shows what its processes said; the harness captures it")]
    fn drop(&mut self) {
        let ended = self.child().try_wait().ok().flatten();
        if ended.is_none() {
            if self.last_signal != Signal::KILL {
                self.end_in_order();
            }
            kill_process_group(self.pid, Signal::KILL).ok();
            self.child().wait().ok();
        }
        // What the false clock's library leaves in the kernel under the process's id.
        for name in ["faketime_shm", "sem.faketime_sem"] {
            fs::remove_file(format!("/dev/shm/{name}_{}", self.pid())).ok();
        }
        if std::thread::panicking() {
            let how = ended.map_or_else(|| "was running".to_owned(), |status| status.to_string());
            eprintln!("--- {} ({how}), log ends:\n{}\n---", self.name, self.log_tail(TAIL));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::orphans::alive;
    use super::*;

    #[test]
    fn a_process_is_stopped_continued_and_ended() {
        let process = Launch::new("sleeper", "sleep").arg("600").start();
        process.stop();
        assert_eq!(process.state(), Some('T'));
        process.cont();
        process.term();
        let status = process.wait(Duration::from_secs(5));
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
        assert!(!process.is_running());
        process.kill();
    }

    #[test]
    fn a_dropped_process_is_gone_with_its_children_even_where_it_was_stopped() {
        let process = Launch::new("parent", "sh").args(["-c", "sleep 600 & echo $!; wait"]).start();
        let child: i32 =
            eventually_blocking(Duration::from_secs(5), "the child is there", || process.log().trim().parse().ok());
        let parent = process.pid();
        process.stop();
        drop(process);
        eventually_blocking(Duration::from_secs(5), "both are gone", || {
            (!alive(parent) && !alive(child)).then_some(())
        });
    }

    #[test]
    fn a_command_gives_its_status_and_both_outputs() {
        let run = Launch::new("speaker", "sh").args(["-c", "echo \"$WHO\"; echo err >&2; exit 7"]).env("WHO", "me");
        let finished = run.finish();
        assert_eq!((finished.code(), &*finished.stdout, &*finished.stderr), (Some(7), "me\n", "err\n"));
    }
}
