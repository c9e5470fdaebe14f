//! The reference receiver: how a service takes payouts from bursar so that none is made twice.
//!
//! ```text
//! cargo run --example receiver -- --listen 127.0.0.1:8080 --book book.db --secret-file secret
//! ```
//!
//! What matters is in two files to be read, and translated, by whoever writes a receiver:
//! - `book.rs`: in one transaction, the token is compared with the highest seen in its scope, the key with the keys known,
//!   and the payment is made. Each of the three without the others lets a payment through twice.
//! - `signature.rs`: who sent the request, and that nothing of it was changed.

mod book;
mod serve;
mod signature;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;

use crate::book::{Book, OtherBody};

/// Takes payouts, each once.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The file of the book.
    #[arg(long, default_value = "book.db")]
    book: PathBuf,
    /// A file with a secret that requests are signed with; twice while it is being exchanged. None: signatures are not looked at.
    #[arg(long)]
    secret_file: Vec<PathBuf>,
    /// How a known key with another body is answered: 409 or 422.
    #[arg(long, default_value = "422")]
    other_body: u16,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let other_body = match arguments.other_body {
        409 => OtherBody::Conflict,
        422 => OtherBody::Unprocessable,
        other => anyhow::bail!("--other-body: found {other}, expected 409 or 422"),
    };
    let mut secrets = Vec::new();
    for path in &arguments.secret_file {
        let mut secret = std::fs::read(path)?;
        while matches!(secret.last(), Some(b'\r' | b'\n')) {
            secret.pop();
        }
        secrets.push(secret);
    }
    let book = Book::open(&arguments.book, other_body).await?;
    let listener = tokio::net::TcpListener::bind(arguments.listen).await?;
    axum::serve(listener, serve::router(book, secrets)).await?;
    Ok(())
}
