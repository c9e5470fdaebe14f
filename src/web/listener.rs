//! A listener with bounds: so many connections at a time, each of them closed after so much silence.
//!
//! Without them a client that opens connections and says nothing would keep the health checks out.

use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// Connections at a time; further ones wait to be accepted.
pub const MOST_CONNECTIONS: usize = 256;
/// A connection on which nothing came in for so long is closed. Longer than the usual scrape interval of a minute.
pub const SILENCE: Duration = Duration::from_secs(75);
/// The wait after a failed accept (out of descriptors, for example), so that it does not spin.
const ACCEPT_AGAIN: Duration = Duration::from_millis(200);

/// A listener whose connections are bounded.
#[derive(Debug)]
pub(super) struct Bounded {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl Bounded {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(MOST_CONNECTIONS)) }
    }
}

impl Listener for Bounded {
    type Io = Bound;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Bound, SocketAddr) {
        loop {
            // The semaphore is never closed.
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { continue };
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    return (Bound { stream, silence: Box::pin(tokio::time::sleep(SILENCE)), _place: place }, peer);
                }
                Err(error) => {
                    tracing::warn!(%error, "the HTTP port cannot accept a connection");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// One connection in its place.
#[derive(Debug)]
pub(super) struct Bound {
    stream: TcpStream,
    silence: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl AsyncRead for Bound {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match Pin::new(&mut this.stream).poll_read(context, into) {
            Poll::Ready(read) => {
                this.silence.set(tokio::time::sleep(SILENCE));
                Poll::Ready(read)
            }
            Poll::Pending => {
                ready!(this.silence.as_mut().poll(context));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl AsyncWrite for Bound {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
