//! TLS: the receiver is who it should be, or nothing is written.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bursar::settlement::http::{Receiver, StopReason, Verdict};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::ground::{Raw, definition, open, read_request, try_once};
use crate::support::receiver::say;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/outside/tls").join(name)
}

/// A server with a certificate for `localhost` and 127.0.0.1; counts the bytes that it could decrypt.
struct Secure {
    port: u16,
    read: Arc<AtomicUsize>,
    _server: JoinSet<()>,
}

impl Secure {
    async fn start() -> Self {
        let certificate = CertificateDer::from_pem_file(file("server.pem")).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(file("server.key")).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("a pair");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let read = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&read);
        let mut server = JoinSet::new();
        server.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut chunk = [0; 4096];
                let mut bytes = Vec::new();
                while let Ok(more @ 1..) = stream.read(&mut chunk).await {
                    counted.fetch_add(more, Ordering::SeqCst);
                    bytes.extend_from_slice(&chunk[..more]);
                    if bytes.ends_with(b"}") {
                        let _ = stream.write_all(say(201, &[], r#"{"key":"k"}"#).as_bytes()).await;
                        let _ = stream.shutdown().await;
                    }
                }
            }
        });
        Self { port, read, _server: server }
    }

    async fn tried(&self, host: &str, ca: Option<&str>) -> Verdict {
        let mut rules = definition(&format!("https://{host}:{}/payouts", self.port), false);
        rules.tls_ca = ca.map(|name| file(name).display().to_string());
        try_once(&Receiver::new(rules).expect("a receiver"), &open()).await
    }
}

#[tokio::test]
async fn a_receiver_with_a_certificate_of_the_configured_authority_is_paid_through() {
    let bank = Secure::start().await;
    for host in ["127.0.0.1", "localhost"] {
        assert_eq!(bank.tried(host, Some("authority.pem")).await, Verdict::Paid { reference: None }, "{host}");
    }
    assert!(bank.read.load(Ordering::SeqCst) > 0);
}

#[tokio::test]
async fn a_certificate_that_is_not_right_stops_the_receiver_before_a_byte() {
    let bank = Secure::start().await;
    let is_stop = |verdict: &Verdict| matches!(verdict, Verdict::StopReceiver { reason: StopReason::Tls, .. });
    // Of no authority that is known; and its own certificate is no authority.
    for (host, ca) in [("127.0.0.1", Some("server.pem")), ("127.0.0.2", Some("authority.pem"))] {
        let verdict = bank.tried(host, ca).await;
        assert!(is_stop(&verdict) || host == "127.0.0.2", "{verdict:?}");
        assert_ne!(verdict.as_str(), "paid", "{host}");
    }
    assert_eq!(bank.read.load(Ordering::SeqCst), 0);
    // A server that speaks no TLS at all.
    let plain = Raw::start(|mut stream| async move {
        let _ = stream.write_all(say(400, &[], "speak up").as_bytes()).await;
        read_request(&mut stream).await;
    })
    .await;
    let mut rules = definition(&plain.url.replace("http:", "https:"), false);
    rules.tls_ca = Some(file("authority.pem").display().to_string());
    let verdict = try_once(&Receiver::new(rules).expect("a receiver"), &open()).await;
    assert!(is_stop(&verdict), "{verdict:?}");
}

#[tokio::test]
async fn a_handshake_that_breaks_off_proves_that_nothing_was_done() {
    let cut = Raw::start(|mut stream| async move {
        let _ = stream.read(&mut [0; 16]).await;
        stream.set_zero_linger().expect("a socket");
    })
    .await;
    let mut rules = definition(&cut.url.replace("http:", "https:"), false);
    rules.tls_ca = Some(file("authority.pem").display().to_string());
    let verdict = try_once(&Receiver::new(rules).expect("a receiver"), &open()).await;
    assert_eq!(verdict.as_str(), "undone", "{verdict:?}");
}

#[test]
fn authorities_that_cannot_be_read_are_named() {
    let mut rules = definition("https://localhost/", false);
    rules.tls_ca = Some("/nowhere/ca.pem".to_owned());
    assert!(Receiver::new(rules).err().expect("refused").to_string().contains("tls_ca"));
}
