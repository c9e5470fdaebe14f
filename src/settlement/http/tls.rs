//! TLS of requests: rustls with ring; the system's authorities, or those of a file, which is read anew when it changes. One's
//! own certificate is not shown.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{Mutex, MutexGuard};
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsConnector, rustls};

use crate::domain::Moment;
use crate::secret;
use crate::tls::{Keys, advice};

/// How long what was read is taken for what is there.
const FRESH: Duration = Duration::from_secs(1);

/// The largest file of authorities, in bytes.
const MOST_AUTHORITIES_BYTES: u64 = 4 * 1024 * 1024;

/// What advice names. One's own certificate is not shown, and no advice about one is given.
const KEYS: Keys = Keys { ca: "tls_ca (without one: of the system)", name: "the host of its url", cert: "" };

/// Why a handshake failed.
pub(super) enum HandshakeError {
    /// The other side is not who it should be, or does not speak TLS as we do.
    Untrusted(String),
    /// The connection was lost.
    Lost(String),
}

/// TLS to a receiver.
pub(super) struct Tls {
    /// Its authorities' file; without one the system's count, as they were at the start.
    ca: Option<PathBuf>,
    read: Mutex<Read>,
}

struct Read {
    at: Option<Moment>,
    authorities: Option<Vec<u8>>,
    connector: TlsConnector,
    /// How often others were taken into use.
    changes: u64,
    /// Whether the file could not be read the last time: said once.
    is_lost: bool,
}

impl Tls {
    /// Reads the authorities a first time.
    pub(super) fn new(ca: Option<PathBuf>) -> Result<Self, String> {
        let named = |problem: String| match &ca {
            Some(path) => format!("{}: {problem}", path.display()),
            None => problem,
        };
        let read = |path: &PathBuf| secret::read_bytes_now(path, MOST_AUTHORITIES_BYTES);
        let authorities = ca.as_ref().map(read).transpose().map_err(named)?;
        let connector = connector(authorities.as_deref()).map_err(named)?;
        Ok(Self { ca, read: Mutex::new(Read { at: None, authorities, connector, changes: 0, is_lost: false }) })
    }

    /// What connects now.
    pub(super) async fn connector(&self, now: Moment) -> TlsConnector {
        self.look(now).await.connector.clone()
    }

    /// How often other authorities were taken into use: a receiver that was stopped for want of the right ones is tried again
    /// at once.
    pub(super) async fn changes(&self, now: Moment) -> u64 {
        self.look(now).await.changes
    }

    /// The file is looked at no more than once a second; where it cannot be used, what was read last stays in use.
    async fn look(&self, now: Moment) -> MutexGuard<'_, Read> {
        let mut read = self.read.lock().await;
        if let Some(path) = &self.ca
            && read.at.is_none_or(|at| now.since(at) >= FRESH)
        {
            read.at = Some(now);
            let file = path.display();
            let found = secret::read_bytes(path, MOST_AUTHORITIES_BYTES).await;
            let was_lost = std::mem::replace(&mut read.is_lost, found.is_err());
            match found {
                Ok(authorities) if read.authorities.as_ref() != Some(&authorities) => {
                    match connector(Some(&authorities)) {
                        Ok(connector) => {
                            read.connector = connector;
                            read.changes += 1;
                            tracing::info!(%file, "a receiver's authorities were read anew");
                        }
                        Err(problem) => {
                            tracing::warn!(%file, problem, "a receiver's authorities cannot be used; those before are");
                        }
                    }
                    read.authorities = Some(authorities);
                }
                Err(problem) if !was_lost => {
                    tracing::warn!(%file, problem, "a receiver's authorities cannot be read; those before are used");
                }
                Ok(_) | Err(_) => {}
            }
        }
        read
    }
}

/// Sets up TLS: the authorities in PEM, or the system's.
fn connector(authorities: Option<&[u8]>) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| error.to_string())?;
                roots.add(certificate).map_err(|error| error.to_string())?;
            }
        }
        None => {
            // Some of a system's certificates are always out of date; what counts is that there are some.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err("found no certificate of an authority, expected at least one".to_owned());
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Nothing may be written before the other side is known.
    config.enable_early_data = false;
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Agrees on TLS with a host.
pub(super) async fn handshake(
    connector: &TlsConnector,
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, HandshakeError> {
    let name = ServerName::try_from(host.to_owned()).map_err(|error| HandshakeError::Untrusted(error.to_string()))?;
    connector.connect(name, stream).await.map_err(|error| failed(&error))
}

fn failed(error: &io::Error) -> HandshakeError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        // Advice about anything else would be about a certificate of one's own.
        Some(rustls::Error::InvalidCertificate(_)) => {
            let advice = advice(error, KEYS).unwrap_or_default();
            HandshakeError::Untrusted(format!("TLS: {error}: {advice}"))
        }
        Some(_) => HandshakeError::Untrusted(format!("TLS: {error}")),
        None => HandshakeError::Lost(format!("TLS: {error}")),
    }
}
