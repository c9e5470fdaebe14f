//! Who sent a request, and that nothing of it was changed: `Bursar-Signature: t=SECONDS,v1=HEX[,v1=HEX]`.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// How far the sender's time may be from ours, in seconds: an old request that was overheard is no good later.
const TOLERANCE: u64 = 300;

/// What is signed, as it was received.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// `POST`, or `GET` for a look-up.
    pub method: &'a str,
    /// `Idempotency-Key`.
    pub key: &'a str,
    /// `Fencing-Token`.
    pub token: i64,
    /// `Fencing-Scope`.
    pub scope: &'a str,
    /// The body.
    pub body: &'a [u8],
}

/// Whether one of the header's signatures is right under one of the secrets. `now` in seconds since 1970.
pub fn is_signed(header: &str, signed: &Signed<'_>, secrets: &[Vec<u8>], now: i64) -> bool {
    let mut time = None;
    let mut signatures = Vec::new();
    for part in header.split(',') {
        match part.split_once('=') {
            Some(("t", seconds)) => time = seconds.parse::<i64>().ok(),
            Some(("v1", hex)) => signatures.extend(data_encoding::HEXLOWER.decode(hex.as_bytes())),
            Some(_) | None => {}
        }
    }
    let Some(time) = time.filter(|time| time.abs_diff(now) <= TOLERANCE) else { return false };
    secrets.iter().any(|secret| {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return false };
        mac.update(b"bursar-v1\n");
        for line in [signed.method, &time.to_string(), signed.key, &signed.token.to_string(), signed.scope] {
            mac.update(line.as_bytes());
            mac.update(b"\n");
        }
        mac.update(signed.body);
        // Compared in constant time.
        signatures.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
    })
}
