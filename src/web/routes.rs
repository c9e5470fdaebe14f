//! The routes, over a picture of the replica that is always there.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::page::{self, Page};
use crate::clock;
use crate::domain::Moment;

/// What the port shows. Every method answers at once, from memory.
pub trait Picture: Send + Sync + 'static {
    /// Whether the workers' loop lives.
    ///
    /// # Errors
    /// What is wrong with it.
    fn alive(&self) -> Result<(), String>;

    /// Why this replica could not lead; empty where it could. A follower is ready.
    fn not_ready(&self) -> Vec<String>;

    /// The page of metrics in Prometheus' text format.
    fn metrics(&self) -> String;

    /// The status, with the age of whatever is remembered from the store.
    fn status(&self) -> Value;

    /// What the status page shows.
    fn page(&self) -> Page;
}

/// The routes that exist, for whoever asks for another one.
const ROUTES: [&str; 5] = ["/", "/livez", "/readyz", "/metrics", "/status.json"];

/// The longest that others have the thread to themselves after a large answer.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

type Shared = State<Arc<dyn Picture>>;

/// The routes over a picture.
pub fn router(picture: Arc<dyn Picture>) -> Router {
    let large = Router::new()
        .route("/", get(page))
        .route("/metrics", get(metrics))
        .route("/status.json", get(status))
        .route_layer(middleware::from_fn_with_state(Arc::new(Mutex::new(Moment::BOOT)), one_at_a_time));
    large
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .fallback(unknown)
        .with_state(picture)
        .layer(middleware::from_fn(only_reading))
}

async fn page(State(picture): Shared) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, page::policy()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, page::render(&picture.page())).into_response()
}

async fn livez(State(picture): Shared) -> Response {
    match picture.alive() {
        Ok(()) => Json(json!({ "alive": true })).into_response(),
        Err(why) => unavailable(json!({ "alive": false, "reasons": [why] })),
    }
}

async fn readyz(State(picture): Shared) -> Response {
    let reasons = picture.not_ready();
    if reasons.is_empty() {
        Json(json!({ "ready": true, "reasons": [] })).into_response()
    } else {
        unavailable(json!({ "ready": false, "reasons": reasons }))
    }
}

async fn metrics(State(picture): Shared) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], picture.metrics()).into_response()
}

async fn status(State(picture): Shared) -> Response {
    Json(picture.status()).into_response()
}

/// What takes a while to write is written one at a time, and the thread is left to others for as long as that took before the next:
/// whoever asks for it a hundred times at once waits for itself, and a health check for one answer at most.
async fn one_at_a_time(State(turns): State<Arc<Mutex<Moment>>>, request: Request, next: Next) -> Response {
    let mut free_at = turns.lock().await;
    let wait = free_at.since(clock::monotonic());
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    let since = clock::monotonic();
    let answer = next.run(request).await;
    let now = clock::monotonic();
    *free_at = now + left_to_others(now.since(since));
    answer
}

/// How long the thread is left to others after an answer that took so long. Where the process stood still meanwhile, that was no work.
fn left_to_others(took: Duration) -> Duration {
    took.min(LONGEST_PAUSE)
}

/// Nothing can be changed here: whatever asks for more than to read is refused, unread, and its connection closed.
async fn only_reading(request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let answer = json!({ "error": "this port is read-only: expected GET or HEAD", "routes": ROUTES });
    let headers = [(header::ALLOW, "GET, HEAD"), (header::CONNECTION, "close")];
    (StatusCode::METHOD_NOT_ALLOWED, headers, Json(answer)).into_response()
}

async fn unknown(uri: Uri) -> Response {
    let answer = json!({ "error": format!("nothing at {}", uri.path()), "routes": ROUTES });
    (StatusCode::NOT_FOUND, Json(answer)).into_response()
}

fn unavailable(answer: Value) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, Json(answer)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_stood_still_while_it_answered_does_not_keep_its_pages_back_for_as_long() {
        let of = |ms| left_to_others(Duration::from_millis(ms)).as_millis();
        assert_eq!([0, 3, 250, 251, 3_600_000].map(of), [0, 3, 250, 250, 250]);
    }
}
