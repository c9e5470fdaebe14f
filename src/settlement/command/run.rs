//! The replica's side: starts a supervisor, hands the order over, renews its deadline, and waits for its report.
//!
//! Dropped at any point, the pipe to the supervisor closes, and the tree dies. The supervisor itself is never killed from
//! here: it has a tree to kill first.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::wire::{Ended, Ending, MOST_INPUT, MOST_LINE, Order, deadline_line};
use crate::clock;
use crate::domain::Moment;
use crate::settlement::Departure;

/// How long after a program's time-out, or after it was told to stop, its supervisor may take to report.
const REPORT_MOST: Duration = Duration::from_secs(15);

/// What commands of one tenure share.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program that is the supervisor when it is called with `supervise`.
    pub supervisor: PathBuf,
    /// Until when the lease is held; moved on with every renewal.
    pub deadline: watch::Receiver<Moment>,
    /// Ends what runs.
    pub stop: CancellationToken,
}

/// Runs one order to its end.
pub async fn run(order: &Order, launch: &Launch, departure: &Departure) -> Ended {
    if order.input.len() > MOST_INPUT {
        let why = format!("its input has {} bytes, expected at most {MOST_INPUT}", order.input.len());
        return Ended::silent(Ending::NotBegun(why));
    }
    let (mut child, mut pipe, report) = match start(launch) {
        Ok(started) => started,
        Err(error) => return Ended::silent(Ending::NotBegun(format!("no supervisor: {error}"))),
    };
    let mut deadline = launch.deadline.clone();
    let refused = departure.depart().await.is_err();
    let order = Order { deadline: *deadline.borrow_and_update(), ..order.clone() };
    if refused || launch.stop.is_cancelled() || order.deadline <= clock::boottime() {
        drop(pipe);
        // It has begun nothing and ends at once.
        let _ended = tokio::time::timeout(REPORT_MOST, child.wait()).await;
        return Ended::silent(Ending::NoLeave);
    }
    // The line's end is the last byte: a supervisor that is gone before it was taken has begun nothing.
    if let Err(error) = pipe.write_all(order.to_line().as_bytes()).await {
        return Ended::silent(Ending::NotBegun(format!("its supervisor ended: {error}")));
    }
    let limit = order.timeout.saturating_add(REPORT_MOST);
    let ended = tokio::time::timeout(limit, attend(pipe, report, deadline, &launch.stop)).await;
    let Ok(ended) = ended else { return Ended::silent(Ending::NoReport) };
    // It has reported and has nothing left to do.
    let _ended = tokio::time::timeout(REPORT_MOST, child.wait()).await;
    ended
}

fn start(launch: &Launch) -> std::io::Result<(Child, ChildStdin, BufReader<ChildStdout>)> {
    let mut command = Command::new(&launch.supervisor);
    command
        .arg("supervise")
        .env_clear()
        .current_dir("/")
        // Not in our group: a signal from a terminal must not end it before its tree.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // A defect of the test build is one of its supervisors too.
    #[cfg(feature = "chaos")]
    command.envs(crate::chaos::mutants_handed_on());
    let mut child = command.spawn()?;
    let missing = || std::io::Error::other("a pipe that was asked for is missing");
    let pipe = child.stdin.take().ok_or_else(missing)?;
    let report = BufReader::new(child.stdout.take().ok_or_else(missing)?);
    Ok((child, pipe, report))
}

/// Renews the deadline until the report comes.
async fn attend(
    pipe: ChildStdin,
    report: BufReader<ChildStdout>,
    mut deadline: watch::Receiver<Moment>,
    stop: &CancellationToken,
) -> Ended {
    let reported = read_report(report);
    tokio::pin!(reported);
    let mut pipe = Some(pipe);
    loop {
        tokio::select! {
            biased;
            ended = &mut reported => return ended,
            () = stop.cancelled(), if pipe.is_some() && !crate::mutant!("command.outlives-its-tenure") => pipe = None,
            changed = deadline.changed(), if pipe.is_some() => {
                let line = changed.is_ok().then(|| deadline_line(*deadline.borrow_and_update()));
                // Nobody renews any more, or nobody reads: what there is to say, the report says.
                let written = match (&mut pipe, line) {
                    (Some(pipe), Some(line)) => pipe.write_all(line.as_bytes()).await.is_ok(),
                    (None, _) | (_, None) => false,
                };
                if !written {
                    pipe = None;
                }
            }
        }
    }
}

async fn read_report(report: BufReader<ChildStdout>) -> Ended {
    let mut line = String::new();
    let read = report.take(MOST_LINE).read_line(&mut line).await;
    read.ok().and_then(|_| Ended::of_line(&line)).unwrap_or_else(|| Ended::silent(Ending::NoReport))
}
