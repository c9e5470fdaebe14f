//! One connection and one request on it. Retries nothing, follows nothing, unpacks nothing.
//!
//! The driver of a connection is polled only while a request is on it, by whoever made the request: no task of its own, so
//! that dropping the future closes the connection, and nothing goes on.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::header::{CONTENT_ENCODING, DATE, HeaderName, RETRY_AFTER};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::answer::{Body, Response, Seen, Unsent};
use super::stream::{Watched, Wire, Written};
use super::tls::{HandshakeError, handshake};
use crate::domain::web_address::WebAddress;

/// The longest body of an answer that is read, in bytes.
pub const MOST_ANSWER_BYTES: usize = 64 * 1024;
/// The longest head of an answer, in bytes.
pub const MOST_HEAD_BYTES: usize = 32 * 1024;
/// The most headers of an answer.
const MOST_HEADERS: usize = 100;
/// The longest that connecting may take, TLS included; less where the receiver's time-out is shorter.
const CONNECT_MOST: Duration = Duration::from_secs(5);

const FENCING_HIGHEST: HeaderName = HeaderName::from_static("fencing-highest");

pub(super) type Outgoing = hyper::Request<Full<Bytes>>;

type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// A connection that is up, TLS included.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: Option<Driver>,
    written: Written,
}

/// Connects. No byte of a request is written here.
pub(super) async fn connect(
    address: &WebAddress,
    tls: Option<&TlsConnector>,
    timeout: Duration,
) -> Result<Connection, Unsent> {
    let within = timeout.min(CONNECT_MOST);
    let connecting = tokio::time::timeout(within, connect_unbounded(address, tls)).await;
    connecting.unwrap_or_else(|_| Err(Unsent::NotConnected(format!("no connection within {within:?}"))))
}

async fn connect_unbounded(address: &WebAddress, tls: Option<&TlsConnector>) -> Result<Connection, Unsent> {
    #[cfg(feature = "chaos")]
    if let Some(connected) = crate::chaos::network::connect(address.host(), address.port()).await {
        let stream = connected.map_err(|error| Unsent::NotConnected(format!("no connection: {error}")))?;
        return over(Wire::Memory(stream)).await;
    }
    let port = address.port();
    #[cfg(feature = "chaos")]
    let port = crate::chaos::network::detour(port);
    let stream = TcpStream::connect((address.host(), port))
        .await
        .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
        .map_err(|error| Unsent::NotConnected(format!("no connection: {error}")))?;
    let wire = match tls {
        None => Wire::Plain(stream),
        Some(connector) => match handshake(connector, address.host(), stream).await {
            Ok(stream) => Wire::Tls(Box::new(stream)),
            Err(HandshakeError::Untrusted(why)) => return Err(Unsent::Untrusted(why)),
            Err(HandshakeError::Lost(why)) => return Err(Unsent::NotConnected(why)),
        },
    };
    over(wire).await
}

/// A connection over a stream that is up.
async fn over(wire: Wire) -> Result<Connection, Unsent> {
    let (stream, written) = Watched::new(wire);
    let (sender, driver) = Builder::new()
        .max_buf_size(MOST_HEAD_BYTES)
        .max_headers(MOST_HEADERS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| Unsent::NotConnected(format!("no connection: {error}")))?;
    Ok(Connection { sender, driver: Some(Box::pin(driver)), written })
}

impl Connection {
    /// Whether it can take a request: not closed, and nothing unasked for came in.
    pub(super) fn is_usable(&mut self) -> bool {
        match &mut self.driver {
            None => return false,
            Some(driver) => {
                if driver.now_or_never().is_some() {
                    self.driver = None;
                    return false;
                }
            }
        }
        self.sender.is_ready()
    }

    /// Sends one request and reads its answer, within `timeout`.
    pub(super) async fn exchange(&mut self, request: Outgoing, timeout: Duration) -> Seen {
        self.written.reset();
        let outcome = tokio::time::timeout(timeout, self.drive(request)).await;
        match outcome {
            Ok(Ok(response)) => Seen::Answer(response),
            Ok(Err(error)) if self.written.any() => Seen::Silence(format!("no answer: {error}")),
            Err(_) if self.written.any() => Seen::Silence(format!("no answer within {timeout:?}")),
            Ok(Err(error)) => Seen::Unsent(Unsent::NotConnected(format!("not sent: {error}"))),
            Err(_) => Seen::Unsent(Unsent::NotConnected(format!("not sent within {timeout:?}"))),
        }
    }

    async fn drive(&mut self, request: Outgoing) -> hyper::Result<Response> {
        let sent = self.sender.send_request(request);
        let answer = async { Ok(read(sent.await?).await) };
        tokio::pin!(answer);
        loop {
            let Some(driver) = &mut self.driver else { return answer.await };
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                // How it ended, the answer's own future says.
                _ = driver => self.driver = None,
            }
        }
    }
}

/// Reads what is looked at of an answer.
async fn read(response: hyper::Response<Incoming>) -> Response {
    let only = |name: HeaderName| {
        let mut values = response.headers().get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().ok().map(str::to_owned),
            (Some(_), Some(_)) | (None, _) => None,
        }
    };
    let identity = |value: &hyper::header::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    let encoded = !response.headers().get_all(CONTENT_ENCODING).iter().all(identity);
    let (retry_after, date, fencing_highest) = (only(RETRY_AFTER), only(DATE), only(FENCING_HIGHEST));
    let status = response.status().as_u16();
    let body = if encoded { Body::Encoded } else { read_body(response.into_body()).await };
    Response { status, retry_after, date, fencing_highest, body }
}

async fn read_body(body: Incoming) -> Body {
    match Limited::new(body, MOST_ANSWER_BYTES).collect().await {
        Ok(whole) => Body::Whole(whole.to_bytes().to_vec()),
        Err(error) if error.is::<LengthLimitError>() => Body::TooLong,
        Err(_) => Body::Broken,
    }
}
