//! The signature of a request: a receiver can tell who sent it, and that nothing of it was changed.
//!
//! ```text
//! Bursar-Signature: t=1800000000,v1=5f0c…,v1=9ab1…
//! ```
//!
//! `t` is the time of sending in seconds since 1970, by the store's clock. Each `v1` is the HMAC-SHA256, in 64 lower-case
//! hexadecimal digits, under one of the secrets that are valid at the time, of these bytes, each line ended by a single
//! line feed:
//!
//! ```text
//! bursar-v1
//! POST                    the method
//! 1800000000              t
//! b…                      Idempotency-Key
//! 7                       Fencing-Token
//! 6f…/settlement          Fencing-Scope
//! {"key":…}               the body, to its end
//! ```
//!
//! To verify: take `t` from the header and refuse it where it is more than five minutes away; compute the HMAC with one's
//! own secret over what was received; compare it, in constant time, with each `v1`; one that agrees is enough. While a
//! secret is being exchanged there are two, so that sender and receiver need not change at the same moment. Unknown parts
//! of the header are passed over.
//!
//! A secret is the content of its file without the line break at its end, as bytes.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::secrets::SigningKey;
use crate::domain::Term;

/// The header's name.
pub const HEADER: &str = "bursar-signature";

/// What is signed.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// `POST`, or `GET` for a look-up.
    pub method: &'a str,
    /// Seconds since 1970, by the store's clock.
    pub time: i64,
    /// The idempotency key.
    pub key: &'a str,
    /// The token.
    pub term: Term,
    /// Its scope.
    pub scope: &'a str,
    /// The bytes sent.
    pub body: &'a [u8],
}

impl Signed<'_> {
    /// The HMAC under one secret, in hexadecimal.
    ///
    /// # Panics
    /// Never: HMAC takes a key of any length.
    #[must_use]
    pub fn under(&self, secret: &SigningKey) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose()).expect("HMAC takes a key of any length");
        let head = format!("bursar-v1\n{}\n{}\n{}\n{}\n{}\n", self.method, self.time, self.key, self.term, self.scope);
        mac.update(head.as_bytes());
        mac.update(self.body);
        data_encoding::HEXLOWER.encode(&mac.finalize().into_bytes())
    }

    /// The header's value: one signature for each secret; `None` where there is none.
    #[must_use]
    pub fn header(&self, secrets: &[SigningKey]) -> Option<String> {
        if secrets.is_empty() {
            return None;
        }
        let mut value = format!("t={}", self.time);
        for secret in secrets {
            // Writing to a text cannot fail.
            let _ = write!(value, ",v1={}", self.under(secret));
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed<'a>() -> Signed<'a> {
        let term = Term::new(7).expect("not negative");
        Signed { method: "POST", time: 1_800_000_000, key: "bkey", term, scope: "d/settlement", body: b"{}" }
    }

    #[test]
    fn the_signature_is_what_another_program_computes() {
        // printf 'bursar-v1\nPOST\n1800000000\nbkey\n7\nd/settlement\n{}' | openssl dgst -sha256 -hmac 0123456789abcdef
        let secret = SigningKey::new(b"0123456789abcdef".to_vec());
        assert_eq!(signed().under(&secret), "bce66be6769d489cf5052e02b0e73384570aa63716b9e25f6c18a169f0a277c1");
    }

    #[test]
    fn every_part_counts_and_each_secret_signs() {
        let (one, two) = (SigningKey::new(vec![1; 16]), SigningKey::new(vec![2; 16]));
        let base = signed();
        let others = [
            Signed { method: "GET", ..base },
            Signed { time: 1, ..base },
            Signed { key: "bke", ..base },
            Signed { term: Term::NONE, ..base },
            Signed { scope: "d/other", ..base },
            Signed { body: b"[]", ..base },
        ];
        for changed in others {
            assert_ne!(base.under(&one), changed.under(&one), "{changed:?}");
        }
        assert_eq!(base.header(&[]), None);
        let both = format!("t=1800000000,v1={},v1={}", base.under(&one), base.under(&two));
        assert_eq!(base.header(&[one, two]), Some(both));
    }
}
