//! How the connections of a process are shared out among its tenures.

use crate::store::postgres::PgShares;

/// Connections that no tenure uses: the control pool, and one in reserve for commands on the same limit.
const CONTROL_CONNECTIONS: u32 = 4;

/// How the connections of a process are shared out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// What one tenure may open: its own for batches, one for its sweep and records, and those that it gets permits for. Where it
    /// has three, a sweep with much to record uses two of them.
    pub(super) of_a_tenure: u32,
    /// Batches of all tenures, beyond the one that each may always have.
    pub(super) permits: usize,
}

impl Shares {
    /// Shares `max_connections` out among that many elections.
    pub(super) fn of(max_connections: u32, elections: usize) -> Self {
        let elections = u32::try_from(elections).unwrap_or(u32::MAX);
        let for_tenures = max_connections.saturating_sub(CONTROL_CONNECTIONS).max(elections);
        // Two for each tenure where there are that many; the rest is for whoever has work.
        let common = for_tenures.saturating_sub(elections.saturating_mul(2));
        let own = if for_tenures >= elections.saturating_mul(2) { 2 } else { 1 };
        Self { of_a_tenure: own + common, permits: common as usize }
    }

    /// The same for the store, which holds all tenures together to it: a session that is idle takes a place too.
    pub(super) fn of_sessions(&self) -> PgShares {
        let common = u32::try_from(self.permits).unwrap_or(u32::MAX);
        PgShares { own: self.of_a_tenure - common, common }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_shared_out_within_the_limit() {
        for elections in 1..6_usize {
            for max in 4 + u32::try_from(elections).expect("small")..40 {
                let shares = Shares::of(max, elections);
                let PgShares { own, common } = shares.of_sessions();
                assert!(own >= 1, "{shares:?}");
                let most = own * u32::try_from(elections).expect("small") + common;
                assert!(most + CONTROL_CONNECTIONS <= max, "{max} for {elections}: {shares:?}");
            }
        }
    }
}
