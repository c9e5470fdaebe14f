//! Processes of this host that hold a SQLite file: who they are, and how one that is stopped in a write transaction is ended.
//!
//! A process that was stopped (SIGSTOP, a debugger, a frozen cgroup) inside a write transaction keeps SQLite's write lock,
//! and with it every other process out, for as long as it is stopped. No time-out of SQLite's helps. Ending it does: the
//! kernel gives its locks back, and what it had not committed never happened.
//!
//! Invariants:
//! - Ended is only who wrote itself down in that very file, under this boot of the machine, with the start time that the
//!   process still has: a pid that another process has taken over meanwhile is never ended.
//! - The signal goes through a pidfd, opened before the start time is compared. So it cannot meet a later process.
//! - It is ended only after it was found to hold the lock at every look for a whole limit ([`Patience`]).
//! - The file is looked at by its path alone. Opening and closing it here would drop this process's own locks on it.
//!
//! Deliberately absent: knowing what is in the file (the adapters record and list their processes), and any log: whoever
//! calls says what was done.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::domain::Moment;

/// The byte of the `-shm` file that a writer of a file in WAL mode has locked.
const WAL_WRITE_LOCK: u64 = 120;
/// Where the start time stands in `/proc/PID/stat`, counted after the command: field 22 of all.
const START_TIME: usize = 19;
/// The longest command that is shown.
const MOST_COMMAND: usize = 200;

/// A process, so that it is not taken for another one with its pid.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessMark {
    /// Its pid, as this process sees it.
    pub pid: i32,
    /// The boot of the machine that it lives in.
    pub boot_id: String,
    /// When it started, in clock ticks after the boot.
    pub started: i64,
}

/// Who holds the write lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The process.
    pub mark: ProcessMark,
    /// Its command line, cut short, for people.
    pub command: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.mark.pid, self.command)
    }
}

/// What trying to end a holder came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It was sent SIGKILL; its locks are free as soon as it is gone.
    Ended,
    /// It is not among the recorded ones: left alone.
    NotRecorded,
    /// It is this process: left alone.
    Own,
    /// It had gone by itself.
    Gone,
}

/// The machine's boot: another one after each start of the kernel.
///
/// # Errors
/// `/proc` cannot be read.
pub fn boot_id() -> io::Result<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned())
}

impl ProcessMark {
    /// This process.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn own() -> io::Result<Self> {
        let pid = i32::try_from(std::process::id()).map_err(io::Error::other)?;
        Self::of(pid)?.ok_or_else(|| io::Error::other("/proc does not show this process"))
    }

    /// The process that has this pid now; `None` where there is none.
    ///
    /// # Errors
    /// `/proc` cannot be read, or holds what it never does.
    pub fn of(pid: i32) -> io::Result<Option<Self>> {
        let stat = match std::fs::read(format!("/proc/{pid}/stat")) {
            Ok(stat) => String::from_utf8_lossy(&stat).into_owned(),
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let started = start_time(&stat)
            .ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat has no start time in field 22")))?;
        Ok(Some(Self { pid, boot_id: boot_id()?, started }))
    }

    /// Whether the process still lives, as the same one.
    ///
    /// # Errors
    /// As [`ProcessMark::of`].
    pub fn lives(&self) -> io::Result<bool> {
        Ok(Self::of(self.pid)?.as_ref() == Some(self))
    }
}

/// A process that ends while its files are read: not there, or (ESRCH) gone since the file was opened.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// The start time in a line of `/proc/PID/stat`. The command in it may hold blanks and parentheses.
fn start_time(stat: &str) -> Option<i64> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(START_TIME)?.parse().ok()
}

/// Who holds the write lock of a SQLite file in WAL mode now; `None` where nobody (who can be seen from here) does.
///
/// # Errors
/// `/proc` cannot be read, or the file's `-shm` is not there.
pub fn write_lock_holder(database: &Path) -> io::Result<Option<Holder>> {
    let shm = std::fs::metadata(beside(database, "-shm"))?;
    let locks = std::fs::read_to_string("/proc/locks")?;
    let Some(pid) = writer(&locks, shm.dev(), shm.ino()) else { return Ok(None) };
    let Some(mark) = ProcessMark::of(pid)? else { return Ok(None) };
    Ok(Some(Holder { mark, command: command(pid) }))
}

/// A file's name with something at its end.
fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// The pid that has the write lock's byte of that file in `/proc/locks`. Some file systems show one device there and another
/// in `stat`: where no line has the device, the inode alone decides.
fn writer(locks: &str, device: u64, inode: u64) -> Option<i32> {
    let holds: Vec<(&str, i32)> = locks.lines().filter_map(|line| held(line, inode)).collect();
    let device = device_name(device);
    let exact = holds.iter().find(|(found, _)| *found == device);
    exact.or_else(|| holds.first()).map(|(_, pid)| *pid)
}

/// Device and pid of a line such as `7: POSIX  ADVISORY  WRITE 4711 08:01:1234 120 120`, where it is of that inode and of the
/// write lock. A line with `->` waits.
fn held(line: &str, inode: u64) -> Option<(&str, i32)> {
    let mut words = line.split_whitespace().skip(1);
    let (class, _, mode) = (words.next()?, words.next()?, words.next()?);
    let pid: i32 = words.next()?.parse().ok()?;
    let (device, found) = words.next()?.rsplit_once(':')?;
    let start: u64 = words.next()?.parse().ok()?;
    let end = words.next()?;
    let holds_byte = start <= WAL_WRITE_LOCK && (end == "EOF" || end.parse::<u64>().is_ok_and(|e| e >= WAL_WRITE_LOCK));
    let fits = class == "POSIX" && mode == "WRITE" && pid > 0 && holds_byte && found.parse() == Ok(inode);
    fits.then_some((device, pid))
}

/// A device as `/proc/locks` writes it.
fn device_name(device: u64) -> String {
    let major = ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff);
    let minor = (device & 0xff) | ((device >> 12) & !0xff);
    format!("{major:02x}:{minor:02x}")
}

fn command(pid: i32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
    let line = String::from_utf8_lossy(&words.join(&b' ')).into_owned();
    let line = if line.is_empty() { "command unknown".to_owned() } else { line };
    line.chars().filter(|sign| !sign.is_control()).take(MOST_COMMAND).collect()
}

/// Ends a holder, where it is one of the recorded processes and not this one.
///
/// # Errors
/// The system refuses: no right to signal it, no pidfd.
pub fn end(holder: &ProcessMark, recorded: &[ProcessMark]) -> io::Result<Ending> {
    if i32::try_from(std::process::id()) == Ok(holder.pid) {
        return Ok(Ending::Own);
    }
    if !recorded.contains(holder) {
        return Ok(Ending::NotRecorded);
    }
    let Some(pid) = Pid::from_raw(holder.pid) else { return Ok(Ending::NotRecorded) };
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(rustix::io::Errno::SRCH) => return Ok(Ending::Gone),
        Err(error) => return Err(error.into()),
    };
    // The pidfd is of whoever had the pid when it was opened: compared after that, and not before.
    if !holder.lives()? {
        return Ok(Ending::Gone);
    }
    match pidfd_send_signal(&process, Signal::KILL) {
        Ok(()) => Ok(Ending::Ended),
        Err(rustix::io::Errno::SRCH) => Ok(Ending::Gone),
        Err(error) => Err(error.into()),
    }
}

/// How long one and the same holder is put up with. Pure; each look is told to it.
#[derive(Debug, Clone)]
pub struct Patience {
    limit: Duration,
    seen: Option<(ProcessMark, Moment)>,
}

impl Patience {
    /// Patience for so long.
    #[must_use]
    pub const fn new(limit: Duration) -> Self {
        Self { limit, seen: None }
    }

    /// The lock was had: whoever held it before does so no more.
    pub fn lock_was_had(&mut self) {
        self.seen = None;
    }

    /// The lock was not had in time, and this holder was found. Says whether it is to be ended: the same process was found at
    /// every look for the whole limit.
    pub fn is_over(&mut self, holder: Option<&ProcessMark>, now: Moment) -> bool {
        let Some(holder) = holder else {
            self.seen = None;
            return false;
        };
        match &self.seen {
            Some((seen, since)) if seen == holder => now.since(*since) >= self.limit,
            Some(_) | None => {
                self.seen = Some((holder.clone(), now));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(pid: i32) -> ProcessMark {
        ProcessMark { pid, boot_id: "b".to_owned(), started: 1 }
    }

    fn at(secs: u64) -> Moment {
        Moment::after_boot(Duration::from_secs(secs))
    }

    #[test]
    fn a_start_time_is_found_behind_any_command() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20 21";
        assert_eq!(start_time(stat), Some(987_654));
        assert_eq!(start_time("42 (short) S 1"), None);
        let own = ProcessMark::own().expect("this process is in /proc");
        assert!(own.lives().expect("readable") && own.started > 0 && own.boot_id.len() == 36);
        let before = ProcessMark { started: own.started - 1, ..own };
        assert!(!before.lives().expect("readable"), "another process with that pid");
    }

    #[test]
    fn the_writer_is_who_holds_the_byte_of_that_file_for_writing() {
        let locks = "1: POSIX  ADVISORY  READ 10 08:01:77 120 120\n\
                     2: POSIX  ADVISORY  WRITE 11 08:01:78 120 120\n\
                     3: FLOCK  ADVISORY  WRITE 12 08:01:77 0 EOF\n\
                     4: POSIX  ADVISORY  WRITE 13 08:01:77 123 123\n\
                     5: -> POSIX  ADVISORY  WRITE 14 08:01:77 120 120\n\
                     6: POSIX  ADVISORY  WRITE 15 08:02:77 120 120\n\
                     7: POSIX  ADVISORY  WRITE 16 08:01:77 120 127\n";
        assert_eq!(writer(locks, 0x0801, 77), Some(16));
        assert_eq!(writer(locks, 0x0901, 77), Some(15), "another device: the inode decides");
        assert_eq!(writer(locks, 0x0801, 79), None);
        assert_eq!(device_name(0x10_0802), "08:102");
    }

    #[test]
    fn only_a_recorded_process_that_is_still_the_same_is_ended() {
        let own = ProcessMark::own().expect("readable");
        assert_eq!(end(&own, std::slice::from_ref(&own)).expect("an answer"), Ending::Own);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a child");
        let pid = i32::try_from(child.id()).expect("a pid");
        let lives = ProcessMark::of(pid).expect("readable").expect("it lives");
        assert_eq!(end(&lives, &[]).expect("an answer"), Ending::NotRecorded);
        let earlier = ProcessMark { started: lives.started - 1, ..lives.clone() };
        assert_eq!(end(&lives, std::slice::from_ref(&earlier)).expect("an answer"), Ending::NotRecorded);
        assert_eq!(end(&earlier, std::slice::from_ref(&earlier)).expect("an answer"), Ending::Gone);
        assert!(child.try_wait().expect("asked").is_none(), "it lives");
        assert_eq!(end(&lives, std::slice::from_ref(&lives)).expect("an answer"), Ending::Ended);
        assert!(!child.wait().expect("it ends").success());
    }

    #[test]
    fn patience_is_over_when_one_holder_was_found_for_the_whole_limit() {
        let mut patience = Patience::new(Duration::from_secs(5));
        assert!(!patience.is_over(Some(&mark(1)), at(0)));
        assert!(!patience.is_over(Some(&mark(1)), at(4)));
        assert!(!patience.is_over(Some(&mark(2)), at(6)), "another holder begins anew");
        assert!(!patience.is_over(Some(&mark(2)), at(10)));
        assert!(!patience.is_over(None, at(10)), "nobody held it");
        assert!(!patience.is_over(Some(&mark(2)), at(12)));
        patience.lock_was_had();
        assert!(!patience.is_over(Some(&mark(2)), at(18)));
        assert!(patience.is_over(Some(&mark(2)), at(23)));
    }
}
