//! Stands for a handler that this release does not have: a run of a newer one gets no unit, and a unit no call.

use std::sync::Arc;

use async_trait::async_trait;

use super::{CallOutcome, Departure, Handler, OutsideHandler, Shape};
use crate::store::{Call, PlanSource};

pub(super) fn handler() -> Handler {
    Handler { plan: PlanSource::Keys(Vec::new()), shape: Shape::Outside(Arc::new(Absent)) }
}

struct Absent;

#[async_trait]
impl OutsideHandler for Absent {
    fn is_idempotent(&self) -> bool {
        false
    }

    async fn call(&self, _call: &Call, _departure: &Departure) -> CallOutcome {
        CallOutcome::Failed { error: "this release does not have the handler of this job".to_owned(), permanent: true }
    }
}
