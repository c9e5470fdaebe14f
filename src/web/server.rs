//! The port's thread: bound in the caller, served on a runtime of its own.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use super::listener;
use super::routes::{Picture, router};

/// How long a stop waits for answers under way.
const STOP_WITHIN: Duration = Duration::from_millis(500);

/// Why the port could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The address cannot be listened on.
    #[error("cannot listen on {listen}: {source}; choose another [http] listen, or stop what holds it")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// The system's words.
        source: std::io::Error,
    },
    /// No thread or runtime.
    #[error("cannot start the HTTP port's thread: {0}")]
    Thread(std::io::Error),
}

impl WebError {
    /// Whether the same may succeed later without an edit: another process holds the port (that of the last release, which still
    /// leaves), or the machine is short of descriptors, memory or threads.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Listen { source, .. } => {
                !Errno::from_io_error(source).is_some_and(|errno| MENDED_BY_AN_EDIT.contains(&errno))
            }
            Self::Thread(_) => true,
        }
    }
}

/// What the system says of an address that this machine does not have, or this process may not listen on.
const MENDED_BY_AN_EDIT: [Errno; 5] =
    [Errno::ADDRNOTAVAIL, Errno::AFNOSUPPORT, Errno::ACCESS, Errno::PERM, Errno::INVAL];

/// The running port. Dropped without [`WebServer::stop`] it stops by itself, unjoined.
#[derive(Debug)]
pub struct WebServer {
    address: SocketAddr,
    stop: CancellationToken,
    ended: tokio::sync::oneshot::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl WebServer {
    /// Listens, and serves from its own thread.
    ///
    /// # Errors
    /// [`WebError`].
    pub fn start(listen: SocketAddr, picture: Arc<dyn Picture>) -> Result<Self, WebError> {
        let bind = || {
            let listener = TcpListener::bind(listen)?;
            listener::widen(&listener)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) = bind().map_err(|source| WebError::Listen { listen, source })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(WebError::Thread)?;
        let stop = CancellationToken::new();
        let (over, ended) = tokio::sync::oneshot::channel();
        let token = stop.clone();
        let serve = move || {
            runtime.block_on(serve(listener, picture, token));
            runtime.shutdown_background();
            // Nobody listens where the process is leaving.
            let _left = over.send(());
        };
        let thread = std::thread::Builder::new().name("http".into()).spawn(serve).map_err(WebError::Thread)?;
        Ok(Self { address, stop, ended, thread: Some(thread) })
    }

    /// Where it listens, also where port 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the thread's end, which is a fault unless [`WebServer::stop`] was called.
    pub async fn ended(&mut self) {
        // A dropped sender is an end too: the thread panicked.
        let _over = (&mut self.ended).await;
    }

    /// Answers what is under way, for a moment, and ends the thread.
    pub fn stop(mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was logged by the hook.
            let _panicked = thread.join();
        }
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn serve(listener: TcpListener, picture: Arc<dyn Picture>, stop: CancellationToken) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the HTTP port cannot be served"),
    };
    let server = listener::serve(listener, router(picture), stop.clone());
    let late = async {
        stop.cancelled().await;
        tokio::time::sleep(STOP_WITHIN).await;
    };
    tokio::select! {
        () = server => {}
        () = late => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::page::Page;
    use super::*;

    struct Still {
        reasons: Vec<String>,
    }

    impl Picture for Still {
        fn alive(&self) -> Result<(), String> {
            Ok(())
        }
        fn not_ready(&self) -> Vec<String> {
            self.reasons.clone()
        }
        fn metrics(&self) -> String {
            "bursar_leader 0\n".into()
        }
        fn status(&self) -> Value {
            json!({ "replica": "a" })
        }
        fn page(&self) -> Page {
            Page::nothing_known("a")
        }
    }

    fn start(reasons: Vec<String>) -> WebServer {
        let listen = "127.0.0.1:0".parse().expect("an address");
        WebServer::start(listen, Arc::new(Still { reasons })).expect("port 0 is free")
    }

    async fn get(server: &WebServer, path: &str) -> (u16, String) {
        let answer = reqwest::get(format!("http://{}{path}", server.address())).await.expect("it answers");
        (answer.status().as_u16(), answer.text().await.expect("a body"))
    }

    #[tokio::test]
    async fn each_route_answers_from_the_picture() {
        let server = start(Vec::new());
        assert_eq!(get(&server, "/livez").await.0, 200);
        assert_eq!(get(&server, "/readyz").await.0, 200);
        assert_eq!(get(&server, "/metrics").await, (200, "bursar_leader 0\n".to_owned()));
        assert_eq!(get(&server, "/status.json").await, (200, "{\"replica\":\"a\"}".to_owned()));
        let (code, body) = get(&server, "/").await;
        assert!(code == 200 && body.starts_with("<!DOCTYPE html>"), "{body}");
        let (code, body) = get(&server, "/nothing").await;
        assert_eq!(code, 404);
        assert!(body.contains("/status.json") && body.contains("/readyz"), "{body}");
        server.stop();
    }

    #[tokio::test]
    async fn a_replica_that_could_not_lead_says_why() {
        let server = start(vec!["draining".to_owned()]);
        let (code, body) = get(&server, "/readyz").await;
        assert_eq!((code, body.as_str()), (503, "{\"ready\":false,\"reasons\":[\"draining\"]}"));
        assert_eq!(get(&server, "/livez").await.0, 200);
        server.stop();
    }

    #[test]
    fn a_taken_address_is_named() {
        let first = start(Vec::new());
        let error = WebServer::start(first.address(), Arc::new(Still { reasons: Vec::new() })).expect_err("taken");
        assert!(error.to_string().contains(&first.address().to_string()), "{error}");
        assert!(error.is_passing(), "who holds it may leave");
        first.stop();
    }

    #[test]
    fn an_address_of_another_machine_is_for_an_edit_and_what_a_machine_is_short_of_passes() {
        // Kept for documentation (RFC 5737): no machine has it.
        let elsewhere = "192.0.2.1:0".parse().expect("an address");
        let error = WebServer::start(elsewhere, Arc::new(Still { reasons: Vec::new() })).expect_err("not ours");
        assert!(!error.is_passing(), "{error}");
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::ADDRINUSE, Errno::NOBUFS] {
            assert!(WebError::Listen { listen: elsewhere, source: errno.into() }.is_passing(), "{errno}");
        }
        assert!(!WebError::Listen { listen: elsewhere, source: Errno::ACCESS.into() }.is_passing());
        assert!(WebError::Thread(Errno::AGAIN.into()).is_passing());
    }

    #[tokio::test]
    async fn a_stopped_port_says_that_it_ended() {
        let mut server = start(Vec::new());
        server.stop.cancel();
        server.ended().await;
    }
}
