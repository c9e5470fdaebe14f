//! Who looks on: changes of leadership and the receiver's view go into the history, how starved this process is is measured,
//! and what an operator on duty would do by himself is done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bursar::clock::boottime;
use bursar::domain::Moment;
use serde_json::json;

use super::ground::{command, of_the_election};
use super::history::History;
use crate::support::cluster::ELECTION;
use crate::support::receiver::Receiver;
use crate::support::{Database, Replica, Sampler};

/// How often the watch looks.
const LOOK: Duration = Duration::from_millis(200);
/// How often the operator looks.
const ROUND: Duration = Duration::from_secs(1);
/// A sleep that takes so much longer than asked for is starvation.
const LATE: Duration = Duration::from_millis(100);
/// What a starvation is measured with.
const NAP: Duration = Duration::from_millis(20);
/// The longest that a look at the database may take.
const ASK: Duration = Duration::from_secs(3);

/// A stretch in which this process did not get to run.
#[derive(Debug, Clone, Copy)]
pub struct Starved {
    /// When it should have run.
    pub from: Moment,
    /// When it did.
    pub until: Moment,
}

/// What the operator on duty did by himself.
#[derive(Debug, Default)]
pub struct Duty {
    /// Resumes of an election that the product halted, with its reasons.
    pub resumed: Vec<String>,
    /// Resumes of a receiver.
    pub receivers: u64,
}

/// Everyone who looks on.
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    seer: JoinHandle<()>,
    meter: JoinHandle<Vec<Starved>>,
    operator: JoinHandle<Duty>,
}

fn thread<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).expect("a thread can be started")
}

impl Watch {
    /// Begins to look on.
    pub fn begin(
        sampler: Arc<Sampler>,
        receiver: Arc<Receiver>,
        history: Arc<History>,
        operator: Replica,
        database: Database,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (for_seer, for_meter, for_operator) = (Arc::clone(&stop), Arc::clone(&stop), Arc::clone(&stop));
        let notes = Arc::clone(&history);
        let seer = thread("seer", move || see(&sampler, &receiver, &history, &for_seer));
        let meter = thread("meter", move || measure(&for_meter));
        let operator = thread("duty", move || be_on_duty(&operator, &database, &notes, &for_operator));
        Self { stop, seer, meter, operator }
    }

    /// Ends, and answers when this process was starved and what the operator did.
    ///
    /// # Panics
    /// When a thread has panicked.
    pub fn end(self) -> (Vec<Starved>, Duty) {
        self.stop.store(true, Ordering::SeqCst);
        self.seer.join().expect("it does not panic");
        let starved = self.meter.join().expect("it does not panic");
        (starved, self.operator.join().expect("it does not panic"))
    }
}

/// Writes down who leads, whenever that changes, and what the receiver has seen.
fn see(sampler: &Sampler, receiver: &Receiver, history: &History, stop: &AtomicBool) {
    let (mut answers, mut requests) = (0, 0);
    let mut leads: BTreeMap<usize, Option<u64>> = BTreeMap::new();
    let mut highest: BTreeMap<String, i64> = BTreeMap::new();
    loop {
        let last = stop.load(Ordering::SeqCst);
        for answer in sampler.answers_from(answers) {
            answers += 1;
            let term = answer.term(ELECTION);
            if leads.insert(answer.replica, term) != Some(term) {
                history.note_at(answer.received, "leader", json!({ "replica": answer.replica, "term": term }));
            }
        }
        let new = receiver.log_from(requests);
        requests += new.len();
        for logged in &new {
            let highest = highest.entry(logged.scope.clone()).or_default();
            *highest = logged.token.max(*highest);
            let seen = json!({
                "key": logged.key, "term": logged.token, "taken": logged.taken, "answered": logged.answered,
                "highest": *highest,
            });
            history.note_at(logged.at, "request", seen);
        }
        if last {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

fn measure(stop: &AtomicBool) -> Vec<Starved> {
    let mut starved = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let from = boottime();
        std::thread::sleep(NAP);
        let until = boottime();
        if until.since(from) > NAP + LATE {
            starved.push(Starved { from, until });
        }
    }
    starved
}

/// Resumes what the product itself has halted or stopped.
fn be_on_duty(operator: &Replica, database: &Database, history: &History, stop: &AtomicBool) -> Duty {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    let mut duty = Duty::default();
    let halted = of_the_election("select halt_reason from bursar.fence where halted_by like 'bursar@%' and");
    let stopped = "select origin from bursar.receiver where needs_resume".to_owned();
    let ask = |query: &str| -> Vec<String> {
        let asked = runtime.block_on(async { tokio::time::timeout(ASK, database.try_rows::<(String,)>(query)).await });
        asked.ok().and_then(Result::ok).unwrap_or_default().into_iter().map(|(text,)| text).collect()
    };
    while !stop.load(Ordering::SeqCst) {
        for reason in ask(&halted) {
            let (code, said) = command(operator, &["resume", "--reason", "looked at what was restored"]);
            history.note("duty", json!({ "resumes after": reason, "exit": code, "said": said }));
            if code == Some(0) {
                duty.resumed.push(reason);
            }
        }
        for origin in ask(&stopped) {
            let (code, _) = command(operator, &["receivers", "resume", &origin, "--reason", "asked there"]);
            history.note("duty", json!({ "resumes receiver": origin, "exit": code }));
            duty.receivers += u64::from(code == Some(0));
        }
        std::thread::sleep(ROUND);
    }
    duty
}
