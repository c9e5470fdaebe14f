//! The handler `command`: a process per unit, under a supervisor of our own.
//!
//! ```text
//! replica ──pipe──> supervisor (bursar supervise) ──> the program ──> whatever it starts
//!         <─report─
//! ```
//!
//! The supervisor is a small re-exec of this binary. Its standard input is a pipe from the replica: first the order
//! ([`wire::Order`]), then the lease's deadline, anew with every renewal. The end of that pipe, or the deadline without a
//! renewal, kills the tree: so a leader that was killed or stopped leaves none behind. It is the subreaper of all that
//! descends from it, so that what calls itself a daemon dies too. It reports what came of the order on its standard output.
//!
//! Invariants:
//! - Leave is asked when the supervisor is up, right before the order is handed over; an order that was not handed over in
//!   full was not begun.
//! - When the report says that it ended, nothing of the tree is alive.
//! - The program's environment is `PATH`, `LANG`, `LC_ALL` and `TZ` of the replica, the variables that the job names, and
//!   `BURSAR_TERM`, `BURSAR_SCOPE`, `BURSAR_IDEMPOTENCY_KEY`; nothing of bursar's own configuration, and no file that it has open.
//! - Its output is read to the end and kept to [`wire::MOST_OUTPUT`]; what a killed, crashed or timed-out program did is not
//!   known, nor what one did that exits with another code than 0, 65 and 75.
//!
//! Deliberately absent: a shell, a working directory of choice (it is `/`), another user, control groups (they need rights
//! that a replica should not have).

mod run;
mod supervisor;
mod tree;
pub mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use run::{Launch, run};
pub use supervisor::{execute, supervise};

use self::wire::{Ended, Ending, Order};
use super::{CallOutcome, Departure, Fence, OutsideHandler};
use crate::domain::Moment;
use crate::domain::outside::CommandDefinition;
use crate::store::Call;

/// The program says: nothing was done, try again (`EX_TEMPFAIL`).
const TRY_AGAIN: i32 = 75;
/// The program says: nothing was done, and another try would come to the same (`EX_DATAERR`).
const NOTHING_DONE: i32 = 65;
/// What a shell exits with when a signal ended the program that it ran, whose number is added.
const SIGNALLED: std::ops::RangeInclusive<i32> = 129..=192;
/// Variables that every program gets from the replica's environment.
const INHERITED: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];
/// `PATH` where the replica has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// How much of what a program wrote to its standard error is kept with a failed unit, in characters.
const MOST_TOLD: usize = 400;

/// Starts a process for each unit.
pub struct CommandHandler {
    definition: CommandDefinition,
    fence: Fence,
    launch: Launch,
}

impl CommandHandler {
    /// For one tenure: `deadline` is the lease's, moved on with every renewal; `stop` ends what runs.
    #[must_use]
    pub fn new(
        definition: CommandDefinition,
        fence: Fence,
        deadline: watch::Receiver<Moment>,
        stop: CancellationToken,
    ) -> Self {
        // The file that this process was started from, also after it was replaced by another release's.
        let supervisor = PathBuf::from("/proc/self/exe");
        Self { definition, fence, launch: Launch { supervisor, deadline, stop } }
    }

    /// With another program in the supervisor's place: `bursar` itself, for tests that are not it.
    #[must_use]
    pub fn supervised_by(mut self, program: PathBuf) -> Self {
        self.launch.supervisor = program;
        self
    }
}

#[async_trait]
impl OutsideHandler for CommandHandler {
    fn is_idempotent(&self) -> bool {
        self.definition.idempotent
    }

    async fn call(&self, call: &Call, _taken_at: Moment, departure: &Departure) -> CallOutcome {
        let own = |name: &str| std::env::var(name).ok();
        let order = order(&self.definition, &self.fence, call, own);
        outcome(run(&order, &self.launch, departure).await)
    }
}

/// What is ordered for one unit. `environment` is the replica's own.
#[must_use]
pub fn order(
    definition: &CommandDefinition,
    fence: &Fence,
    call: &Call,
    environment: impl Fn(&str) -> Option<String>,
) -> Order {
    let mut variables = std::collections::BTreeMap::new();
    variables.insert("PATH".to_owned(), DEFAULT_PATH.to_owned());
    let named = definition.environment.iter().map(String::as_str).filter(|name| !name.starts_with("BURSAR_"));
    for name in INHERITED.into_iter().chain(named) {
        if let Some(value) = environment(name) {
            variables.insert(name.to_owned(), value);
        }
    }
    variables.insert("BURSAR_TERM".to_owned(), fence.term.to_string());
    variables.insert("BURSAR_SCOPE".to_owned(), fence.scope.clone());
    variables.insert("BURSAR_IDEMPOTENCY_KEY".to_owned(), call.idempotency_key.clone());
    Order {
        program: definition.program.clone(),
        args: definition.args.clone(),
        environment: variables,
        input: call.body.clone(),
        timeout: definition.timeout,
        deadline: Moment::BOOT,
    }
}

/// What an ended process means for its unit. Pure. Only the codes of which the program knows that they are asked for prove anything:
/// whatever else ended it, it may have done its work, or a part.
#[must_use]
pub fn outcome(ended: Ended) -> CallOutcome {
    let told = |what: String| {
        let text = String::from_utf8_lossy(&ended.stderr);
        let text = text.trim();
        let from = text.char_indices().rev().nth(MOST_TOLD - 1).map_or(0, |(at, _)| at);
        if text.is_empty() { what } else { format!("{what}: {}", &text[from..]) }
    };
    match ended.ending {
        Ending::Exited(0) => CallOutcome::Done,
        Ending::Exited(TRY_AGAIN) => {
            CallOutcome::Failed { error: told(format!("exit {TRY_AGAIN}: try again")), permanent: false }
        }
        Ending::Exited(NOTHING_DONE) => {
            CallOutcome::Failed { error: told(format!("exit {NOTHING_DONE}: nothing was done")), permanent: true }
        }
        Ending::Exited(code) if SIGNALLED.contains(&code) => {
            CallOutcome::Unknown { error: told(format!("exit {code}: signal {} ended what it ran", code - 128)) }
        }
        Ending::Exited(code) => CallOutcome::Mismatch { error: told(format!("exit {code}")) },
        Ending::Signalled(signal) => CallOutcome::Unknown { error: told(format!("ended by signal {signal}")) },
        Ending::TimedOut => CallOutcome::Unknown { error: told("killed at its time-out".to_owned()) },
        Ending::DeadlinePassed => CallOutcome::Unknown { error: "killed at the lease's deadline".to_owned() },
        Ending::Abandoned => CallOutcome::Unknown { error: "killed when its leader stopped leading".to_owned() },
        Ending::NotBegun(why) => CallOutcome::Failed { error: format!("not begun: {why}"), permanent: false },
        Ending::NoLeave => CallOutcome::NotSent,
        Ending::NoReport => CallOutcome::Unknown { error: "its supervisor ended without a report".to_owned() },
    }
}

/// Shared by tenures: the handler behind the port.
impl From<CommandHandler> for Arc<dyn OutsideHandler> {
    fn from(handler: CommandHandler) -> Self {
        Arc::new(handler)
    }
}
