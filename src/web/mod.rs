//! The read-only HTTP port: the status page at `/`, and `/livez`, `/readyz`, `/metrics`, `/status.json`.
//!
//! Why a thread of its own: a replica whose workers or store hang must still say so. The port runs on its own
//! single-threaded runtime and reads from a [`Picture`], which answers from memory and never waits.
//!
//! Invariants:
//! - No answer waits for the store, the coordinator or the workers.
//! - Connections are bounded in number ([`MOST_CONNECTIONS`]) and in time ([`HEAD_WITHIN`], [`EXCHANGE_WITHIN`]), heads in size, and no body
//!   is read. Whoever keeps connections open keeps nobody else out.
//! - Nothing can be changed through it.
//!
//! Deliberately absent: the store's and the coordinator's ports, TLS, authentication: it is for the inside of a deployment
//! and shows keys and counts only (`told`).

mod listener;
mod page;
mod routes;
mod server;
mod told;

pub use listener::{EXCHANGE_WITHIN, HEAD_WITHIN, MOST_CONNECTIONS};
pub use page::{Aged, Details, ElectionLine, NextTick, Page};
pub use routes::{Picture, router};
pub use server::{WebError, WebServer};
pub use told::why_of;
