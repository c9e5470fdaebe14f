//! The way in: headers and signature are looked at, the rest is the book's.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::book::{Answer, Book, Order};
use crate::signature::{Signed, is_signed};

/// The largest body, in bytes.
const MOST_BODY: usize = 64 * 1024;

struct Shared {
    book: Book,
    secrets: Vec<Vec<u8>>,
}

/// `POST /payouts` and `GET /payouts/{key}`.
pub fn router(book: Book, secrets: Vec<Vec<u8>>) -> Router {
    Router::new()
        .route("/payouts", post(pay))
        .route("/payouts/{key}", get(look_up))
        .layer(DefaultBodyLimit::max(MOST_BODY))
        .with_state(Arc::new(Shared { book, secrets }))
}

async fn pay(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let Some((key, token, scope)) = names(&headers) else {
        return (StatusCode::BAD_REQUEST, "Idempotency-Key, Fencing-Token or Fencing-Scope is missing").into_response();
    };
    if !shared.is_signed(&headers, Signed { method: "POST", key, token, scope, body: &body }) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match shared.book.take(&Order { key, token, scope, body: &body }).await {
        Ok(answer) => answered(answer),
        // Nothing was committed, or it is not known whether it was: the sender asks again with the same key.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn look_up(State(shared): State<Arc<Shared>>, headers: HeaderMap, Path(asked): Path<String>) -> Response {
    let Some((key, token, scope)) = names(&headers) else { return StatusCode::BAD_REQUEST.into_response() };
    if key != asked || !shared.is_signed(&headers, Signed { method: "GET", key, token, scope, body: b"" }) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match shared.book.look_up(key).await {
        Ok(Some(echo)) => json(StatusCode::OK, echo),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

impl Shared {
    fn is_signed(&self, headers: &HeaderMap, signed: Signed<'_>) -> bool {
        let header = headers.get("bursar-signature").and_then(|value| value.to_str().ok());
        self.secrets.is_empty() || header.is_some_and(|header| is_signed(header, &signed, &self.secrets, now()))
    }
}

fn names(headers: &HeaderMap) -> Option<(&str, i64, &str)> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    Some((text("idempotency-key")?, text("fencing-token")?.parse().ok()?, text("fencing-scope")?))
}

fn answered(answer: Answer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match answer.highest {
        Some(highest) => (status, [("fencing-highest", highest.to_string())]).into_response(),
        None => json(status, answer.body),
    }
}

fn json(status: StatusCode, body: String) -> Response {
    (status, [("content-type", "application/json")], body).into_response()
}

#[expect(clippy::disallowed_methods, reason = "a receiver is another program, and has a clock of its own")]
fn now() -> i64 {
    chrono::Utc::now().timestamp()
}
