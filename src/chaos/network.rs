//! A network in memory, for simulators: where a thread has one, connections to receivers are made through it and through
//! nothing else.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

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
