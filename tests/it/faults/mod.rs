//! Real faults: replicas as processes, three members of etcd, one PostgreSQL, the reference receiver as judge, entries that
//! arrive all the time, and a nemesis. What is promised must hold of what is found afterwards.
//!
//! `scripts/faults` runs the long form; the short one is a test like any other. Both print what they have shown, and write
//! what happened when into a folder that is printed too.
//!
//! Invariants:
//! - Whatever the nemesis did is undone before anything is judged, and judged is what all sides know: the store, the
//!   receiver's book, the entries that were offered, the samples of who leads.
//! - A run proves too little, and fails, in which a kind was missing, or neither fence nor receiver refused anything of an
//!   older term.
//!
//! Deliberately absent: a database that forgets. What it acknowledged and lost, the receiver would know better by right; that
//! such a store is noticed is shown in `forgetting`. Packet filters too: a line of each replica's own can do what they can,
//! without root.

mod acts;
mod books;
mod defects;
mod feed;
mod ground;
mod history;
mod kind;
mod leaders;
mod ledger;
mod nemesis;
mod quiet;
mod report;
mod watch;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bursar::clock::boottime;
use serde_json::json;

use self::books::Books;
use self::feed::{Feed, Offered};
use self::ground::{Ground, TTL};
use self::history::History;
use self::kind::Kind;
use self::leaders::Leaders;
use self::ledger::Ledger;
use self::nemesis::{Done, Nemesis};
use self::quiet::Quiet;
use self::watch::{Duty, Starved, Watch};
use crate::support::receiver::Receiver;
use crate::support::{Replica, Sampler, scratch};

/// How often each replica is asked who leads.
const SAMPLE: Duration = Duration::from_millis(50);
/// A start, on a busy machine.
const READY: Duration = Duration::from_mins(1);

/// What a run is to be.
#[derive(Debug)]
pub struct Plan {
    seed: u64,
    time: Duration,
    replicas: usize,
    kinds: Vec<Kind>,
    at_a_time: usize,
    /// How long what is left may take once the faults are over.
    quiet: Duration,
    /// A defect of every replica, where the harness itself is tried.
    mutant: Option<&'static str>,
    form: Form,
    folder: PathBuf,
}

/// How long and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Two minutes, three replicas, what needs no root.
    Short,
    /// As long as told, five replicas, every kind.
    Whole,
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Short => "short",
            Self::Whole => "whole",
        })
    }
}

impl Plan {
    fn short(seed: u64) -> Self {
        Self {
            seed,
            time: Duration::from_mins(2),
            replicas: 3,
            kinds: Kind::SHORT.to_vec(),
            at_a_time: 2,
            quiet: TTL * 36,
            mutant: None,
            form: Form::Short,
            folder: folder(&format!("short-{seed}")),
        }
    }

    fn whole(seed: u64, minutes: u64) -> Self {
        Self {
            seed,
            time: Duration::from_secs(minutes * 60),
            replicas: 5,
            kinds: Kind::ALL.to_vec(),
            at_a_time: 3,
            quiet: TTL * 36,
            mutant: None,
            form: Form::Whole,
            folder: folder(&seed.to_string()),
        }
    }
}

/// What a run has shown.
#[derive(Debug)]
pub struct Shown {
    seed: u64,
    form: Form,
    time: Duration,
    took: Duration,
    folder: PathBuf,
    done: Done,
    offered: Offered,
    quiet: Quiet,
    books: Books,
    ledger: Ledger,
    leaders: Leaders,
    starved: Vec<Starved>,
    duty: Duty,
    findings: Vec<String>,
}

/// Does it all, and judges.
async fn run(plan: Plan) -> Shown {
    let begun = boottime();
    let history = Arc::new(History::begin(&plan.folder));
    history.note("plan", json!({ "seed": plan.seed, "seconds": plan.time.as_secs(), "replicas": plan.replicas }));
    let receiver = Arc::new(Receiver::start().await);
    let ground = Ground::prepare(&plan, &receiver).await;
    let ports: Vec<u16> = ground.cluster.replicas().iter().map(Replica::http_port).collect();
    let sampler = Arc::new(Sampler::start_every(&ports, SAMPLE));
    ground.cluster.wait_leader(READY).await;
    let (feeder, on_duty) = (ground.another_operator("feed"), ground.another_operator("duty"));
    let feed = Feed::begin(feeder, Arc::clone(&history), plan.seed);
    let database = ground.cluster.database().clone();
    let watch = Watch::begin(Arc::clone(&sampler), Arc::clone(&receiver), Arc::clone(&history), on_duty, database);

    let done = Nemesis::new(&plan, &ground, &receiver, &sampler, &history).rage(plan.time).await;
    let offered = feed.end();
    let quiet = quiet::settle(&ground, &history, plan.quiet).await;
    let (starved, duty) = watch.end();
    let seen = Arc::into_inner(sampler).expect("the watch has ended").end_unchecked();
    let leaders = leaders::judge(&seen, &done.faults, &starved);
    let books = books::compare(&ground, &receiver, &offered, &quiet).await;
    let ledger = ledger::inspect(&ground, &quiet).await;

    let mut findings: Vec<String> = quiet.unfinished.iter().map(|what| format!("not finished: {what}")).collect();
    findings.extend([&books.findings, &ledger.findings, &leaders.findings].into_iter().flatten().cloned());
    findings.extend(too_little(&plan, &ground, &done, &ledger, &books));
    keep_logs(&plan.folder);
    let took = boottime().since(begun);
    Shown {
        seed: plan.seed,
        form: plan.form,
        time: plan.time,
        took,
        folder: plan.folder,
        done,
        offered,
        quiet,
        books,
        ledger,
        leaders,
        starved,
        duty,
        findings,
    }
}

/// What a run has to have had.
fn too_little(plan: &Plan, ground: &Ground, done: &Done, ledger: &Ledger, books: &Books) -> Vec<String> {
    let had: BTreeSet<Kind> = done.faults.iter().filter(|fault| fault.hit).map(|fault| fault.kind).collect();
    let cannot = |kind: &Kind| *kind == Kind::FullDisk && ground.disk.is_none();
    let missing = plan.kinds.iter().filter(|kind| !had.contains(kind) && !cannot(kind));
    let mut findings: Vec<String> = missing.map(|kind| format!("too little: no {kind:?}")).collect();
    if ledger.rejects.is_empty() {
        findings.push("too little: the fence refused nothing".to_owned());
    }
    if books.refused == 0 {
        findings.push("too little: the receiver refused no token".to_owned());
    }
    if ground.receiver_lines.iter().all(|line| line.accepted() == 0) {
        findings.push("too little: no replica has used its line to the receiver".to_owned());
    }
    findings
}

/// Copies what the replicas and the servers wrote to their logs beside the history.
fn keep_logs(folder: &std::path::Path) {
    let logs = folder.join("logs");
    std::fs::create_dir_all(&logs).expect("the folder is ours");
    for entry in std::fs::read_dir(scratch::root()).expect("it is ours").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let wanted =
            ["r0-", "r1-", "r2-", "r3-", "r4-", "etcd", "postgres"].iter().any(|start| name.starts_with(start));
        if wanted && entry.path().join("log").is_file() {
            std::fs::copy(entry.path().join("log"), logs.join(name)).ok();
        }
    }
}

/// Prints what was shown, keeps it beside the history, and fails where something was found.
fn conclude(shown: &Shown) {
    let text = report::report(shown);
    std::fs::write(shown.folder.join("report.txt"), &text).ok();
    // Past the harness, which keeps to itself what a test prints; what cannot be written is only not seen.
    std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes()).ok();
    let form = match shown.form {
        Form::Short => "--short".to_owned(),
        Form::Whole => format!("--minutes {}", shown.time.as_secs() / 60),
    };
    let again = format!("scripts/faults {form} --seed {}", shown.seed);
    assert!(shown.findings.is_empty(), "{} findings; {again}\n{text}", shown.findings.len());
}

fn folder(name: &str) -> PathBuf {
    let named = std::env::var_os("BURSAR_FAULTS_FOLDER").filter(|folder| !folder.is_empty());
    named.map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{name}")), PathBuf::from)
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}: {text:?} is no whole number")))
}

#[tokio::test]
async fn what_fails_in_two_minutes_breaks_no_promise() {
    conclude(&run(Plan::short(number("BURSAR_FAULTS_SEED").unwrap_or(7))).await);
}

#[tokio::test]
#[ignore = "long: five minutes; scripts/faults runs it for half an hour, or as it is told"]
async fn what_fails_for_as_long_as_told_breaks_no_promise() {
    let seed = number("BURSAR_FAULTS_SEED").unwrap_or_else(|| boottime().since_boot().subsec_nanos().into());
    conclude(&run(Plan::whole(seed, number("BURSAR_FAULTS_MINUTES").unwrap_or(5))).await);
}
