//! What leaves the house: requests to receivers, and processes of `command` handlers, without a store.

mod answers;
pub mod ground;
mod processes;
mod reference;
mod requests;
mod tls;
