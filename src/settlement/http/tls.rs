//! TLS of requests: rustls with ring; the system's authorities, or those of a file. One's own certificate is not shown.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsConnector, rustls};

/// Why a handshake failed.
pub(super) enum HandshakeError {
    /// The other side is not who it should be, or does not speak TLS as we do.
    Untrusted(String),
    /// The connection was lost.
    Lost(String),
}

/// Sets up TLS once for a receiver.
pub(super) fn connector(ca: Option<&Path>) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let certificates = CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())?;
            for certificate in certificates {
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
    let by_tls = error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>);
    let text = format!("TLS: {error}");
    if by_tls { HandshakeError::Untrusted(text) } else { HandshakeError::Lost(text) }
}
