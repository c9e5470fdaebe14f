//! The book: every payment once, by its key, and never for a leader that was replaced.
//!
//! A request is taken in one transaction, which
//! 1. compares its token with the highest seen in its scope: a lower one is refused (412, with the highest), a higher one
//!    is remembered. A leader that was replaced while its request was under way is told so, whatever it asks for;
//! 2. looks its key up: a known one gets the answer that it got before, provided that its body is the same, byte by byte;
//! 3. makes the payment, and remembers the answer.
//!
//! They belong together. Keys without tokens let an old leader pay what the new one has set aside. Tokens without keys let
//! one leader pay twice. Both, but in transactions of their own, let two requests pass the checks before either has paid.
//!
//! Here, to make a payment is a row in the same database. Where it is a call to yet another system, write "asked for" in
//! this transaction, call after the commit, and let a worker finish what was left.

use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Row, SqliteConnection, SqlitePool};

const SCHEMA: &str = "
create table if not exists fence (scope text primary key, highest integer not null);
create table if not exists answered (key text primary key, body_sha256 blob not null, status integer not null, body text not null);
create table if not exists payment (key text primary key, merchant text not null, amount_minor text not null,
                                    currency text not null, reference text not null unique,
                                    scope text not null, token integer not null);
";

/// A request, with the headers' values.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// `Idempotency-Key`.
    pub key: &'a str,
    /// `Fencing-Token`.
    pub token: i64,
    /// `Fencing-Scope`.
    pub scope: &'a str,
    /// The body.
    pub body: &'a [u8],
}

/// What it is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// `Fencing-Highest`, where it was refused for its token.
    pub highest: Option<i64>,
    /// JSON.
    pub body: String,
}

/// How a known key with another body is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherBody {
    /// 409.
    Conflict,
    /// 422.
    Unprocessable,
}

impl OtherBody {
    const fn status(self) -> u16 {
        match self {
            Self::Conflict => 409,
            Self::Unprocessable => 422,
        }
    }
}

/// The book.
#[derive(Debug, Clone)]
pub struct Book {
    pool: SqlitePool,
    other_body: OtherBody,
}

impl Book {
    /// Opens the book in a file, which is made where it is missing.
    pub async fn open(path: &Path, other_body: OtherBody) -> Result<Self, sqlx::Error> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // What was answered must outlive a loss of power.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(10));
        let pool = SqlitePoolOptions::new().max_connections(4).connect_with(options).await?;
        sqlx::raw_sql(SCHEMA).execute(&pool).await?;
        Ok(Self { pool, other_body })
    }

    /// Takes a request. On an error nothing was decided: it is to be answered with a status that says "ask again".
    pub async fn take(&self, order: &Order<'_>) -> Result<Answer, sqlx::Error> {
        // Immediate: the lock is taken before anything is read, so that no two requests see the same state.
        let mut transaction = self.pool.begin_with("begin immediate").await?;
        let answer = self.decide(&mut transaction, order).await?;
        transaction.commit().await?;
        Ok(answer)
    }

    async fn decide(&self, db: &mut SqliteConnection, order: &Order<'_>) -> Result<Answer, sqlx::Error> {
        let highest: Option<i64> = sqlx::query_scalar("select highest from fence where scope = ?")
            .bind(order.scope)
            .fetch_optional(&mut *db)
            .await?;
        if let Some(highest) = highest.filter(|highest| *highest > order.token) {
            return Ok(Answer { status: 412, highest: Some(highest), body: String::new() });
        }
        sqlx::query("insert into fence values (?, ?) on conflict (scope) do update set highest = excluded.highest")
            .bind(order.scope)
            .bind(order.token)
            .execute(&mut *db)
            .await?;
        let sha256 = Sha256::digest(order.body).to_vec();
        let known = sqlx::query("select body_sha256, status, body from answered where key = ?")
            .bind(order.key)
            .fetch_optional(&mut *db)
            .await?;
        if let Some(known) = known {
            if known.try_get::<Vec<u8>, _>(0)? != sha256 {
                let body = r#"{"error":"this key was used with another body"}"#.to_owned();
                return Ok(Answer { status: self.other_body.status(), highest: None, body });
            }
            let status: i64 = known.try_get(1)?;
            return Ok(Answer { status: u16::try_from(status).unwrap_or(500), highest: None, body: known.try_get(2)? });
        }
        let answer = pay(db, order).await?;
        sqlx::query("insert into answered values (?, ?, ?, ?)")
            .bind(order.key)
            .bind(sha256)
            .bind(i64::from(answer.status))
            .bind(&answer.body)
            .execute(&mut *db)
            .await?;
        Ok(answer)
    }

    /// What a look-up is answered; `None` where no payment was made under the key, or none yet.
    pub async fn look_up(&self, key: &str) -> Result<Option<String>, sqlx::Error> {
        let row = sqlx::query("select key, amount_minor, currency, reference from payment where key = ?")
            .bind(key)
            .fetch_optional(&self.pool)
            .await?;
        row.map(|row| Ok(echo(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?))).transpose()
    }
}

/// Makes the payment; or says why not, which is an answer as well, and remembered.
async fn pay(db: &mut SqliteConnection, order: &Order<'_>) -> Result<Answer, sqlx::Error> {
    let read: serde_json::Value = serde_json::from_slice(order.body).unwrap_or_default();
    let text = |name: &str| read[name].as_str().unwrap_or_default();
    let (merchant, amount, currency) = (text("merchant"), text("amount_minor"), text("currency"));
    if text("key") != order.key || merchant.is_empty() || amount.parse::<i64>().unwrap_or(0) <= 0 || currency.len() != 3
    {
        return Ok(Answer { status: 422, highest: None, body: r#"{"error":"not a payout"}"#.to_owned() });
    }
    let count: i64 = sqlx::query_scalar("select count(*) from payment").fetch_one(&mut *db).await?;
    let reference = format!("P{:08}", count + 1);
    sqlx::query("insert into payment values (?, ?, ?, ?, ?, ?, ?)")
        .bind(order.key)
        .bind(merchant)
        .bind(amount)
        .bind(currency)
        .bind(&reference)
        .bind(order.scope)
        .bind(order.token)
        .execute(&mut *db)
        .await?;
    Ok(Answer { status: 201, highest: None, body: echo(order.key, amount, currency, &reference) })
}

/// What the sender compares with what it sent.
fn echo(key: &str, amount_minor: &str, currency: &str, reference: &str) -> String {
    serde_json::json!({
        "key": key, "amount_minor": amount_minor, "currency": currency, "reference": reference, "status": "paid",
    })
    .to_string()
}
