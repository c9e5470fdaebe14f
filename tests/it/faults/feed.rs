//! Entries that arrive all the time, through the product's own command, each file until it is in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::json;

use super::ground::{JOBS, command};
use super::history::History;
use crate::support::{Entries, Replica};

/// The pause between two files.
const PAUSE: Duration = Duration::from_millis(1500);
/// The pause before the same file is offered again.
const AGAIN: Duration = Duration::from_millis(500);
/// Lines of a file.
const LINES: usize = 14;
/// Merchants of a source.
const MERCHANTS: u64 = 30;

/// Rows and the sum of their amounts, in minor units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// Rows.
    pub rows: i64,
    /// Cents.
    pub minor: i64,
}

/// What was offered and is in.
#[derive(Debug, Default)]
pub struct Offered {
    /// By source.
    pub sums: BTreeMap<&'static str, Sum>,
    /// Files.
    pub files: u64,
    /// How often one was offered again, its import having failed or its outcome being unknown.
    pub again: u64,
    /// Refusals: there may be none.
    pub refused: Vec<String>,
}

/// The one who brings entries.
#[derive(Debug)]
pub struct Feed {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Offered>,
}

impl Feed {
    /// Begins to bring entries.
    ///
    /// # Panics
    /// When a thread cannot be started.
    pub fn begin(operator: Replica, history: Arc<History>, seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let bring = move || {
            let (mut offered, mut rng) = (Offered::default(), fastrand::Rng::with_seed(seed));
            while !stopped.load(Ordering::SeqCst) {
                bring_one(&operator, &history, &mut offered, &mut rng);
                std::thread::sleep(PAUSE);
            }
            offered
        };
        let thread = std::thread::Builder::new().name("feed".into()).spawn(bring).expect("a thread can be started");
        Self { stop, thread }
    }

    /// Ends behind the file that is under way, and answers all that is in.
    ///
    /// # Panics
    /// When the thread has panicked.
    pub fn end(self) -> Offered {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().expect("it does not panic")
    }
}

fn bring_one(operator: &Replica, history: &History, offered: &mut Offered, rng: &mut fastrand::Rng) {
    let sources: Vec<&'static str> = JOBS.iter().filter_map(|job| job.source).collect();
    let number = offered.files;
    let source = sources[usize::try_from(number).unwrap_or(0) % sources.len()];
    let (mut entries, mut sum) = (Entries::with_ids(&format!("f{number}-")), Sum::default());
    for _ in 0..LINES {
        let merchant = format!("{source}-{}", rng.u64(0..MERCHANTS));
        let refund = rng.u64(0..9) == 0;
        let cents = if refund { -rng.i64(1..800) } else { rng.i64(100..100_000) };
        let text = format!("{}{}.{:02}", if refund { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100);
        let kind = if refund { "refund" } else { "capture" };
        entries = entries.entry(kind, &merchant, "EUR", &text);
        sum = Sum { rows: sum.rows + 1, minor: sum.minor + cents };
    }
    let file = entries.write(&format!("f{number}.csv"));
    let mut tries = 0_u64;
    loop {
        let (code, said) = command(operator, &["import", &file.to_string_lossy(), "--source", source]);
        match code {
            Some(0) => break,
            Some(1) => {
                offered.refused.push(format!("file {number}: {said}"));
                break;
            }
            _ => tries += 1,
        }
        std::thread::sleep(AGAIN);
    }
    history.note("import", json!({ "source": source, "file": number, "again": tries }));
    offered.files += 1;
    offered.again += tries;
    let total = offered.sums.entry(source).or_default();
    *total = Sum { rows: total.rows + sum.rows, minor: total.minor + sum.minor };
}
