//! What a TLS handshake that failed means, in words that name what to do.
//!
//! Clients of etcd and PostgreSQL hand on what rustls says deep in a chain of causes, or say "transport error" and no more.
//! Pure: an error in, a sentence out. Deliberately absent: handshakes.

use std::error::Error;

use tokio_rustls::rustls::{AlertDescription, CertificateError, Error as TlsError, InvalidMessage};

/// What the keys of a configuration are called that a sentence may name.
#[derive(Debug, Clone, Copy)]
pub struct Keys {
    /// The authorities.
    pub ca: &'static str,
    /// What decides which name the server's certificate must bear.
    pub name: &'static str,
    /// One's own certificate.
    pub cert: &'static str,
}

/// Those of the way to the database, of whichever part of bursar goes it.
pub const DATABASE: Keys = Keys { ca: "database.tls_ca", name: "the host of database.url", cert: "database.tls_cert" };

/// The whole chain of causes, each said once: the outermost often says nothing.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut said = error.to_string();
    for cause in causes(error).skip(1) {
        let words = cause.to_string();
        if !said.contains(&words) {
            said.push_str(": ");
            said.push_str(&words);
        }
    }
    said
}

/// What to do about it, where TLS is what failed.
#[must_use]
pub fn advice(error: &(dyn Error + 'static), keys: Keys) -> Option<String> {
    causes(error).find_map(|cause| cause.downcast_ref::<TlsError>()).map(|error| of(error, keys))
}

/// The same of words alone: HTTP/2 keeps what the other side said after the handshake, and forgets that it was TLS.
#[must_use]
pub fn advice_in(said: &str, keys: Keys) -> Option<String> {
    let (_, alert) = said.split_once("received fatal alert: ")?;
    let is_one_of = |names: &[&str]| names.iter().any(|name| alert.starts_with(name));
    Some(if is_one_of(&["CertificateRequired"]) {
        asked_for(keys.cert)
    } else if is_one_of(&["Bad", "Certificate", "Unsupported", "UnknownCA", "AccessDenied", "Decrypt"]) {
        refuses(keys.cert)
    } else {
        "the server breaks TLS off: its log says more".to_owned()
    })
}

/// An error and what it was caused by. What an I/O error wraps is a cause too, though it does not say so.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        wrapped.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

fn of(error: &TlsError, keys: Keys) -> String {
    let Keys { ca, name, cert } = keys;
    match error {
        TlsError::InvalidCertificate(why) => match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                format!("the server's certificate is of no authority in {ca}: put the authority that signed it there")
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("the server's certificate is for another name: {name} must be one that it bears")
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the server's certificate has expired, or this host's clock is ahead: renew the one, set the other"
                    .to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the server's certificate is not valid yet, or this host's clock is behind".to_owned()
            }
            CertificateError::Revoked => "the server's certificate was revoked: give the server another".to_owned(),
            _ => format!("the server's certificate is not accepted: look at it and at {ca}"),
        },
        TlsError::AlertReceived(alert) => refused(*alert, cert),
        TlsError::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the server does not speak TLS at this port: look at the address".to_owned()
        }
        _ => format!("no agreement on TLS: look at {ca}, {cert} and at the server's log"),
    }
}

/// The other side says why it does not want us.
fn refused(alert: AlertDescription, cert: &str) -> String {
    match alert {
        AlertDescription::CertificateRequired => asked_for(cert),
        AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateRevoked
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError => refuses(cert),
        _ => format!("the server breaks TLS off ({alert:?}): the server's log says more"),
    }
}

fn asked_for(cert: &str) -> String {
    format!("the server asks for a certificate: set {cert}")
}

fn refuses(cert: &str) -> String {
    format!(
        "the server refuses {cert}, or misses it: it must be valid, not revoked, and of an authority that the server knows; the server's log \
         says more"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: Keys = Keys { ca: "x.ca", name: "x.name", cert: "x.cert" };

    fn said(error: TlsError) -> String {
        // As clients hand it on: wrapped twice.
        let wrapped = std::io::Error::other(std::io::Error::new(std::io::ErrorKind::InvalidData, error));
        advice(&wrapped, KEYS).expect("TLS is what failed")
    }

    #[test]
    fn each_failure_names_what_to_do() {
        assert!(said(TlsError::InvalidCertificate(CertificateError::UnknownIssuer)).contains("x.ca"));
        assert!(said(TlsError::InvalidCertificate(CertificateError::NotValidForName)).contains("x.name"));
        assert!(said(TlsError::InvalidCertificate(CertificateError::Expired)).contains("expired"));
        assert!(said(TlsError::AlertReceived(AlertDescription::CertificateRequired)).contains("set x.cert"));
        assert!(said(TlsError::AlertReceived(AlertDescription::CertificateRevoked)).contains("refuses x.cert"));
        assert!(said(TlsError::InvalidMessage(InvalidMessage::InvalidContentType)).contains("does not speak TLS"));
    }

    #[test]
    fn an_alert_is_known_by_its_words_too() {
        let of = |said: &str| advice_in(said, KEYS);
        assert!(
            of("transport error: received fatal alert: CertificateRequired")
                .is_some_and(|it| it.contains("set x.cert"))
        );
        assert!(of("received fatal alert: BadCertificate").is_some_and(|it| it.contains("refuses x.cert")));
        assert_eq!(of("connection refused"), None);
    }

    #[test]
    fn what_is_not_tls_has_no_advice_and_causes_are_said_once() {
        let plain = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
        assert_eq!(advice(&plain, KEYS), None);
        assert_eq!(chain(&std::io::Error::other(plain)), "connection refused");
    }
}
