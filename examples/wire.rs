//! The two ends of a measurement: a server that answers after a time, and the barest client that makes the same requests.
//!
//! `cargo run --release --example wire -- serve PORT MILLISECONDS` answers every request so long after it came.
//! `cargo run --release --example wire -- ask PORT REQUESTS CONCURRENCY` makes so many, and prints the seconds that it took.
//! Nothing is written down, signed, fenced or checked: it is what bursar is measured beside.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bare client that times itself and says how long"
)]

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

type Failure = Box<dyn Error + Send + Sync>;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{\"done\":true}";

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve", port, millis] => serve(port.parse()?, Duration::from_millis(millis.parse()?)).await,
        ["ask", port, requests, concurrency] => ask(port.parse()?, requests.parse()?, concurrency.parse()?).await,
        _ => Err("usage: wire serve PORT MILLISECONDS | wire ask PORT REQUESTS CONCURRENCY".into()),
    }
}

/// One message, head and body; `None` at the end of the connection. What is beyond it stays in `buffer`.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Option<()>, Failure> {
    loop {
        if let Some(head) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
            let whole = head + 4 + length.map_or(Ok(0), |length| length.trim().parse::<usize>())?;
            if buffer.len() >= whole {
                buffer.drain(..whole);
                return Ok(Some(()));
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

async fn serve(port: u16, after: Duration) -> Result<(), Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let mut connections = JoinSet::new();
    loop {
        let (mut stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        connections.spawn(async move {
            let mut buffer = Vec::new();
            while read(&mut stream, &mut buffer).await?.is_some() {
                tokio::time::sleep(after).await;
                stream.write_all(ANSWER).await?;
            }
            Ok::<(), Failure>(())
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn ask(port: u16, requests: usize, concurrency: usize) -> Result<(), Failure> {
    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut askers = JoinSet::new();
    for _ in 0..concurrency {
        let next = Arc::clone(&next);
        askers.spawn(async move {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
            stream.set_nodelay(true)?;
            let mut buffer = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= requests {
                    return Ok::<(), Failure>(());
                }
                let body =
                    format!("{{\"key\":\"b{number:026}\",\"unit\":\"u-{number}\",\"payload\":{{\"n\":{number}}}}}");
                let request = format!(
                    "POST /units HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                     idempotency-key: b{number:026}\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(request.as_bytes()).await?;
                read(&mut stream, &mut buffer).await?.ok_or("the server closed the connection")?;
            }
        });
    }
    while let Some(asker) = askers.join_next().await {
        asker??;
    }
    println!("{:.3}", begun.elapsed().as_secs_f64());
    Ok(())
}
