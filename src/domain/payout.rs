//! The idempotency key and the bytes of a payout: a pure function of what was settled, the same again after a restore.

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use data_encoding::BASE32_NOPAD;
use serde::Serialize;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::JobName;
use super::money::Currency;
use super::run::RunKind;

/// What an idempotency key is made of.
#[derive(Debug, Clone, Copy)]
pub struct KeyParts<'a> {
    /// The deployment, so that two installations never share a key.
    pub deployment_id: Uuid,
    /// The job.
    pub job: &'a JobName,
    /// Scheduled or manual.
    pub kind: RunKind,
    /// The nominal time, in UTC.
    pub tick: DateTime<Utc>,
    /// The operator's request of a manual run.
    pub request_id: Option<Uuid>,
    /// The unit.
    pub unit_key: &'a str,
    /// 0 at first; grows only when a unit is retried whose instruction was final without effect.
    pub generation: u32,
}

/// Derives the idempotency key: `b` and 26 characters of base32 (130 bits) of SHA-256 over the length-prefixed parts.
/// 27 characters fit a bank's end-to-end id (35).
#[must_use]
pub fn idempotency_key(parts: &KeyParts<'_>) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    part(parts.deployment_id.as_bytes());
    part(parts.job.as_str().as_bytes());
    part(parts.kind.as_str().as_bytes());
    part(parts.tick.to_rfc3339_opts(SecondsFormat::Secs, true).as_bytes());
    part(parts.request_id.as_ref().map_or(&[][..], |id| &id.as_bytes()[..]));
    part(parts.unit_key.as_bytes());
    part(&parts.generation.to_be_bytes());
    let text = BASE32_NOPAD.encode(&hash.finalize());
    format!("b{}", text[..26].to_ascii_lowercase())
}

/// The body of a payout request. Field order is fixed: the bytes are stored and sent as written.
#[derive(Debug, Clone, Serialize)]
pub struct PayoutBody<'a> {
    /// The idempotency key.
    pub key: &'a str,
    /// Who is paid; receivers know the payee by this id.
    pub merchant: &'a str,
    /// Major units, as text.
    pub amount: String,
    /// Minor units, as text.
    pub amount_minor: String,
    /// ISO 4217.
    pub currency: Currency,
    /// The run by what names it also after a restore, which row numbers do not: `JOB/TICK`, and `/REQUEST` of a manual one.
    pub run: String,
    /// The job.
    pub job: &'a JobName,
    /// The nominal time, RFC 3339 in UTC.
    pub tick: String,
    /// The day on which the money counts.
    pub value_date: NaiveDate,
}

impl<'a> PayoutBody<'a> {
    /// Puts a body together; `net` in minor units.
    #[must_use]
    pub fn new(
        key: &'a str,
        merchant: &'a str,
        currency: Currency,
        net: i64,
        parts: &KeyParts<'a>,
        value_date: NaiveDate,
    ) -> Self {
        let tick = parts.tick.to_rfc3339_opts(SecondsFormat::Secs, true);
        let mut run = format!("{}/{tick}", parts.job);
        if let Some(request) = parts.request_id {
            run.push('/');
            run.push_str(&request.hyphenated().to_string());
        }
        Self {
            key,
            merchant,
            amount: currency.format(net),
            amount_minor: net.to_string(),
            currency,
            run,
            job: parts.job,
            tick,
            value_date,
        }
    }

    /// The bytes, as stored and sent.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_depends_on_every_part_and_on_nothing_else() {
        let job = JobName::new("daily").expect("valid");
        let other = JobName::new("dail").expect("valid");
        let tick = DateTime::from_timestamp(1_800_000_000, 0).expect("in range");
        let base = KeyParts {
            deployment_id: Uuid::from_u128(1),
            job: &job,
            kind: RunKind::Tick,
            tick,
            request_id: None,
            unit_key: "EUR:m",
            generation: 0,
        };
        let key = idempotency_key(&base);
        assert_eq!(key.len(), 27);
        assert!(key.bytes().all(|b| b.is_ascii_lowercase() || (b'2'..=b'7').contains(&b)));
        assert_eq!(key, idempotency_key(&base.clone()));
        let others = [
            KeyParts { deployment_id: Uuid::from_u128(2), ..base },
            KeyParts { job: &other, ..base },
            KeyParts { kind: RunKind::Manual, ..base },
            KeyParts { tick: tick + chrono::Duration::seconds(1), ..base },
            KeyParts { request_id: Some(Uuid::from_u128(3)), ..base },
            KeyParts { unit_key: "EUR:n", ..base },
            KeyParts { generation: 1, ..base },
        ];
        for changed in others {
            assert_ne!(key, idempotency_key(&changed), "{changed:?}");
        }
    }

    #[test]
    fn the_body_says_the_amount_in_both_forms() {
        let job = JobName::new("daily").expect("valid");
        let tick = DateTime::from_timestamp(1_800_000_000, 0).expect("in range");
        let parts = KeyParts {
            deployment_id: Uuid::nil(),
            job: &job,
            kind: RunKind::Tick,
            tick,
            request_id: None,
            unit_key: "EUR:m",
            generation: 0,
        };
        let day = NaiveDate::from_ymd_opt(2027, 1, 15).expect("valid");
        let eur = Currency::new("EUR").expect("valid");
        let body = PayoutBody::new("bkey", "m", eur, 10900, &parts, day).to_bytes();
        assert_eq!(
            String::from_utf8(body).expect("utf-8"),
            r#"{"key":"bkey","merchant":"m","amount":"109.00","amount_minor":"10900","currency":"EUR","run":"daily/2027-01-15T08:00:00Z","job":"daily","tick":"2027-01-15T08:00:00Z","value_date":"2027-01-15"}"#
        );
        let request_id = Some(Uuid::from_u128(3));
        let manual = PayoutBody::new("bkey", "m", eur, 10900, &KeyParts { request_id, ..parts }, day);
        assert_eq!(manual.run, "daily/2027-01-15T08:00:00Z/00000000-0000-0000-0000-000000000003");
    }
}
