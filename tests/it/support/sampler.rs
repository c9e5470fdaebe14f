//! A watcher in the background that asks all replicas, every 20 ms, which elections they say they lead, and proves that no
//! two ever led one at once.
//!
//! Answers are not of one instant: each was computed somewhere between its request and its arrival. Two answers "I lead"
//! count as two leaders where either
//! - they are of one round that took no longer than [`SHORT`], less than any hand-over takes; or
//! - one of them lies wholly between two answers of the other replica under one term, which therefore led throughout. So
//!   an answer that a stopped replica gives right after it goes on counts, however long ago it was asked.
//!
//! A replica that does not answer within [`PATIENCE`] leads nothing, as far as the round is concerned.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bursar::clock::boottime;
use bursar::domain::Moment;
use tokio::task::JoinSet;

use super::metrics::Metrics;

/// How often each replica is asked.
pub const EVERY: Duration = Duration::from_millis(20);
/// How long an answer is waited for.
pub const PATIENCE: Duration = Duration::from_millis(200);
/// A round this short cannot have seen both sides of a hand-over: the fastest takes a deletion seen, a transaction with the
/// coordinator and one with the store.
pub const SHORT: Duration = Duration::from_millis(5);
/// Two violations closer than this are one stretch.
const STRETCH_GAP: Duration = Duration::from_millis(150);

/// One answer of one replica.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The round: time since boot in units of the sampler's interval.
    round: u64,
    /// Which replica.
    pub replica: usize,
    /// When it was asked.
    pub sent: Moment,
    /// When it had answered.
    pub received: Moment,
    /// The elections that it says it leads, each with its term.
    pub leads: Vec<(String, u64)>,
}

impl Answer {
    /// The term under which it says that it leads an election.
    pub fn term(&self, election: &str) -> Option<u64> {
        self.leads.iter().find(|(name, _)| name == election).map(|(_, term)| *term)
    }
}

/// All answers, in the order of their arrival.
#[derive(Debug, Clone, Default)]
pub struct History(Vec<Answer>);

/// Two leaders at once, and how it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// When.
    pub at: Moment,
    /// Of which election.
    pub election: String,
    /// The replicas.
    pub replicas: [usize; 2],
    /// Their terms.
    pub terms: [u64; 2],
}

impl History {
    /// All answers.
    pub fn answers(&self) -> &[Answer] {
        &self.0
    }

    /// Whoever was first seen to lead the election at or after that moment, other than the ones excepted.
    pub fn first_leader(&self, election: &str, since: Moment, except: &[usize]) -> Option<(Moment, usize)> {
        let mut leading = self.0.iter().filter(|answer| {
            answer.sent >= since && !except.contains(&answer.replica) && answer.term(election).is_some()
        });
        leading.next().map(|answer| (answer.received, answer.replica))
    }

    /// When a replica was last asked that answered that it led the election under that term.
    pub fn last_led(&self, election: &str, replica: usize, term: u64) -> Option<Moment> {
        let led = |answer: &&Answer| answer.replica == replica && answer.term(election) == Some(term);
        self.0.iter().rev().find(led).map(|answer| answer.sent)
    }

    /// The terms of an election in the order in which they were first seen to be led, with who led them.
    pub fn tenures(&self, election: &str) -> Vec<(u64, usize)> {
        let mut tenures: Vec<(u64, usize)> = Vec::new();
        for answer in &self.0 {
            if let Some(term) = answer.term(election)
                && !tenures.contains(&(term, answer.replica))
            {
                tenures.push((term, answer.replica));
            }
        }
        tenures
    }

    /// Every moment at which two replicas are known to have led one election.
    pub fn violations(&self) -> Vec<Violation> {
        let replicas = self.0.iter().map(|answer| answer.replica + 1).max().unwrap_or(0);
        let of: Vec<Vec<&Answer>> =
            (0..replicas).map(|replica| self.0.iter().filter(|answer| answer.replica == replica).collect()).collect();
        let mut found = Vec::new();
        for answer in &self.0 {
            for (election, term) in &answer.leads {
                for (other, answers) in of.iter().enumerate().filter(|(other, _)| *other != answer.replica) {
                    let theirs = in_a_short_round(answer, answers, election).or(around(answer, answers, election));
                    if let Some(theirs) = theirs {
                        found.push(Violation {
                            at: answer.received,
                            election: election.clone(),
                            replicas: [answer.replica, other],
                            terms: [*term, theirs],
                        });
                    }
                }
            }
        }
        found
    }

    /// The longest time for which two were seen to lead without a break; `None` where that never was.
    pub fn longest_violation(&self) -> Option<Duration> {
        let violations = self.violations();
        let mut start = violations.first()?.at;
        let (mut last, mut longest) = (start, Duration::ZERO);
        for violation in violations {
            if violation.at.since(last) > STRETCH_GAP {
                start = violation.at;
            }
            last = violation.at;
            longest = longest.max(last.since(start));
        }
        Some(longest)
    }
}

/// The term that the other says it leads in the same round, where both answers fit into a short time.
fn in_a_short_round(answer: &Answer, others: &[&Answer], election: &str) -> Option<u64> {
    let at = others.partition_point(|other| other.round < answer.round);
    let near = others.get(at).filter(|other| other.round == answer.round)?;
    let (first, last) = (answer.sent.min(near.sent), answer.received.max(near.received));
    if last.since(first) <= SHORT { near.term(election) } else { None }
}

/// The term that the other led from before the answer was asked for until after it had come.
fn around(answer: &Answer, others: &[&Answer], election: &str) -> Option<u64> {
    let before = others.partition_point(|other| other.received <= answer.sent).checked_sub(1)?;
    let after = others.partition_point(|other| other.sent < answer.received);
    let before = others.get(before)?.term(election)?;
    let after = others.get(after)?.term(election)?;
    (before == after).then_some(before)
}

/// The watcher; dropped, it checks what it saw.
#[derive(Debug)]
pub struct Sampler {
    history: Arc<Mutex<History>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    tolerated: Duration,
}

impl Sampler {
    /// Starts to watch the replicas whose HTTP ports these are.
    ///
    /// # Panics
    /// When a thread cannot be started.
    pub fn start(ports: &[u16]) -> Self {
        Self::start_every(ports, EVERY)
    }

    /// As [`Self::start`], asking at another interval.
    ///
    /// # Panics
    /// When a thread cannot be started.
    pub fn start_every(ports: &[u16], every: Duration) -> Self {
        let (history, stop) = (Arc::new(Mutex::new(History::default())), Arc::new(AtomicBool::new(false)));
        let (ports, written, stopped) = (ports.to_vec(), Arc::clone(&history), Arc::clone(&stop));
        let watch = move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
            runtime.block_on(async {
                let mut watchers = JoinSet::new();
                for (replica, port) in ports.into_iter().enumerate() {
                    let (written, stopped) = (Arc::clone(&written), Arc::clone(&stopped));
                    watchers.spawn(watch_one(replica, port, every, written, stopped));
                }
                watchers.join_all().await;
            });
        };
        let thread = std::thread::Builder::new().name("sampler".into()).spawn(watch).expect("a thread can be started");
        Self { history, stop, thread: Some(thread), tolerated: Duration::ZERO }
    }

    /// Allows two leaders for so long at a stretch: where the coordinator itself is wiped, set back or edited by hand.
    pub fn tolerate(&mut self, time: Duration) {
        self.tolerated = time;
    }

    /// What was seen so far.
    ///
    /// # Panics
    /// When a watcher has panicked.
    pub fn history(&self) -> History {
        self.history.lock().expect("watchers do not panic").clone()
    }

    /// The answers from that one on, counted from 0.
    ///
    /// # Panics
    /// When a watcher has panicked.
    pub fn answers_from(&self, first: usize) -> Vec<Answer> {
        self.history.lock().expect("watchers do not panic").0.get(first..).unwrap_or_default().to_vec()
    }

    /// Who last said, within that time, that it leads the election.
    ///
    /// # Panics
    /// When a watcher has panicked.
    pub fn leader_within(&self, election: &str, time: Duration) -> Option<usize> {
        let now = boottime();
        let history = self.history.lock().expect("watchers do not panic");
        let mut recent = history.0.iter().rev().take_while(|answer| now.since(answer.received) <= time);
        recent.find(|answer| answer.term(election).is_some()).map(|answer| answer.replica)
    }

    /// Stops and gives what was seen, unchecked.
    pub fn end_unchecked(mut self) -> History {
        self.end();
        self.history()
    }

    /// Stops, checks, and gives what was seen.
    ///
    /// # Panics
    /// When two replicas led one election at once.
    pub fn finish(mut self) -> History {
        self.end();
        self.check();
        self.history()
    }

    /// Checks what was seen so far.
    ///
    /// # Panics
    /// When two replicas led one election at once.
    pub fn check(&self) {
        let history = self.history();
        if let Some(longest) = history.longest_violation() {
            let violations = history.violations();
            assert!(
                !self.tolerated.is_zero() && longest <= self.tolerated,
                "two led one election for {longest:?} (tolerated: {:?}), first: {:?}",
                self.tolerated,
                violations.first()
            );
        }
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let checked = self.thread.is_none();
        self.end();
        if !checked && !std::thread::panicking() {
            self.check();
        }
    }
}

async fn watch_one(replica: usize, port: u16, every: Duration, history: Arc<Mutex<History>>, stop: Arc<AtomicBool>) {
    let client = reqwest::Client::builder().timeout(PATIENCE).no_proxy().build().expect("a plain client can be built");
    let url = format!("http://127.0.0.1:{port}/metrics");
    let (interval, every) = (every, u64::try_from(every.as_nanos()).expect("less than a second"));
    while !stop.load(Ordering::SeqCst) {
        // All watchers wake at the same instants, so that a round's answers lie close together.
        let now = boottime().since_boot();
        let into = Duration::from_nanos(u64::try_from(now.as_nanos()).expect("584 years") % every);
        tokio::time::sleep(interval.saturating_sub(into)).await;
        let sent = boottime();
        let round = u64::try_from(sent.since_boot().as_nanos()).expect("584 years") / every;
        let Some(leads) = leads(&client, &url).await else { continue };
        let answer = Answer { round, replica, sent, received: boottime(), leads };
        history.lock().expect("watchers do not panic").0.push(answer);
    }
}

async fn leads(client: &reqwest::Client, url: &str) -> Option<Vec<(String, u64)>> {
    let text = client.get(url).send().await.ok()?.text().await.ok()?;
    let metrics = Metrics::parse(&text).ok()?;
    let leading = metrics.all("bursar_leader").iter().filter(|sample| sample.value > 0.0);
    let with_term = leading.map(|sample| {
        let election = sample.labels.get("election").cloned().unwrap_or_default();
        let term = metrics.value("bursar_term", &[("election", &election)]).unwrap_or(0.0);
        (election, format!("{term:.0}").parse().unwrap_or(0))
    });
    Some(with_term.collect())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn answer(replica: usize, sent: u64, received: u64, term: Option<u64>) -> Answer {
        let at = |millis| Moment::after_boot(Duration::from_millis(1000 + millis));
        let leads = term.map(|term| ("e".to_owned(), term)).into_iter().collect();
        Answer { round: sent / 20, replica, sent: at(sent), received: at(received), leads }
    }

    #[test]
    fn one_after_the_other_is_no_violation() {
        let history = History(vec![
            answer(0, 0, 1, Some(1)),
            answer(1, 0, 2, None),
            answer(0, 20, 21, None),
            answer(1, 20, 22, Some(2)),
            answer(1, 40, 41, Some(2)),
        ]);
        assert_eq!(history.violations(), []);
        assert_eq!(history.tenures("e"), [(1, 0), (2, 1)]);
        let since = Moment::after_boot(Duration::from_secs(1));
        assert_eq!(history.first_leader("e", since, &[0]).map(|(_, replica)| replica), Some(1));
    }

    #[test]
    fn two_in_one_short_round_are_a_violation() {
        let history = History(vec![answer(0, 0, 1, Some(1)), answer(1, 0, 2, Some(2))]);
        assert_eq!(history.violations().len(), 2);
        assert_eq!(history.longest_violation(), Some(Duration::from_millis(1)));
    }

    #[test]
    fn two_in_one_long_round_may_be_a_hand_over() {
        let history = History(vec![answer(0, 0, 1, Some(1)), answer(1, 0, 30, Some(2))]);
        assert_eq!(history.violations(), []);
    }

    #[test]
    fn an_answer_within_anothers_term_is_a_violation_however_long_it_took() {
        let history = History(vec![
            answer(1, 0, 1, Some(2)),
            answer(1, 20, 21, Some(2)),
            answer(0, 5, 150, Some(1)),
            answer(1, 160, 161, Some(2)),
        ]);
        let violations = history.violations();
        assert_eq!(violations.len(), 1);
        assert_eq!((violations[0].replicas, violations[0].terms), ([0, 1], [1, 2]));
    }

    /// Answers every request with that scrape, for as long as the test lives.
    async fn pretend(tasks: &mut JoinSet<()>, scrape: &'static str) -> u16 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let port = listener.local_addr().expect("it is bound").port();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                connections.spawn(async move {
                    let mut request = [0; 1024];
                    while stream.read(&mut request).await.is_ok_and(|length| length > 0) {
                        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{scrape}", scrape.len());
                        stream.write_all(answer.as_bytes()).await.ok();
                    }
                });
            }
        });
        port
    }

    const LEADS: &str = "bursar_leader{election=\"e\"} 1\nbursar_term{election=\"e\"} 3\n";
    const FOLLOWS: &str = "bursar_leader{election=\"e\"} 0\nbursar_term{election=\"e\"} 3\n";

    async fn watched(one: &'static str, other: &'static str) -> Sampler {
        let mut tasks = JoinSet::new();
        // The third does not answer at all.
        let ports =
            [pretend(&mut tasks, one).await, pretend(&mut tasks, other).await, super::super::ports::free_port()];
        let sampler = Sampler::start(&ports);
        super::super::wait::eventually(Duration::from_secs(10), "twenty answers", async || {
            (sampler.history().answers().len() >= 20).then_some(())
        })
        .await;
        sampler
    }

    #[tokio::test]
    async fn one_leader_among_replicas_is_seen_and_passes() {
        let history = watched(FOLLOWS, LEADS).await.finish();
        assert_eq!(history.tenures("e"), [(3, 1)]);
        let mut answers = history.answers().iter().filter(|answer| answer.replica == 1);
        let (first, second) = (answers.next().expect("it answers"), answers.next().expect("it answers"));
        assert!(second.sent.since(first.sent) < EVERY * 10, "{first:?} {second:?}");
    }

    #[tokio::test]
    #[should_panic(expected = "two led one election")]
    async fn two_leaders_fail_the_test_at_the_latest_when_the_sampler_is_dropped() {
        drop(watched(LEADS, LEADS).await);
    }

    #[tokio::test]
    async fn two_leaders_are_tolerated_for_a_time_where_a_test_says_so() {
        let mut sampler = watched(LEADS, LEADS).await;
        sampler.tolerate(Duration::from_mins(1));
        assert!(sampler.finish().longest_violation().is_some());
    }
}
