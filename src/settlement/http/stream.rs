//! The stream below a request: plain or TLS, and it remembers whether anything was written.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Plain or TLS.
pub(super) enum Wire {
    /// As it is.
    Plain(TcpStream),
    /// Encrypted.
    Tls(Box<TlsStream<TcpStream>>),
    /// To a receiver in the same process, in a simulation.
    #[cfg(feature = "chaos")]
    Memory(tokio::io::DuplexStream),
}

/// Whether a byte of a request was handed on. Raised before it is, so that no byte is ever missed.
#[derive(Debug, Clone, Default)]
pub(super) struct Written(Arc<AtomicBool>);

impl Written {
    /// For the next request on the same connection.
    pub(super) fn reset(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// A stream that remembers.
pub(super) struct Watched {
    wire: Wire,
    written: Written,
}

impl Watched {
    pub(super) fn new(wire: Wire) -> (Self, Written) {
        let written = Written::default();
        (Self { wire, written: written.clone() }, written)
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, into),
            #[cfg(feature = "chaos")]
            Wire::Memory(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if !bytes.is_empty() {
            self.written.0.store(true, Ordering::SeqCst);
        }
        match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
            #[cfg(feature = "chaos")]
            Wire::Memory(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
            #[cfg(feature = "chaos")]
            Wire::Memory(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
            #[cfg(feature = "chaos")]
            Wire::Memory(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
