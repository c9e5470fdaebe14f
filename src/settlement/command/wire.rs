//! What passes between a replica and a supervisor: an order, deadlines, reports. One line each; pure.

use std::collections::BTreeMap;
use std::time::Duration;

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};

use crate::domain::Moment;

/// How much is kept of each of the program's two outputs, in bytes: the beginning.
pub const MOST_OUTPUT: usize = 16 * 1024;
/// The largest input of a program, in bytes.
pub const MOST_INPUT: usize = 1024 * 1024;
/// The longest line either way, in bytes.
pub const MOST_LINE: u64 = 4 * 1024 * 1024;

/// What a supervisor is told to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Absolute path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
    /// Its standard input: JSON.
    pub input: Vec<u8>,
    /// The longest that it may run.
    pub timeout: Duration,
    /// Until when it may run unless the deadline is renewed.
    pub deadline: Moment,
}

/// How a program ended, and what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub ending: Ending,
    /// The beginning of its standard output.
    pub stdout: Vec<u8>,
    /// The beginning of its standard error.
    pub stderr: Vec<u8>,
}

impl Ended {
    /// An end without output.
    #[must_use]
    pub const fn silent(ending: Ending) -> Self {
        Self { ending, stdout: Vec::new(), stderr: Vec::new() }
    }
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that was not the supervisor's.
    Signalled(i32),
    /// Killed at its time-out.
    TimedOut,
    /// Killed because the deadline passed without a renewal.
    DeadlinePassed,
    /// Killed because the pipe from the replica ended.
    Abandoned,
    /// It was never started: why.
    NotBegun(String),
    /// It was never started: leave was not given.
    NoLeave,
    /// Nobody knows.
    NoReport,
}

#[derive(Serialize, Deserialize)]
struct OrderLine {
    program: String,
    args: Vec<String>,
    environment: BTreeMap<String, String>,
    input: String,
    timeout_ms: u64,
    deadline_ns: u64,
}

#[derive(Serialize, Deserialize)]
struct EndedLine {
    ending: Ending,
    stdout: String,
    stderr: String,
}

fn nanos(moment: Moment) -> u64 {
    u64::try_from(moment.since_boot().as_nanos()).unwrap_or(u64::MAX)
}

impl Order {
    /// As a line.
    #[must_use]
    pub fn to_line(&self) -> String {
        let line = OrderLine {
            program: self.program.clone(),
            args: self.args.clone(),
            environment: self.environment.clone(),
            input: BASE64.encode(&self.input),
            timeout_ms: u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
            deadline_ns: nanos(self.deadline),
        };
        serde_json::to_string(&line).unwrap_or_default() + "\n"
    }

    /// Reads a line; `None` where it is not whole.
    #[must_use]
    pub fn of_line(line: &str) -> Option<Self> {
        let line: OrderLine = serde_json::from_str(line.strip_suffix('\n')?).ok()?;
        Some(Self {
            program: line.program,
            args: line.args,
            environment: line.environment,
            input: BASE64.decode(line.input.as_bytes()).ok()?,
            timeout: Duration::from_millis(line.timeout_ms),
            deadline: Moment::after_boot(Duration::from_nanos(line.deadline_ns)),
        })
    }
}

/// A new deadline as a line.
#[must_use]
pub fn deadline_line(deadline: Moment) -> String {
    format!("{}\n", nanos(deadline))
}

/// Reads such a line.
#[must_use]
pub fn deadline_of(line: &str) -> Option<Moment> {
    let nanos = line.strip_suffix('\n')?.parse().ok()?;
    Some(Moment::after_boot(Duration::from_nanos(nanos)))
}

impl Ended {
    /// As a line.
    #[must_use]
    pub fn to_line(&self) -> String {
        let line = EndedLine {
            ending: self.ending.clone(),
            stdout: BASE64.encode(&self.stdout),
            stderr: BASE64.encode(&self.stderr),
        };
        serde_json::to_string(&line).unwrap_or_default() + "\n"
    }

    /// Reads a line; `None` where it is not whole.
    #[must_use]
    pub fn of_line(line: &str) -> Option<Self> {
        let line: EndedLine = serde_json::from_str(line.strip_suffix('\n')?).ok()?;
        let output = |text: &str| BASE64.decode(text.as_bytes()).ok();
        Some(Self { ending: line.ending, stdout: output(&line.stdout)?, stderr: output(&line.stderr)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn moment(nanos: u64) -> Moment {
        Moment::after_boot(Duration::from_nanos(nanos))
    }

    proptest! {
        #[test]
        fn orders_pass_whole_or_not_at_all(
            program in ".{0,20}", args in prop::collection::vec(".{0,9}", 0..4), input: Vec<u8>, ns: u64, cut in 1usize..99
        ) {
            let order = Order {
                program,
                args,
                environment: [("A\n".to_owned(), "\"".to_owned())].into(),
                input,
                timeout: Duration::from_millis(ns >> 20),
                deadline: moment(ns),
            };
            let line = order.to_line();
            prop_assert_eq!(line.matches('\n').count(), 1);
            prop_assert_eq!(Order::of_line(&line), Some(order));
            let text: String = line.chars().take(line.chars().count().saturating_sub(cut)).collect();
            prop_assert_eq!(Order::of_line(&text), None);
            prop_assert_eq!(deadline_of(&deadline_line(moment(ns))), Some(moment(ns)));
        }

        #[test]
        fn reports_pass_whole_or_not_at_all(code: i32, stdout: Vec<u8>, why in ".{0,20}") {
            for ending in [Ending::Exited(code), Ending::NotBegun(why)] {
                let ended = Ended { ending, stdout: stdout.clone(), stderr: Vec::new() };
                let line = ended.to_line();
                prop_assert_eq!(Ended::of_line(&line), Some(ended));
                prop_assert_eq!(Ended::of_line(line.trim_end()), None);
            }
        }
    }
}
