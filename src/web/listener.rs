//! Connections with bounds: so many at a time, each with so much time for a request, and so large a head.
//!
//! Why not let further ones wait: whoever opens many and says nothing, or speaks slowly, would keep the health checks out. So
//! each is let in, and whoever has gone longest without a request makes room. A health check comes, is answered and goes.
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
    /// Asks it to leave.
    leave: CancellationToken,
}

/// The guests, known to all that serve them.
#[derive(Debug, Clone, Default)]
struct House(Arc<Mutex<Guests>>);

impl House {
    fn lock(&self) -> MutexGuard<'_, Guests> {
        // Nothing panics under it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets one in; where the house is full, the one that has gone longest without a request is asked to leave.
    fn enter(&self, now: Moment) -> (u64, CancellationToken) {
        let mut guests = self.lock();
        if guests.there.len() >= MOST_CONNECTIONS
            && let Some(idlest) = guests.there.iter().min_by_key(|(id, guest)| (guest.since, **id)).map(|(id, _)| *id)
            && let Some(guest) = guests.there.remove(&idlest)
        {
            guest.leave.cancel();
        }
        let (id, leave) = (guests.next, CancellationToken::new());
        guests.next += 1;
        guests.there.insert(id, Guest { since: now, leave: leave.clone() });
        (id, leave)
    }

    /// A request of one came in.
    fn asked(&self, id: u64, now: Moment) {
        if let Some(guest) = self.lock().there.get_mut(&id) {
            guest.since = now;
        }
    }

    /// How long one may stay; `None` where it may not any more, or was asked to leave.
    fn stays(&self, id: u64, now: Moment) -> Option<Duration> {
        let since = self.lock().there.get(&id)?.since;
        EXCHANGE_WITHIN.checked_sub(now.since(since)).filter(|left| !left.is_zero())
    }

    fn left(&self, id: u64) {
        self.lock().there.remove(&id);
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
    let mut stopping = false;
    while let Some(left) = house.stays(id, clock::monotonic()) {
        tokio::select! {
            // What a client did wrong is its own business, and no line in the log.
            _ended = &mut connection => break,
            () = leave.cancelled() => break,
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
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
            all.push(house.enter(now));
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
}
