//! Connections with bounds: so many at a time, each with so much time for a request, and so large a head.
//!
//! Why not let further ones wait: whoever opens many and says nothing, or speaks slowly, would keep the health checks out. So
//! each is let in, and whoever has gone longest without a request makes room, once it has had the time to ask. A health check
//! comes, is answered and goes.
//!
//! Deliberately absent: addresses of clients. All that ask may come from one (a proxy, a node's kubelet).

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1::Builder;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock;
use crate::domain::Moment;

/// Connections at a time. One more, and that which has gone longest without a request is closed.
pub const MOST_CONNECTIONS: usize = 256;
/// A request's head has so long to come in, from the connection's begin or the last answer's end.
pub const HEAD_WITHIN: Duration = Duration::from_secs(20);
/// A connection is closed when it has gone so long without a further request, whatever it does: one that reads its answer a
/// byte at a time, say.
pub const EXCHANGE_WITHIN: Duration = Duration::from_mins(1);
/// The largest head of a request, in bytes.
const MOST_HEAD_BYTES: usize = 16 * 1024;
/// The most headers of a request.
const MOST_HEADERS: usize = 64;
/// A guest makes room for others once it has had so long to ask, counted from when it is served: a burst would otherwise drive
/// out a health check before its request was read. 256 in 20 ms is faster than connections are made in earnest.
const TO_ASK: Duration = Duration::from_millis(20);
/// Connections that the system keeps until they are accepted.
const BACKLOG: i32 = 4096;
/// The wait after a failed accept (out of descriptors, for example), so that it does not spin.
const ACCEPT_AGAIN: Duration = Duration::from_millis(200);
/// How often a failing accept is logged.
const SAY_AGAIN: Duration = Duration::from_mins(1);

/// Who is there.
#[derive(Debug, Default)]
struct Guests {
    next: u64,
    there: HashMap<u64, Guest>,
}

#[derive(Debug)]
struct Guest {
    /// When its last request came in whole, or when it came itself.
    since: Moment,
    /// It has asked for something, or had the time to: it may be asked to leave.
    heard: bool,
    /// Asks it to leave.
    leave: CancellationToken,
}

/// The guests, known to all that serve them.
#[derive(Debug, Clone, Default)]
struct House {
    guests: Arc<Mutex<Guests>>,
    /// Somebody left, or was heard.
    room: Arc<Notify>,
}

impl House {
    fn lock(&self) -> MutexGuard<'_, Guests> {
        // Nothing panics under it.
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room, or somebody who has been heard: not for long, whatever all of them do.
    async fn has_room(&self) {
        while self.is_full() {
            self.room.notified().await;
        }
    }

    fn is_full(&self) -> bool {
        let guests = self.lock();
        guests.there.len() >= MOST_CONNECTIONS && !guests.there.values().any(|guest| guest.heard)
    }

    /// Lets one in; where the house is full, the one of those heard that has gone longest without a request is asked to leave.
    fn enter(&self, now: Moment) -> (u64, CancellationToken) {
        let mut guests = self.lock();
        if guests.there.len() >= MOST_CONNECTIONS
            && let Some(idlest) = guests
                .there
                .iter()
                .filter(|(_, guest)| guest.heard)
                .min_by_key(|(id, guest)| (guest.since, **id))
                .map(|(id, _)| *id)
            && let Some(guest) = guests.there.remove(&idlest)
        {
            guest.leave.cancel();
        }
        let (id, leave) = (guests.next, CancellationToken::new());
        guests.next += 1;
        guests.there.insert(id, Guest { since: now, heard: false, leave: leave.clone() });
        (id, leave)
    }

    /// A request of one came in.
    fn asked(&self, id: u64, now: Moment) {
        if let Some(guest) = self.lock().there.get_mut(&id) {
            (guest.since, guest.heard) = (now, true);
        }
        self.room.notify_one();
    }

    /// One had the time to ask.
    fn heard(&self, id: u64) {
        if let Some(guest) = self.lock().there.get_mut(&id) {
            guest.heard = true;
        }
        self.room.notify_one();
    }

    /// How long one may stay; `None` where it may not any more, or was asked to leave.
    fn stays(&self, id: u64, now: Moment) -> Option<Duration> {
        let since = self.lock().there.get(&id)?.since;
        EXCHANGE_WITHIN.checked_sub(now.since(since)).filter(|left| !left.is_zero())
    }

    fn left(&self, id: u64) {
        self.lock().there.remove(&id);
        self.room.notify_one();
    }
}

/// Lets the system keep many connections until they are accepted: a burst of them would otherwise delay others by a second.
pub(super) fn widen(listener: &std::net::TcpListener) -> io::Result<()> {
    rustix::net::listen(listener, BACKLOG).map_err(io::Error::from)
}

/// Serves until told to stop, and then what is under way.
pub(super) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let (house, serving) = (House::default(), TaskTracker::new());
    let mut said: Option<Moment> = None;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                tokio::select! {
                    () = house.has_room() => {}
                    () = stop.cancelled() => break,
                }
                let (id, leave) = house.enter(clock::monotonic());
                serving.spawn(host(stream, router.clone(), house.clone(), id, leave, stop.clone()));
            }
            Err(error) => {
                let now = clock::monotonic();
                if said.is_none_or(|at| now.since(at) >= SAY_AGAIN) {
                    tracing::warn!(%error, "the HTTP port cannot accept a connection");
                    said = Some(now);
                }
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
    serving.close();
    serving.wait().await;
}

/// Serves one connection to its end.
async fn host(
    stream: TcpStream,
    router: Router,
    house: House,
    id: u64,
    leave: CancellationToken,
    stop: CancellationToken,
) {
    let (inner, asking) = (TowerToHyperService::new(router), house.clone());
    let service = service_fn(move |request| {
        asking.asked(id, clock::monotonic());
        let answer = inner.call(request);
        async move {
            let Ok(answer) = answer.await;
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(MOST_HEAD_BYTES)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let mut asks = std::pin::pin!(tokio::time::sleep(TO_ASK));
    let (mut stopping, mut heard) = (false, false);
    while let Some(left) = house.stays(id, clock::monotonic()) {
        tokio::select! {
            // What has come is read first, so that nobody has had the time to ask before it was looked.
            biased;
            // What a client did wrong is its own business, and no line in the log.
            _ended = &mut connection => break,
            () = leave.cancelled() => break,
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = &mut asks, if !heard => {
                heard = true;
                house.heard(id);
            }
            // Looked at again: a request may have come in.
            () = tokio::time::sleep(left) => {}
        }
    }
    house.left(id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_gone_longest_without_a_request_makes_room() {
        let (house, mut now) = (House::default(), clock::monotonic());
        let mut all = Vec::new();
        for _ in 0..MOST_CONNECTIONS {
            let (id, leave) = house.enter(now);
            house.heard(id);
            all.push((id, leave));
            now = now + Duration::from_millis(1);
        }
        house.asked(all[0].0, now);
        let (newcomer, stays) = house.enter(now);
        assert!(all[1].1.is_cancelled() && !all[0].1.is_cancelled() && !stays.is_cancelled());
        assert_eq!(house.stays(all[1].0, now), None);
        assert_eq!(house.stays(all[0].0, now), Some(EXCHANGE_WITHIN));
        assert_eq!(house.stays(all[0].0, now + EXCHANGE_WITHIN), None);
        assert_eq!(house.lock().there.len(), MOST_CONNECTIONS);
        house.left(newcomer);
        house.enter(now);
        assert!(!all[2].1.is_cancelled(), "there was room");
    }

    #[test]
    fn a_burst_drives_nobody_out_who_had_no_time_to_ask() {
        let (house, now) = (House::default(), clock::monotonic());
        let all: Vec<_> = (0..MOST_CONNECTIONS).map(|_| house.enter(now)).collect();
        assert!(house.is_full());
        house.heard(all[7].0);
        assert!(!house.is_full());
        house.enter(now);
        assert!(all[7].1.is_cancelled() && house.is_full(), "the one that was heard made room, once");
        house.left(all[3].0);
        assert!(!house.is_full());
    }
}
