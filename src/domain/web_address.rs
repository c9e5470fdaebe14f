//! Addresses that requests go to: the few forms of a URL that a receiver may have, read strictly.
//!
//! Deliberately absent: users and passwords in a URL (they end up in logs), fragments, names that are not ASCII, and every
//! repair that a browser would make.

use std::fmt;

/// The longest address, in bytes.
pub const MOST_ADDRESS: usize = 2048;
/// What stands for the idempotency key in a look-up's address.
pub const KEY_PLACE: &str = "{key}";

/// An `http` or `https` URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WebAddress {
    secure: bool,
    host: String,
    port: u16,
    target: String,
}

/// Why a text is no [`WebAddress`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {found}, expected a URL such as \"https://bank.internal/payouts\"")]
pub struct AddressError {
    found: &'static str,
}

const fn error(found: &'static str) -> AddressError {
    AddressError { found }
}

impl WebAddress {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with it; never the text itself, which may hold a secret by mistake.
    pub fn new(text: &str) -> Result<Self, AddressError> {
        if text.len() > MOST_ADDRESS {
            return Err(error("more than 2048 bytes"));
        }
        let (secure, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(error("no http:// or https:// at its start")),
        };
        if !rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte)) {
            return Err(error("a character that a URL does not have"));
        }
        if rest.contains('#') {
            return Err(error("a fragment"));
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            return Err(error("a user in the URL"));
        }
        let (host, port) = authority_of(authority)?;
        let port = match port {
            None => {
                if secure {
                    443
                } else {
                    80
                }
            }
            Some(port) => port,
        };
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        Ok(Self { secure, host, port, target })
    }

    /// Reads an address that has [`KEY_PLACE`] once, after the host, and puts a key there.
    ///
    /// # Errors
    /// As [`WebAddress::new`].
    pub fn for_key(text: &str, key: &str) -> Result<Self, AddressError> {
        let mut parts = text.split(KEY_PLACE);
        let (Some(before), Some(after), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(error("not exactly one {key}"));
        };
        // The host must be whole before the key begins.
        let host_ends = before.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?']));
        if !host_ends {
            return Err(error("{key} inside the host"));
        }
        Self::new(&format!("{before}{}{after}", escaped(key)))
    }

    /// Whether it is `https`.
    #[must_use]
    pub const fn is_secure(&self) -> bool {
        self.secure
    }

    /// Name or address, without the brackets of IPv6.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, with the scheme's default filled in.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Path and query, `/` first.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Host and port as a `Host` header has them: the scheme's own port is left out.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == if self.secure { 443 } else { 80 } { host } else { format!("{host}:{}", self.port) }
    }

    /// Scheme, host and port: what a receiver is stopped by.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}://{}", if self.secure { "https" } else { "http" }, self.authority())
    }
}

impl fmt::Display for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.target)
    }
}

fn authority_of(authority: &str) -> Result<(String, Option<u16>), AddressError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(|| error("a [ without its ]"))?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(error("no IPv6 address in the brackets"));
            }
            match port {
                "" => (host, None),
                port => (host, Some(port.strip_prefix(':').ok_or_else(|| error("something after the ]"))?)),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    if host.is_empty() || host.len() > 253 || !host.bytes().all(fits) {
        return Err(error("no host"));
    }
    let port = match port {
        None => None,
        Some(port) => match port.parse::<u16>() {
            Ok(number) if number > 0 && number.to_string() == port => Some(number),
            Ok(_) | Err(_) => return Err(error("a port that is none")),
        },
    };
    Ok((host.to_ascii_lowercase(), port))
}

/// Percent-encodes all but what stands for itself everywhere in a URL.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&data_encoding::HEXUPPER.encode(&[byte]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_read_in_parts() {
        for (text, origin, authority, target) in [
            ("https://Bank.internal/payouts?a=b", "https://bank.internal", "bank.internal", "/payouts?a=b"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080", "127.0.0.1:8080", "/"),
            ("https://[::1]:8443/x", "https://[::1]:8443", "[::1]:8443", "/x"),
            ("https://bank:443?q", "https://bank", "bank", "/?q"),
            ("http://bank:443", "http://bank:443", "bank:443", "/"),
        ] {
            let address = WebAddress::new(text).expect(text);
            assert_eq!((address.origin().as_str(), address.authority().as_str()), (origin, authority), "{text}");
            assert_eq!(address.target(), target, "{text}");
        }
    }

    #[test]
    fn what_is_no_plain_address_is_refused() {
        for text in [
            "bank/payouts",
            "ftp://bank",
            "https://",
            "https:///x",
            "https://u:p@bank/",
            "https://bank/#a",
            "https://bank/a b",
            "https://bank/\u{e9}",
            "https://bank:0/",
            "https://bank:+1/",
            "https://bank:65536/",
            "https://[::1/",
            "https://[bank]/",
            "https://bank/{key}",
            "https://bank\r\nX: y/",
        ] {
            assert!(WebAddress::new(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_key_takes_its_place_once_and_after_the_host() {
        let address = WebAddress::for_key("https://bank/payouts/{key}?full", "b/ä").expect("an address");
        assert_eq!(address.target(), "/payouts/b%2F%C3%A4?full");
        for text in ["https://bank/payouts", "https://bank/{key}/{key}", "https://{key}.bank/", "https://bank:{key}"] {
            assert!(WebAddress::for_key(text, "b").is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_read_the_same_again(text in "(https?://)?[ -~]{0,40}") {
            if let Ok(address) = WebAddress::new(&text) {
                prop_assert_eq!(WebAddress::new(&address.to_string()), Ok(address));
            }
        }
    }
}
