//! Receivers of payouts and calls, in memory: they book, delay, drop, and refuse, each by its own habits, and the judge keeps
//! their books.
//!
//! They are honest: what they answer as not done was not done, and one that remembers keys books a key once.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bursar::chaos::network::{Connect, Connecting};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use crate::breaks::Break;
use crate::facts::Touch;
use crate::world::{State, To, World};

/// How one receiver is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Habits {
    /// It remembers keys: a second request with one has no second effect.
    pub idempotent: bool,
    /// It refuses tokens below the highest that it has seen in the scope.
    pub checks_tokens: bool,
    /// In a thousand: lost before it was read, answer lost, 503 (nothing done), 500 (done or not), 422, elsewhere (302, nothing
    /// done), and an answer about another payment (nothing done).
    pub lost: u32,
    pub unanswered: u32,
    pub busy: u32,
    pub failing: u32,
    pub refusing: u32,
    pub elsewhere: u32,
    pub mistaken: u32,
    /// The longest time on the way, milliseconds.
    pub slow: u64,
    /// Until when it answers 503 to everything.
    pub away_until: Duration,
}

impl Habits {
    /// Whether it answers everything, and with what was done.
    pub const fn is_smooth(&self) -> bool {
        self.lost + self.unanswered + self.busy + self.failing + self.refusing + self.elsewhere + self.mistaken == 0
    }
}

/// A request as it arrives.
#[derive(Debug, Clone)]
pub struct Arrival {
    pub host: String,
    pub post: bool,
    pub key: String,
    pub token: i64,
    pub scope: String,
    pub body: Vec<u8>,
}

impl Arrival {
    /// The election of its scope.
    pub fn election(&self) -> &str {
        self.scope.rsplit('/').next().unwrap_or_default()
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = if self.post { "POST" } else { "GET" };
        write!(f, "{} {method} {} token {}", self.host, self.key, self.token)
    }
}

/// What is answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub body: String,
    pub highest: Option<i64>,
    /// Nothing comes back.
    pub silent: bool,
    /// It was booked: for the judge.
    pub booked: bool,
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.status, if self.silent { ", unanswered" } else { "" })
    }
}

/// What was booked under a key.
#[derive(Debug, Clone)]
pub struct Booking {
    pub host: String,
    pub times: u32,
    pub body: Vec<u8>,
    /// Of a payout: who was paid, and minor units, all times together.
    pub paid: Option<(String, i64)>,
}

/// The books of all receivers, as the judge keeps them.
#[derive(Debug, Default)]
pub struct Book {
    pub bookings: BTreeMap<String, Booking>,
    /// By host and scope.
    pub highest: BTreeMap<(String, String), i64>,
    pub habits: BTreeMap<String, Habits>,
}

impl State {
    /// A receiver reads a request and makes something of it.
    pub fn receive(&mut self, arrival: &Arrival) -> Reply {
        let (now, broken) = (self.now, self.broken);
        let book = &mut self.facts.book;
        let mut habits = book.habits.get(&arrival.host).copied().unwrap_or_default();
        if broken == Break::RefusesForNothing && habits.is_smooth() {
            habits.refusing = 100;
        }
        let rng = &mut self.rng;
        let mut chance = |of: u32| rng.u32(0..1000) < of;
        let status = |status: u16| Reply { status, ..Reply::default() };
        if chance(habits.lost) {
            return Reply { silent: true, ..status(0) };
        }
        let unanswered = chance(habits.unanswered);
        let seen = (arrival.host.clone(), arrival.scope.clone());
        let highest = book.highest.get(&seen).copied().unwrap_or(0);
        if habits.checks_tokens && arrival.token < highest && broken != Break::OldTokensBooked {
            return Reply { highest: Some(highest), ..status(412) };
        }
        let booked = book.bookings.get(&arrival.key).cloned();
        if !arrival.post {
            return match booked {
                Some(booking) => Reply { body: echo(&booking.body, "paid"), silent: unanswered, ..status(200) },
                None => Reply { silent: unanswered, ..status(404) },
            };
        }
        if now < habits.away_until || chance(habits.busy) {
            return status(503);
        }
        book.highest.insert(seen, highest.max(arrival.token));
        match booked {
            Some(booking) if habits.idempotent => {
                return Reply { body: echo(&booking.body, "paid"), silent: unanswered, ..status(200) };
            }
            None if chance(habits.refusing) => return Reply { silent: unanswered, ..status(422) },
            Some(_) | None => {}
        }
        if chance(habits.elsewhere) {
            return Reply { silent: unanswered, ..status(302) };
        }
        if chance(habits.mistaken) {
            return Reply { body: echo(br#"{"amount_minor":"1"}"#, "paid"), silent: unanswered, ..status(200) };
        }
        let failing = chance(habits.failing);
        if failing && chance(500) {
            return status(500);
        }
        if broken == Break::PaidUnbooked {
            return Reply { body: echo(&arrival.body, "paid"), silent: unanswered, ..status(200) };
        }
        let booking = book.bookings.entry(arrival.key.clone()).or_insert_with(|| Booking {
            host: arrival.host.clone(),
            times: 0,
            body: arrival.body.clone(),
            paid: paid(&arrival.body).map(|(merchant, _)| (merchant, 0)),
        });
        booking.times += 1;
        if let (Some((_, sum)), Some((_, amount))) = (&mut booking.paid, paid(&arrival.body)) {
            *sum += amount;
        }
        if failing {
            return Reply { booked: true, ..status(500) };
        }
        Reply { body: echo(&arrival.body, "paid"), silent: unanswered, booked: true, ..status(200) }
    }
}

/// What a payout's bytes say.
fn paid(body: &[u8]) -> Option<(String, i64)> {
    let sent: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some((sent.get("merchant")?.as_str()?.to_owned(), sent.get("amount_minor")?.as_str()?.parse().ok()?))
}

/// The answer names what was sent.
fn echo(body: &[u8], status: &str) -> String {
    let sent: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let mut echo = serde_json::json!({ "status": status, "reference": "R-1" });
    for field in ["key", "amount_minor", "currency"] {
        if let Some(value) = sent.get(field) {
            echo[field] = value.clone();
        }
    }
    echo.to_string()
}

/// The network of one replica.
pub fn network(world: &Arc<World>, place: usize, incarnation: u32) -> Connect {
    let world = Arc::downgrade(world);
    Arc::new(move |host: &str, _port: u16| -> Connecting {
        let (world, host) = (Weak::clone(&world), host.to_owned());
        Box::pin(async move {
            let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
            let there = world.upgrade().ok_or_else(refused)?;
            let way = there.way(place, To::Receiver);
            let Some(time) = way.there else {
                tokio::time::sleep(way.patience).await;
                return Err(refused());
            };
            tokio::time::sleep(time).await;
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            tokio::runtime::Handle::current().spawn(serve(world, place, incarnation, host, theirs));
            Ok(ours)
        })
    })
}

/// The other end of a connection: hands on what it reads, and writes what comes back.
async fn serve(world: Weak<World>, place: usize, incarnation: u32, host: String, mut stream: DuplexStream) {
    let mut read = Vec::new();
    while let Some(mut request) = next_request(&mut stream, &mut read, &host).await {
        let Some(world) = world.upgrade() else { return };
        if world.state().broken == Break::BytesChanged {
            request.body.push(b' ');
        }
        if !world.lives(place, incarnation) {
            return;
        }
        let who = format!("replica-{place}-{incarnation}");
        let election = request.election().to_owned();
        let in_force = world.claim_of(&election, request.token);
        world.touch(&who, Touch::Wrote { claim: in_force, key: request.key.clone() });
        let slow = world.state().facts.book.habits.get(&host).map_or(0, |habits| habits.slow);
        let time = world.state().rng.u64(1..=10 + slow);
        let way = world.way(place, To::Receiver);
        let answered = way.there.is_some();
        let answer = world.send_request(request, (place, incarnation), Duration::from_millis(time));
        let Ok(reply) = answer.await else { return };
        // One that is cut off after it has written does not know more than one that was not answered.
        let (Some(back), true, false) = (way.back, answered, reply.silent) else {
            std::future::pending::<()>().await;
            return;
        };
        tokio::time::sleep(back).await;
        let mut head = format!("HTTP/1.1 {} X\r\ncontent-length: {}\r\n", reply.status, reply.body.len());
        if let Some(highest) = reply.highest {
            head = format!("{head}fencing-highest: {highest}\r\n");
        }
        let text = format!("{head}content-type: application/json\r\n\r\n{}", reply.body);
        if stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn next_request(stream: &mut DuplexStream, read: &mut Vec<u8>, host: &str) -> Option<Arrival> {
    let end = loop {
        if let Some(at) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).into_owned();
    let header = |name: &str| {
        head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let length: usize = header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
    while read.len() < end + length {
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
    let body = read[end..end + length].to_vec();
    read.drain(..end + length);
    Some(Arrival {
        host: host.to_owned(),
        post: head.starts_with("POST"),
        key: header("idempotency-key").unwrap_or_default(),
        token: header("fencing-token").and_then(|value| value.parse().ok()).unwrap_or(0),
        scope: header("fencing-scope").unwrap_or_default(),
        body,
    })
}
