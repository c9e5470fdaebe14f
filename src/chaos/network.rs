//! Other ways to receivers than the address says.
//!
//! A network in memory, for simulators: where a thread has one, connections to receivers are made through it and through
//! nothing else. And a detour for a whole process, by `BURSAR_CHAOS_DETOUR`: what goes to one port goes to another one of the
//! same host, so that each replica can have a line of its own to a receiver whose address is the same for all.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use tokio::io::DuplexStream;

/// A connection that is being made.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<DuplexStream>> + Send>>;

/// Connects to a host and port.
pub type Connect = Arc<dyn Fn(&str, u16) -> Connecting + Send + Sync>;

thread_local! {
    static CONNECT: RefCell<Option<Connect>> = const { RefCell::new(None) };
}

/// From now on this thread's connections are made by it; `None`: by the machine.
pub fn set(connect: Option<Connect>) {
    CONNECT.set(connect);
}

/// A connection, where this thread has a network in memory.
pub async fn connect(host: &str, port: u16) -> Option<io::Result<DuplexStream>> {
    let connect = CONNECT.with_borrow(Clone::clone)?;
    Some(connect(host, port).await)
}

/// The port that connections to this one are made to.
///
/// # Panics
/// Where the variable says nothing of two ports.
#[must_use]
pub fn detour(port: u16) -> u16 {
    static DETOUR: OnceLock<Option<(u16, u16)>> = OnceLock::new();
    let detour = DETOUR.get_or_init(|| {
        let text = std::env::var("BURSAR_CHAOS_DETOUR").ok().filter(|text| !text.is_empty())?;
        Some(parse(&text).unwrap_or_else(|| panic!("BURSAR_CHAOS_DETOUR: {text:?} is no PORT=PORT")))
    });
    detour.filter(|(from, _)| *from == port).map_or(port, |(_, to)| to)
}

fn parse(text: &str) -> Option<(u16, u16)> {
    let (from, to) = text.split_once('=')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detour_is_two_ports() {
        assert_eq!(parse("80=8080"), Some((80, 8080)));
        for wrong in ["80", "80=", "=80", "80=x", "80=70000"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(detour(80), 80, "without the variable");
    }
}
