//! The log: one line per event on standard error, as JSON or text.
//!
//! Standard output belongs to commands. Errors are logged once, where they are handled, with identifiers as fields. A line
//! that cannot be written is lost, and nothing else happens: see [`Lines`].

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use tracing_subscriber::EnvFilter;

use super::lines::Lines;

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object.
    Json,
    /// For people.
    Text,
}

/// Starts the log of this process. A second call does nothing: the first one stays.
///
/// `level` is one of `error`, `warn`, `info`, `debug`, `trace`. What the client crates say is left out but for errors, unless
/// `debug` or `trace` is asked for: it would fill a log with reconnects that bursar reports itself.
pub fn init_logging(format: Format, level: &str) {
    let others = match level {
        "trace" => "debug",
        "debug" => "info",
        _ => "error",
    };
    let filter = EnvFilter::new(format!("{others},bursar={level}"));
    let lines = Lines::new(standard_error());
    // Without colours, also on a terminal: they are a feature of the crate that is not built in. And what could not be written
    // is not told to the place that it could not be written to.
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .log_internal_errors(false)
        .with_writer(move || lines.clone());
    // A second start (several commands in one test process) is no error.
    let _already = match format {
        Format::Json => log.json().flatten_event(true).with_current_span(false).try_init(),
        Format::Text => log.with_target(false).try_init(),
    };
}

/// Standard error. A terminal or a pipe is opened anew, so that not to wait is a matter of this description alone: a terminal has
/// "room" from one byte on, and whoever shares a pipe may fill it between the look and the write. Files share an offset, and stay.
fn standard_error() -> OwnedFd {
    let own = std::io::stderr();
    let kind = fstat(&own).map(|found| FileType::from_raw_mode(found.st_mode));
    let anew = || {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        open("/proc/self/fd/2", flags, Mode::empty()).ok()
    };
    let anew = match kind {
        Ok(FileType::CharacterDevice | FileType::Fifo) => anew(),
        Ok(_) | Err(_) => None,
    };
    // Where it cannot be opened anew (a pipe without a reader), as it is; where there is none at all, what is said goes nowhere.
    let kept = || own.as_fd().try_clone_to_owned().ok();
    let nowhere = || open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).ok();
    anew.or_else(kept)
        .or_else(nowhere)
        .expect("a process without standard error and /dev/null is none that bursar runs as")
}

/// Logs every panic with its place. Panics unwind; what they mean is decided by whoever owns the task. What a panic says
/// is a defect's own words (`expect`s of ours), so it holds no row of the store.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(|| "unknown".to_owned(), ToString::to_string);
        let thread = std::thread::current();
        let message = panic.payload_as_str().unwrap_or("not a text");
        tracing::error!(place, thread = thread.name().unwrap_or("unnamed"), message, "a task panicked");
    }));
}
