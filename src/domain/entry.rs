//! Entries: what came in and is to be settled, one line of a source's file each.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::money::Currency;

/// The source of entries that bursar writes itself (carries, reversals). No file may be imported under it.
pub const OWN_SOURCE: &str = "bursar";

/// What an entry is. Signs are fixed by the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Money taken for the merchant; amount at least 0.
    Capture,
    /// Money given back; amount at most 0.
    Refund,
    /// Money taken back by the payer's bank; amount at most 0.
    Chargeback,
    /// A chargeback won; amount at least 0.
    ChargebackReversal,
    /// A fee of its own; amount at most 0, fee 0.
    Fee,
    /// A correction; any sign.
    Adjustment,
    /// What an earlier run left open; any sign. Written by bursar only.
    Carry,
}

impl EntryKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Capture,
        Self::Refund,
        Self::Chargeback,
        Self::ChargebackReversal,
        Self::Fee,
        Self::Adjustment,
        Self::Carry,
    ];

    /// The name in files and in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Refund => "refund",
            Self::Chargeback => "chargeback",
            Self::ChargebackReversal => "chargeback_reversal",
            Self::Fee => "fee",
            Self::Adjustment => "adjustment",
            Self::Carry => "carry",
        }
    }

    /// Reads the name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Says what is wrong with an amount and a fee of this kind, in minor units.
    ///
    /// # Errors
    /// A sentence that says what is allowed.
    pub const fn check(self, amount: i64, fee: i64) -> Result<(), &'static str> {
        match self {
            Self::Capture if amount < 0 => Err("a capture is at least 0"),
            Self::ChargebackReversal if amount < 0 => Err("a chargeback_reversal is at least 0"),
            Self::Refund if amount > 0 => Err("a refund is at most 0"),
            Self::Chargeback if amount > 0 => Err("a chargeback is at most 0"),
            Self::Fee if amount > 0 => Err("an entry of kind fee is at most 0"),
            Self::Fee if fee != 0 => Err("an entry of kind fee has no fee of its own"),
            Self::Capture
            | Self::ChargebackReversal
            | Self::Refund
            | Self::Chargeback
            | Self::Fee
            | Self::Adjustment
            | Self::Carry => Ok(()),
        }
    }
}

/// One entry as it is imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewEntry {
    /// Unique in its source.
    pub id: String,
    /// NFC, trimmed, at most [`MERCHANT_BYTES`] bytes.
    pub merchant: String,
    /// The currency of amount and fee.
    pub currency: Currency,
    /// What it is.
    pub kind: EntryKind,
    /// Minor units.
    pub amount: i64,
    /// Minor units; positive reduces the net, negative gives back.
    pub fee: i64,
    /// When it happened.
    pub occurred_at: DateTime<Utc>,
    /// From when on it may be settled.
    pub available_at: DateTime<Utc>,
    /// The source's own reference.
    pub reference: Option<String>,
}

/// The most bytes of a merchant id.
pub const MERCHANT_BYTES: usize = 128;
/// The most bytes of an entry id and of a reference.
pub const ID_BYTES: usize = 128;

/// Normalises a merchant id: NFC and trimmed. Case counts; compared by byte.
///
/// # Errors
/// A sentence that says what is allowed.
pub fn merchant_id(text: &str) -> Result<String, String> {
    let id: String = text.trim().nfc().collect();
    if id.is_empty() {
        return Err("the merchant is empty".to_owned());
    }
    if id.len() > MERCHANT_BYTES {
        return Err(format!("the merchant has {} bytes, at most {MERCHANT_BYTES} are allowed", id.len()));
    }
    if let Some(control) = id.chars().find(|c| c.is_control()) {
        return Err(format!("the merchant holds the control character {control:?}"));
    }
    Ok(id)
}

/// The most bytes of a source's name.
pub const SOURCE_BYTES: usize = 64;

/// Checks the name of a source: 1 to [`SOURCE_BYTES`] of A-Z, a-z, 0-9, '.', '_' and '-', and not [`OWN_SOURCE`].
///
/// # Errors
/// A sentence that says what is allowed.
pub fn source_name(text: &str) -> Result<&str, String> {
    let sound = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if text.eq_ignore_ascii_case(OWN_SOURCE) {
        Err(format!("{text:?} is the source of entries that bursar writes itself"))
    } else if (1..=SOURCE_BYTES).contains(&text.len()) && text.bytes().all(sound) {
        Ok(text)
    } else {
        Err(format!("{text:?} is not a source: expected 1 to {SOURCE_BYTES} of A-Z, a-z, 0-9, '.', '_' and '-'"))
    }
}

/// The key of the unit that settles a merchant's entries in one currency.
#[must_use]
pub fn unit_key(currency: Currency, merchant: &str) -> String {
    format!("{currency}:{merchant}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_follow_the_kind() {
        assert!(EntryKind::Capture.check(-1, 0).is_err());
        assert!(EntryKind::Refund.check(1, 0).is_err());
        assert!(EntryKind::Fee.check(-1, 1).is_err());
        assert!(EntryKind::Capture.check(0, -5).is_ok());
        assert!(EntryKind::Adjustment.check(-1, 5).is_ok());
        for kind in EntryKind::ALL {
            assert_eq!(EntryKind::parse(kind.as_str()), Some(kind));
        }
    }

    #[test]
    fn bursar_is_no_source_of_files() {
        assert_eq!(source_name("adyen-2"), Ok("adyen-2"));
        assert!(source_name(&"x".repeat(SOURCE_BYTES)).is_ok());
        for bad in ["", "bursar", "Bursar", "a b", "ä", &"x".repeat(SOURCE_BYTES + 1)] {
            assert!(source_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn merchants_are_compared_in_one_form() {
        assert_eq!(merchant_id(" Caf\u{65}\u{301} "), Ok("Caf\u{e9}".to_owned()));
        assert!(merchant_id("  ").is_err());
        assert!(merchant_id(&"x".repeat(129)).is_err());
        assert!(merchant_id("a\u{0}b").is_err());
    }
}
