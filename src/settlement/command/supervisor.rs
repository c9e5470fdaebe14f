//! The supervisor's side: a process of its own, without a runtime, that runs one order and leaves nothing behind.
//!
//! It runs in two steps of the same binary. `supervise` is the supervisor. What it starts is `supervise --execute`, which
//! makes a session of its own, asks the kernel to be killed when the supervisor dies, and becomes the program.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, set_child_subreaper, set_parent_process_death_signal,
    setsid, wait,
};

use tokio::signal::unix::{SignalKind, signal};

use super::tree::kill_descendants;
use super::wire::{Ended, Ending, MOST_LINE, MOST_OUTPUT, Order, deadline_of};
use crate::clock;
use crate::domain::Moment;

/// How often the time is looked at: the clock that counts through a suspend wakes nobody up.
const LOOK: Duration = Duration::from_millis(50);
/// How often a tree is killed anew while something of it is left.
const KILL_AGAIN: Duration = Duration::from_millis(5);
/// After so long of killing, what is left cannot be killed; the report is made without it.
const KILL_MOST: Duration = Duration::from_secs(10);
/// How long after the end of the tree its output may still come.
const OUTPUT_MOST: Duration = Duration::from_secs(1);

/// What happens to a supervisor.
enum Event {
    /// A new deadline.
    Deadline(Moment),
    /// The pipe from the replica has ended.
    Abandoned,
    /// A process of the tree was reaped.
    Reaped(Pid, WaitStatus),
    /// No process of the tree is left.
    NoneLeft,
}

/// Runs one order from standard input and reports on standard output.
///
/// # Errors
/// What kept it from being a supervisor at all. Nothing was started then.
pub fn supervise() -> Result<(), String> {
    outlive_signals().map_err(|error| format!("signals cannot be passed over: {error}"))?;
    set_child_subreaper(Some(getpid())).map_err(|error| format!("not the subreaper: {error}"))?;
    let mut input = BufReader::new(std::io::stdin());
    let mut line = String::new();
    let read = input.by_ref().take(MOST_LINE).read_line(&mut line);
    read.map_err(|error| format!("no order: {error}"))?;
    // Less than a line: leave was not given, or the replica is gone.
    let Some(order) = Order::of_line(&line) else { return Ok(()) };
    let ended = carry_out(order, input);
    let mut output = std::io::stdout();
    // Whoever does not read it any more does not need it.
    let _ = output.write_all(ended.to_line().as_bytes()).and_then(|()| output.flush());
    Ok(())
}

/// From here on a signal to end, which an init system sends to every process of a service, ends nothing: the pipe and the
/// deadline say when, and there is a tree to kill first. A handler that was registered once stays, without its runtime; what
/// is executed later has the signals' own meanings again.
fn outlive_signals() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let _passed_over = signal(kind)?;
    }
    Ok(())
}

fn carry_out(order: Order, control: impl BufRead + Send + 'static) -> Ended {
    if clock::boottime() >= order.deadline {
        return Ended::silent(Ending::NotBegun("the lease's deadline had passed".to_owned()));
    }
    // Whoever can say it on the way to the program has not become it.
    let proof = format!("not begun {:016x}{:016x}: ", clock::random_u64(), clock::random_u64());
    let mut child = match start(&order, &proof) {
        Ok(child) => child,
        Err(why) => return Ended::silent(Ending::NotBegun(why)),
    };
    let timeout_at = clock::boottime() + order.timeout;
    let (events, happened) = channel();
    let stdout = Output::read(child.stdout.take());
    let stderr = Output::read(child.stderr.take());
    feed(&mut child, order.input);
    let pid = Pid::from_child(&child);
    watch_control(control, events.clone());
    reap(events);
    let (ending, none_left) = attend(&happened, pid, order.deadline, timeout_at);
    if !none_left {
        kill_all(&happened);
    }
    let (stdout, stderr) = (stdout.kept(), stderr.kept());
    match not_begun(&ending, &stderr, &proof) {
        Some(why) => Ended::silent(Ending::NotBegun(why)),
        None => Ended { ending, stdout, stderr },
    }
}

/// Why the second step did not become the program, where it proves that: the program cannot be executed, say, or what it is to
/// be read by is missing.
fn not_begun(ending: &Ending, stderr: &[u8], proof: &str) -> Option<String> {
    if !matches!(ending, Ending::Exited(code) if *code != 0) {
        return None;
    }
    let text = String::from_utf8_lossy(stderr);
    let (_, why) = text.split_once(proof)?;
    Some(why.lines().next().unwrap_or_default().to_owned())
}

/// Starts the second step. Its standard streams are pipes; everything else is closed by then.
fn start(order: &Order, proof: &str) -> Result<Child, String> {
    let metadata = std::fs::metadata(&order.program).map_err(|error| format!("{}: {error}", order.program))?;
    if !metadata.is_file() {
        return Err(format!("{}: not a file", order.program));
    }
    Command::new("/proc/self/exe")
        .args(["supervise", "--execute", &getpid().as_raw_nonzero().to_string(), "--proof", proof])
        .args(["--", &order.program])
        .args(&order.args)
        .env_clear()
        .envs(&order.environment)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("no process: {error}"))
}

/// Becomes the program. Comes back only where that failed.
#[must_use]
pub fn execute(supervisor: i32, program: &str, args: &[String]) -> String {
    if let Err(error) = setsid() {
        return format!("no session of its own: {error}");
    }
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return format!("no signal at the supervisor's death: {error}");
    }
    // It may have died before the signal was asked for.
    if getppid().map(|parent| parent.as_raw_nonzero().get()) != Some(supervisor) {
        return "its supervisor is gone".to_owned();
    }
    let error = Command::new(program).args(args).exec();
    format!("{program}: {error}")
}

/// Waits for whatever ends the program. Answers also whether nothing of its tree is left.
fn attend(happened: &Receiver<Event>, program: Pid, mut deadline: Moment, timeout_at: Moment) -> (Ending, bool) {
    loop {
        let now = clock::boottime();
        if now >= deadline && !crate::mutant!("command.outlives-its-lease") {
            return (Ending::DeadlinePassed, false);
        }
        if now >= timeout_at {
            return (Ending::TimedOut, false);
        }
        let wait = LOOK.min(deadline.since(now)).min(timeout_at.since(now));
        match happened.recv_timeout(wait) {
            Ok(Event::Deadline(renewed)) => deadline = renewed,
            Ok(Event::Abandoned) if crate::mutant!("command.outlives-its-replica") => {}
            Ok(Event::Abandoned) => return (Ending::Abandoned, false),
            Ok(Event::Reaped(pid, status)) if pid == program => return (how(status), false),
            Ok(Event::Reaped(..)) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Event::NoneLeft) | Err(RecvTimeoutError::Disconnected) => return (Ending::NoReport, true),
        }
    }
}

fn how(status: WaitStatus) -> Ending {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Signalled(signal),
        (None, None) => Ending::NoReport,
    }
}

/// Kills what is left of the tree until nothing is.
fn kill_all(happened: &Receiver<Event>) {
    let until = clock::boottime() + KILL_MOST;
    // Most programs leave nothing behind, and that is said at once.
    let mut next = clock::boottime() + KILL_AGAIN / 5;
    loop {
        let now = clock::boottime();
        if now >= until {
            return;
        }
        match happened.recv_timeout(next.since(now)) {
            Ok(Event::NoneLeft) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(Event::Reaped(..) | Event::Deadline(_) | Event::Abandoned) => {}
            Err(RecvTimeoutError::Timeout) => {
                kill_descendants(getpid());
                next = clock::boottime() + KILL_AGAIN;
            }
        }
    }
}

/// Reaps the program and every orphan of its tree, until none is left.
fn reap(events: Sender<Event>) {
    thread::spawn(move || {
        loop {
            let event = match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) => Event::Reaped(pid, status),
                Ok(None) | Err(Errno::INTR) => continue,
                Err(_) => Event::NoneLeft,
            };
            let last = matches!(event, Event::NoneLeft);
            if events.send(event).is_err() || last {
                return;
            }
        }
    });
}

/// Hands on new deadlines, and the end of the pipe. Anything else on it is its end too.
fn watch_control(mut control: impl BufRead + Send + 'static, events: Sender<Event>) {
    thread::spawn(move || {
        loop {
            let mut line = String::new();
            let read = control.by_ref().take(MOST_LINE).read_line(&mut line);
            let event = match (read, deadline_of(&line)) {
                (Ok(_), Some(deadline)) => Event::Deadline(deadline),
                (Ok(_), None) | (Err(_), _) => Event::Abandoned,
            };
            let last = matches!(event, Event::Abandoned);
            if events.send(event).is_err() || last {
                return;
            }
        }
    });
}

/// Writes the input. A program need not read it.
fn feed(child: &mut Child, input: Vec<u8>) {
    if let Some(mut stdin) = child.stdin.take() {
        thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
    }
}

/// One of the program's outputs: read to its end, so that it never waits for us, and kept to a bound.
struct Output {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Output {
    fn read(stream: Option<impl Read + Send + 'static>) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (end, ended) = channel();
        if let Some(mut stream) = stream {
            let kept = Arc::clone(&kept);
            thread::spawn(move || {
                let mut chunk = [0; 8192];
                while let Ok(read) = stream.read(&mut chunk) {
                    if read == 0 {
                        break;
                    }
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    let free = MOST_OUTPUT.saturating_sub(kept.len());
                    kept.extend_from_slice(&chunk[..read.min(free)]);
                }
                drop(end);
            });
        }
        Self { kept, ended }
    }

    /// What was kept. The tree is gone, so that the end comes at once, unless the stream was handed to a stranger.
    fn kept(self) -> Vec<u8> {
        let _ = self.ended.recv_timeout(OUTPUT_MOST);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
