//! Merchants on hold, as operators see them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// How putting a merchant on hold went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldReport {
    /// Whether the merchant was on hold already.
    pub already: bool,
    /// Payouts held by it.
    pub held: u64,
    /// Payouts that are on the wire and cannot be called back.
    pub on_the_wire: u64,
}

/// A merchant on hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MerchantHold {
    /// The merchant.
    pub merchant: String,
    /// Why.
    pub reason: String,
    /// Since when, by the store's clock.
    pub held_at: DateTime<Utc>,
    /// Who: user and host.
    pub by: String,
}
