//! Stands for a receiver that cannot be set up here (its authorities' file is missing, say): each call fails before a byte
//! leaves, is tried again as every failure is, and tells its unit why.

use async_trait::async_trait;

use super::{CallOutcome, Departure, OutsideHandler};
use crate::domain::Moment;
use crate::store::Call;

pub(super) struct Unfit {
    why: String,
    idempotent: bool,
}

impl Unfit {
    pub(super) const fn new(why: String, idempotent: bool) -> Self {
        Self { why, idempotent }
    }
}

#[async_trait]
impl OutsideHandler for Unfit {
    fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    async fn call(&self, _call: &Call, _taken_at: Moment, _departure: &Departure) -> CallOutcome {
        CallOutcome::Failed { error: self.why.clone(), permanent: false }
    }
}
