//! A request to a receiver: used for payouts, and for the handler `http`.
//!
//! The way of one request: [`Receiver::send`] waits for its turn (requests in flight, requests per second), connects, asks
//! for leave, writes, reads a bounded answer, and hands what it saw ([`Seen`]) to [`verdict`], a pure function. Nothing is
//! tried again here: whether another try is allowed is the store's decision, from the verdict and from the doubt on record.
//!
//! Invariants:
//! - Leave is asked when the connection is up, right before the first byte; a refusal, or a time that has run out
//!   meanwhile ([`Request::not_after`]), sends nothing.
//! - "No byte was written" is known, not guessed: every byte of a request passes a stream that remembers it. Whatever
//!   failed without one is proved undone; whatever failed after one is not known, also on a connection that is used again.
//! - A receiver that is not idempotent gets a fresh connection for each request.
//! - Redirects are answers, never followed. Nothing is decompressed. Head, body and time are bounded.
//! - Secrets are read from files, anew when they change, and are never shown.
//!
//! # What a receiver gets
//!
//! `POST`, the stored bytes as body (JSON), and the headers
//!
//! | header | is |
//! |---|---|
//! | `Idempotency-Key` | the same at every try of one instruction |
//! | `Fencing-Token` | the term of the leader that sends, a whole number |
//! | `Fencing-Scope` | `deployment/election`: tokens are compared within one scope only |
//! | `Bursar-Signature` | `t=SECONDS,v1=HEX[,v1=HEX]` where secrets are configured ([`signature`]) |
//!
//! Deliberately absent: client certificates, proxies, HTTP/2, cookies, compression.

mod answer;
mod client;
mod echo;
mod handler;
mod limits;
mod look_up;
mod pace;
mod receiver;
mod retry_after;
mod secrets;
pub mod signature;
mod stream;
mod tls;

pub use answer::{Asked, Body, Response, Seen, StopReason, Unsent, Verdict, verdict};
pub use client::{MOST_ANSWER_BYTES, MOST_HEAD_BYTES};
pub use echo::Expected;
pub use handler::{AskStoreTime, HttpHandler, call_outcome};
pub use look_up::{LookUp, look_up_verdict};
pub use pace::Pace;
pub use receiver::{Receiver, ReceiverError, Receivers, Request, StoreTime};
pub use retry_after::{MOST_RETRY_AFTER, retry_after};
pub use secrets::{Secrets, SecretsError, SigningKey};
