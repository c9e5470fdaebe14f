//! Free ports on loopback, each handed out once per test process.
//!
//! They lie below the kernel's ephemeral range, so that no outgoing connection takes one between its choice and its use,
//! and the walk starts at a place of the process's own, so that two test processes seldom meet.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;

/// First port of the range.
const FIRST: u16 = 10_000;
/// How many ports the range has: it ends below 32768, where the ephemeral ports begin.
const COUNT: u16 = 22_000;

static NEXT: Mutex<Option<u16>> = Mutex::new(None);

/// A port of 127.0.0.1 that nobody listens on.
///
/// # Panics
/// When the whole range is taken.
pub fn free_port() -> u16 {
    let mut next = NEXT.lock().expect("nobody panics while holding it");
    let start = next.unwrap_or_else(|| {
        let spread = std::process::id().wrapping_mul(977) % u32::from(COUNT);
        u16::try_from(spread).expect("a remainder of COUNT")
    });
    for step in 0..COUNT {
        let offset = (start + step) % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, FIRST + offset)).is_ok() {
            *next = Some((offset + 1) % COUNT);
            drop(next);
            return FIRST + offset;
        }
    }
    panic!("no free port in {FIRST}..{}", FIRST + COUNT);
}

/// The port of a server that another test process shares with this one, where it says so.
///
/// # Panics
/// When the variable is no port.
pub fn lent(variable: &str) -> Option<u16> {
    let port = std::env::var(variable).ok()?;
    Some(port.parse().unwrap_or_else(|error| panic!("{variable}: {port:?}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_handed_out_twice() {
        let ports: std::collections::BTreeSet<u16> = (0..50).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 50);
    }
}
