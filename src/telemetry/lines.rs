//! Where the log's lines go: to a file descriptor, at once or not at all.
//!
//! A log is never worth a replica. A full disk, a reader that is gone, a pipe that nobody empties: each costs lines and
//! nothing else. So a line waits for room for a moment once, and while there is none the next ones do not wait at all: the
//! session's thread logs too, and a lease does not wait. How many were lost is told when there is room again.
//!
//! Deliberately absent: a buffer and a thread. What is buffered is lost when the process ends itself, and that is when the
//! last lines matter.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

/// How long the first line that finds no room waits for some.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// The same for those after it.
const NONE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// What a pipe that has room takes without making its writer wait: POSIX's `PIPE_BUF` on Linux.
const PIECE: usize = 4096;

#[derive(Debug, Default)]
struct State {
    /// The last line found no room.
    full: bool,
    /// The last line was broken off in its middle.
    cut: bool,
    /// Lines that were not written, or not to their end.
    lost: u64,
}

/// Lines to a descriptor. Clones share it.
#[derive(Debug)]
pub(super) struct Lines<F> {
    shared: Arc<(F, Mutex<State>)>,
}

impl<F> Clone for Lines<F> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<F: AsFd> Lines<F> {
    pub(super) fn new(to: F) -> Self {
        Self { shared: Arc::new((to, Mutex::default())) }
    }

    /// Writes a line where there is room for it. Answers how many lines before it were lost, once, after there was room again.
    fn line(&self, line: &[u8]) -> u64 {
        let (to, state) = &*self.shared;
        // One at a time: what is ready for one is not for two.
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let apart: Vec<u8>;
        let whole = if state.cut {
            apart = [&b"\n"[..], line].concat();
            apart.as_slice()
        } else {
            line
        };
        let mut left = whole;
        while !left.is_empty() {
            let Ok(written) = piece(to, &mut state, &left[..left.len().min(PIECE)]) else {
                state.cut |= left.len() < whole.len();
                state.lost = state.lost.saturating_add(1);
                return 0;
            };
            left = &left[written..];
        }
        state.cut = false;
        std::mem::take(&mut state.lost)
    }
}

/// Writes something of a piece; any error is no room.
fn piece(to: &impl AsFd, state: &mut State, piece: &[u8]) -> Result<usize, NoRoom> {
    let patience = if state.full { NONE } else { PATIENCE };
    state.full = true;
    let mut ready = [PollFd::new(to, PollFlags::OUT)];
    // What is in error or has lost its reader is ready as well: the write then says so.
    if !matches!(retry_on_intr(|| poll(&mut ready, Some(&patience))), Ok(1..)) {
        return Err(NoRoom);
    }
    match retry_on_intr(|| rustix::io::write(to, piece)) {
        Ok(written @ 1..) => {
            state.full = false;
            Ok(written)
        }
        Ok(0) | Err(_) => Err(NoRoom),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct NoRoom;

/// One event's line: whole in one call. Never fails.
impl<F: AsFd> Write for Lines<F> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let lost = self.line(line);
        if lost > 0 {
            tracing::warn!(lost, "lines of the log were lost: there was no room for them");
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, PipeWriter, Read as _};

    use super::*;

    /// Fills a pipe to the brim.
    fn full() -> (PipeReader, PipeWriter) {
        let (reader, writer) = io::pipe().expect("a pipe");
        let filling = Lines::new(writer.try_clone().expect("a descriptor"));
        while filling.line(&[b'x'; PIECE]) == 0 && filling.shared.1.lock().expect("not poisoned").lost == 0 {}
        (reader, writer)
    }

    #[test]
    fn lines_without_room_are_counted_and_the_next_ones_are_whole() {
        let (mut reader, writer) = full();
        let lines = Lines::new(writer);
        for _ in 0..1000 {
            assert_eq!(lines.line(b"lost\n"), 0);
        }
        let mut filled = [0; 2 * PIECE];
        reader.read_exact(&mut filled).expect("what was filled in");
        assert_eq!(lines.line(b"here\n"), 1000, "told once there is room");
        assert_eq!(lines.line(b"again\n"), 0, "and once only");
        drop(lines);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).expect("text");
        assert_eq!(rest.trim_start_matches('x'), "here\nagain\n");
    }

    #[test]
    fn a_terminal_that_nobody_empties_costs_lines_and_holds_nobody() {
        use rustix::fs::{Mode, OFlags, open};
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let nobody_reads = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&nobody_reads).expect("granted");
        unlockpt(&nobody_reads).expect("unlocked");
        let name = ptsname(&nobody_reads, Vec::new()).expect("a name");
        // As the log opens it anew: it takes a part of a line where it has little room, and the rest is not waited for.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let lines = Lines::new(open(name.as_c_str(), flags, Mode::empty()).expect("its other end"));
        let line = [&[b'x'; 200][..], b"\n"].concat();
        let written =
            (0..10_000).take_while(|_| lines.line(&line) == 0 && lines.shared.1.lock().expect("held").lost == 0);
        assert!(written.count() < 10_000, "it took everything");
    }

    #[test]
    fn a_line_that_was_broken_off_does_not_run_into_the_next() {
        let (mut reader, writer) = full();
        let lines = Lines::new(writer);
        let mut piece = [0; PIECE];
        reader.read_exact(&mut piece).expect("what was filled in");
        let long = vec![b'y'; 2 * PIECE];
        assert_eq!(lines.line(&long), 0);
        reader.read_exact(&mut piece).expect("what was filled in");
        assert_eq!(lines.line(b"next\n"), 1, "the one that was broken off");
        drop(lines);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).expect("text");
        let rest = rest.trim_start_matches('x');
        assert!(rest.starts_with('y') && rest.ends_with("y\nnext\n"), "{} bytes", rest.len());
    }

    #[test]
    fn a_reader_that_is_gone_and_a_full_disk_cost_lines_and_no_more() {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let mut lines = Lines::new(writer);
        assert_eq!(lines.write(b"to nobody\n").expect("never fails"), 10);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let mut lines = Lines::new(full);
        assert_eq!(lines.write(b"no space\n").expect("never fails"), 9);
        assert_eq!(lines.shared.1.lock().expect("not poisoned").lost, 1);
    }
}
