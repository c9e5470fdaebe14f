//! A receiver for tests, and the judge of what was paid: the reference receiver's book behind a server that can be made to
//! delay, to break off, to be silent and to answer anything, per key or for whatever comes next.
//!
//! It logs each request that it read in full, in the order of their ends. [`Receiver::judge`] holds what must hold after
//! every case: one payment per key at most, the same bytes at every try, and terms that never go down in a scope among what
//! was taken. It runs on a runtime of its own, so that no blocking call of a test holds it up.

#[path = "../../../examples/receiver/book.rs"]
mod book;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bursar::clock::boottime;
use bursar::domain::Moment;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use self::book::{Answer, Book, Order, OtherBody};
use super::scratch;

/// What becomes of one request, after it was read.
#[derive(Debug, Clone)]
pub enum Act {
    /// What the reference receiver does.
    Book,
    /// The same, and the answer after that time.
    BookSlowly(Duration),
    /// Booked, and the connection is reset instead of an answer.
    BookAndReset,
    /// Booked, and these bytes are answered.
    BookAndSay(String),
    /// Nothing is booked, and these bytes are answered.
    Say(String),
    /// Nothing is booked, and these bytes are answered after that time.
    SaySlowly(Duration, String),
    /// Nothing is booked, and the connection is reset.
    Reset,
    /// Nothing is booked or answered, and the connection stays open.
    Silence,
}

/// Bytes of an answer with a status and a body.
pub fn say(status: u16, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text = text + name + ": " + value + "\r\n";
    }
    text + "\r\n" + body
}

/// One request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// `POST` or `GET`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// `Idempotency-Key`.
    pub key: String,
    /// `Fencing-Token`.
    pub token: i64,
    /// `Fencing-Scope`.
    pub scope: String,
    /// `Bursar-Signature`.
    pub signature: Option<String>,
    /// The body.
    pub body: Vec<u8>,
    /// When its end was read.
    pub at: Moment,
    /// Which connection it came on, from 0.
    pub connection: usize,
    /// Whether it was taken by the book, and not refused for its token.
    pub taken: bool,
    /// The status of its answer; `None` where the connection was broken off instead, or is silent.
    pub answered: Option<u16>,
    /// What whoever sent it may take it for, if the answer arrives.
    pub said: Said,
}

/// What an answer says of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// It was done.
    Done,
    /// Nothing was done.
    Undone,
    /// Nothing for sure.
    Unclear,
}

impl Said {
    /// Of what becomes of a request, and what the book answers to it.
    fn of(act: &Act, answer: Option<&Answer>) -> Self {
        match (act, answer.map(|answer| answer.status)) {
            (Act::Book | Act::BookSlowly(_), Some(200..=299)) => Self::Done,
            (Act::Book | Act::BookSlowly(_), Some(412)) => Self::Undone,
            (Act::Say(text) | Act::SaySlowly(_, text), _) if text.starts_with("HTTP/1.1 42") => {
                if text.starts_with("HTTP/1.1 422") { Self::Unclear } else { Self::Undone }
            }
            _ => Self::Unclear,
        }
    }
}

#[derive(Debug, Default)]
struct Script {
    by_key: HashMap<String, VecDeque<Act>>,
    next: VecDeque<Act>,
    always: Option<Act>,
    log: Vec<Logged>,
    connections: usize,
}

struct Shared {
    book: Book,
    script: Mutex<Script>,
}

impl Shared {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The receiver; dropped, its port is closed and its connections are reset.
pub struct Receiver {
    port: u16,
    file: PathBuf,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("receiver").enable_all().build().expect("a runtime can be built")
    })
}

impl Receiver {
    /// Starts one, with an empty book.
    pub async fn start() -> Self {
        let file = scratch::folder("receiver").join("book.db");
        let path = file.clone();
        let started = runtime().spawn(async move {
            let book = Book::open(&path, OtherBody::Unprocessable).await.expect("a book");
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
            (book, listener)
        });
        let (book, listener) = started.await.expect("started");
        let port = listener.local_addr().expect("bound").port();
        let shared = Arc::new(Shared { book, script: Mutex::default() });
        let server = runtime().spawn(serve(listener, Arc::clone(&shared)));
        Self { port, file, shared, server }
    }

    /// Where it listens on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The book's file, to be read.
    pub fn book_file(&self) -> &Path {
        &self.file
    }

    /// Where payouts go.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/payouts", self.port)
    }

    /// Where a key is looked up.
    pub fn lookup_url(&self) -> String {
        format!("http://127.0.0.1:{}/payouts/{{key}}", self.port)
    }

    /// What becomes of the next requests, whatever their keys; after these, [`Act::Book`] again.
    pub fn next(&self, acts: impl IntoIterator<Item = Act>) {
        self.shared.script().next.extend(acts);
    }

    /// What becomes of the next requests with this key. Goes before [`Receiver::next`].
    pub fn on_key(&self, key: &str, acts: impl IntoIterator<Item = Act>) {
        self.shared.script().by_key.entry(key.to_owned()).or_default().extend(acts);
    }

    /// What becomes of requests that nothing else was said about; `None`: [`Act::Book`].
    pub fn always(&self, act: Option<Act>) {
        self.shared.script().always = act;
    }

    /// All requests so far.
    pub fn log(&self) -> Vec<Logged> {
        self.shared.script().log.clone()
    }

    /// The requests from that one on, counted from 0.
    pub fn log_from(&self, first: usize) -> Vec<Logged> {
        self.shared.script().log.get(first..).unwrap_or_default().to_vec()
    }

    /// The requests with this key.
    pub fn tries(&self, key: &str) -> Vec<Logged> {
        self.log().into_iter().filter(|logged| logged.key == key && logged.method == "POST").collect()
    }

    /// The echo of the payment under a key, where there is one.
    pub async fn payment(&self, key: &str) -> Option<serde_json::Value> {
        let found =
            self.on_book(key.to_owned(), |book, key| async move { book.look_up(&key).await.expect("readable") });
        found.await.map(|echo| serde_json::from_str(&echo).expect("JSON"))
    }

    async fn on_book<T, F>(&self, key: String, work: impl FnOnce(Book, String) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        runtime().spawn(work(self.shared.book.clone(), key)).await.expect("no panic")
    }

    /// What must hold after every case.
    ///
    /// # Panics
    /// Where it does not.
    pub fn judge(&self) {
        let mut bodies: BTreeMap<&str, &[u8]> = BTreeMap::new();
        let mut highest: BTreeMap<&str, i64> = BTreeMap::new();
        let log = self.log();
        for logged in log.iter().filter(|logged| logged.method == "POST") {
            let first = bodies.entry(&logged.key).or_insert(&logged.body);
            assert_eq!(*first, logged.body, "{}: other bytes than at the first try", logged.key);
            if logged.taken {
                let highest = highest.entry(&logged.scope).or_insert(logged.token);
                assert!(logged.token >= *highest, "{}: token {} after {highest}", logged.scope, logged.token);
                *highest = logged.token;
            }
        }
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let number = {
            let mut script = shared.script();
            script.connections += 1;
            script.connections - 1
        };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            // A connection that breaks is no failure of the receiver.
            let _ = attend(stream, &shared, number).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Serves one connection to its end.
async fn attend(stream: TcpStream, shared: &Shared, connection: usize) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(mut logged) = read(&mut stream, connection).await? {
        let act = {
            let mut script = shared.script();
            let by_key = script.by_key.get_mut(&logged.key).and_then(VecDeque::pop_front);
            by_key.or_else(|| script.next.pop_front()).or_else(|| script.always.clone()).unwrap_or(Act::Book)
        };
        let books = matches!(act, Act::Book | Act::BookSlowly(_) | Act::BookAndReset | Act::BookAndSay(_));
        let answer = if books { Some(book(shared, &logged).await) } else { None };
        logged.taken = answer.as_ref().is_some_and(|answer| answer.status != 412);
        logged.answered = match &act {
            Act::Book | Act::BookSlowly(_) => answer.as_ref().map(|answer| answer.status),
            Act::BookAndSay(text) | Act::Say(text) | Act::SaySlowly(_, text) => {
                text.split_ascii_whitespace().nth(1).and_then(|status| status.parse().ok())
            }
            Act::BookAndReset | Act::Reset | Act::Silence => None,
        };
        logged.said = Said::of(&act, answer.as_ref());
        shared.script().log.push(logged);
        let said = match (&act, answer) {
            (Act::BookSlowly(time), Some(answer)) => {
                tokio::time::sleep(*time).await;
                written(&answer)
            }
            (Act::BookAndSay(text) | Act::Say(text), _) => text.clone(),
            (Act::SaySlowly(time, text), _) => {
                tokio::time::sleep(*time).await;
                text.clone()
            }
            (Act::BookAndReset | Act::Reset, _) => {
                stream.get_ref().set_zero_linger()?;
                return Ok(());
            }
            (Act::Silence, _) => std::future::pending().await,
            (_, Some(answer)) => written(&answer),
            (_, None) => return Ok(()),
        };
        stream.write_all(said.as_bytes()).await?;
        stream.flush().await?;
    }
    Ok(())
}

async fn book(shared: &Shared, logged: &Logged) -> Answer {
    if logged.method == "GET" {
        let found = shared.book.look_up(&logged.key).await.expect("readable");
        let status = if found.is_some() { 200 } else { 404 };
        return Answer { status, highest: None, body: found.unwrap_or_default() };
    }
    let order = Order { key: &logged.key, token: logged.token, scope: &logged.scope, body: &logged.body };
    shared.book.take(&order).await.expect("writable")
}

fn written(answer: &Answer) -> String {
    let highest = answer.highest.map(|highest| highest.to_string());
    let headers: Vec<(&str, &str)> = highest.iter().map(|highest| ("fencing-highest", highest.as_str())).collect();
    say(answer.status, &headers, &answer.body)
}

/// Reads one request; `None` at the end of the connection.
async fn read(stream: &mut BufReader<TcpStream>, connection: usize) -> std::io::Result<Option<Logged>> {
    let mut first = String::new();
    if stream.read_line(&mut first).await? == 0 {
        return Ok(None);
    }
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let mut words = first.split_ascii_whitespace().map(str::to_owned);
    let mut header = |name: &str| headers.remove(name);
    Ok(Some(Logged {
        method: words.next().unwrap_or_default(),
        target: words.next().unwrap_or_default(),
        key: header("idempotency-key").unwrap_or_default(),
        token: header("fencing-token").and_then(|token| token.parse().ok()).unwrap_or(-1),
        scope: header("fencing-scope").unwrap_or_default(),
        signature: header("bursar-signature"),
        body,
        at: boottime(),
        connection,
        taken: false,
        answered: None,
        said: Said::Unclear,
    }))
}
