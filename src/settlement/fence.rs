//! What a receiver compares: the token, and the scope in which tokens are compared.

use uuid::Uuid;

use crate::domain::{Claim, Term};

/// Whose request, or whose process, it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// The term.
    pub term: Term,
    /// `deployment/election`.
    pub scope: String,
}

impl Fence {
    /// That of a tenure in a deployment.
    #[must_use]
    pub fn new(deployment: Uuid, claim: &Claim) -> Self {
        Self { term: claim.term, scope: format!("{deployment}/{}", claim.election) }
    }
}
