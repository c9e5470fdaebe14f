//! The write that a leader had on its way when it was stopped.
//!
//! A leader that wakes reads its clock before each transaction, finds its lease over, and stops by itself: it is seldom
//! seen to be refused. But it may have been stopped behind that look, right before BEGIN, and then what it wakes to is the
//! transaction. That case cannot be hit at will from outside. So the demo makes the same transaction with the same claim,
//! term and tenure of the stopped leader, through the same port, and says that it does.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use async_trait::async_trait;

use crate::app;
use crate::cli::error::CommandError;
use crate::config::{Config, LOCK_TIMEOUT};
use crate::domain::{Claim, TenureId, Term};
use crate::store::{Admission, Entered, TenureLimits, TermView};

/// As a replica's; one transaction needs no more.
const LIMITS: TenureLimits = TenureLimits {
    connections: 1,
    statement_timeout: Duration::from_secs(10),
    lock_timeout: LOCK_TIMEOUT,
    idle_in_transaction_timeout: Duration::from_secs(10),
    acquire_timeout: Duration::from_secs(10),
};
/// For closing its connection.
const END_WITHIN: Duration = Duration::from_secs(2);

/// The look right before BEGIN, as the stopped leader has it behind itself.
struct Behind;

#[async_trait]
impl Admission for Behind {
    async fn admitted(&self) -> bool {
        true
    }
}

/// Makes it: a fenced transaction that would note work on `run`.
///
/// # Errors
/// The store could not be asked, or let it in, which it never may.
pub(super) async fn write(config: &Config, of: &TermView, run: i64) -> Result<(), CommandError> {
    let store = app::store_as(config, &format!("demo, as {}", of.replica))?;
    let term = Term::new(of.term).ok_or_else(|| CommandError::Internal(anyhow!("term {} is below zero", of.term)))?;
    let claim = Claim { election: of.election.clone(), term, tenure_id: TenureId(of.tenure_id) };
    let baseline = store.health().await?.lineage;
    let tenure = store.tenure(&claim, LIMITS, baseline, Arc::new(Behind)).await?;
    let answer = tenure.begin_work(run).await;
    tenure.end(END_WITHIN).await;
    // The record of it is written aside; the store waits for that before it closes.
    store.close().await;
    match answer? {
        Entered::Fenced(_) => Ok(()),
        Entered::Mine(()) | Entered::Halted(_) => {
            Err(CommandError::Internal(anyhow!("the store let in a write of {claim}, and another term is in force")))
        }
    }
}
