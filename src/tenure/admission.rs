//! The gate as the store asks it: right before BEGIN, after whatever wait for a connection.
//!
//! A tenure passes the gate before it turns to the store ([`super::scope`]), which saves a wait for a connection while the
//! session is suspect; but connections may be waited for, and a session that was live then may not be any more.

use std::sync::Weak;

use async_trait::async_trait;

use super::scope::Scope;
use crate::store::Admission;

/// The gate of a tenure. Does not keep the scope alive, which keeps the store.
pub(super) struct AtTheGate(pub(super) Weak<Scope>);

#[async_trait]
impl Admission for AtTheGate {
    async fn admitted(&self) -> bool {
        match self.0.upgrade() {
            Some(scope) => scope.pass_gate().await.is_ok(),
            None => false,
        }
    }
}
