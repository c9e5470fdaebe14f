//! The coordinator in PostgreSQL, in tables of its own beside the store's.
//!
//! Every operation is one call of a function, so one statement and one transaction on the server: a replica that is stopped
//! holds no lock. What is true about locks and clocks stands with the functions, in `migrations/postgres/0004_coordinator.sql`
//! and `0012_wins.sql`.
//!
//! Two connections, both opened by whoever asks and in its runtime: one for the lease alone, so that a renewal never stands
//! behind a campaign that waits for a row; one for the rest.

mod link;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::postgres::types::PgInterval;

use self::link::Link;
pub use self::settings::PgCoordinatorSettings;
use super::watch::PollWatch;
use super::{Found, from_millis, leader_json, millis, new_lease, replica_json, term};
use crate::domain::{ElectionName, Term};
use crate::leadership::coordinator::{Coordinator, CoordinatorError, ElectionWatch, MOST_REPLICAS};
use crate::leadership::record::{
    AcceptedOutcome, Campaign, CampaignOutcome, ElectionState, Grant, LeaseId, Members, RegisterOutcome, RenewOutcome,
    ReplicaRecord, ResignOutcome, Revision, RevokeOutcome, Transfer, TransferOutcome, Vacancy, Win,
};

/// The coordinator in PostgreSQL. Connects when first asked, on the runtime that asks; of one runtime only. Clones share their
/// connections.
#[derive(Clone)]
pub struct PgCoordinator {
    lease: Arc<Link>,
    elections: Arc<Link>,
}

impl PgCoordinator {
    /// An adapter that has not connected yet.
    #[must_use]
    pub fn new(settings: PgCoordinatorSettings) -> Self {
        let settings = Arc::new(settings);
        Self { lease: Arc::new(Link::new(Arc::clone(&settings))), elections: Arc::new(Link::new(settings)) }
    }
}

fn found(row: &PgRow) -> Result<Found, sqlx::Error> {
    Ok(Found {
        read_at: row.try_get("read_at")?,
        term: row.try_get("term")?,
        term_revision: row.try_get("term_revision")?,
        leader: row.try_get("leader")?,
        leader_lease: row.try_get("leader_lease")?,
        leader_revision: row.try_get("leader_revision")?,
    })
}

/// Whether it was done, and the election as it stands then.
fn done(row: &PgRow) -> Result<(bool, Found), sqlx::Error> {
    Ok((row.try_get("done")?, found(row)?))
}

fn interval(ttl: Duration) -> PgInterval {
    PgInterval { months: 0, days: 0, microseconds: millis(ttl).saturating_mul(1000) }
}

#[async_trait]
impl Coordinator for PgCoordinator {
    async fn grant(&self, ttl: Duration) -> Result<Grant, CoordinatorError> {
        let lease = new_lease();
        let query = sqlx::query(include_str!("sql/grant.sql")).bind(lease.0).bind(interval(ttl));
        self.lease.row(query, |_| Ok(())).await?;
        Ok(Grant { lease, ttl })
    }

    async fn renew(&self, lease: LeaseId) -> Result<RenewOutcome, CoordinatorError> {
        let query = sqlx::query(include_str!("sql/renew.sql")).bind(lease.0);
        let ttl: Option<i64> = self.lease.row(query, |row| row.try_get("ttl_ms")).await?;
        Ok(ttl.map_or(RenewOutcome::Gone, |ttl| RenewOutcome::Renewed { ttl: from_millis(ttl) }))
    }

    async fn revoke(&self, lease: LeaseId) -> Result<RevokeOutcome, CoordinatorError> {
        let query = sqlx::query(include_str!("sql/revoke.sql")).bind(lease.0);
        let lived: bool = self.lease.row(query, |row| row.try_get("lived")).await?;
        Ok(if lived { RevokeOutcome::Revoked } else { RevokeOutcome::Gone })
    }

    async fn read_election(&self, election: &ElectionName) -> Result<ElectionState, CoordinatorError> {
        let query = sqlx::query(include_str!("sql/read.sql")).bind(election.as_str());
        self.elections.row(query, found).await?.state()
    }

    async fn campaign(&self, campaign: &Campaign) -> Result<CampaignOutcome, CoordinatorError> {
        let record = &campaign.record;
        let vacancy = match campaign.vacancy {
            Vacancy::Absent => None,
            Vacancy::Leaseless(revision) => Some(revision.0),
        };
        let query = sqlx::query(include_str!("sql/campaign.sql"))
            .bind(record.election.as_str())
            .bind(vacancy)
            .bind(campaign.term_revision.0)
            .bind(record.term.get())
            .bind(leader_json(record)?)
            .bind(record.lease_id.0);
        let answered = self.elections.row(query, |row| Ok((row.try_get("outcome")?, found(row)?))).await?;
        let (outcome, found): (String, Found) = answered;
        match outcome.as_str() {
            // The function still held the election when it read what stands: that is the win.
            "won" => Ok(CampaignOutcome::Won { revision: Revision(found.term_revision) }),
            "lease gone" => Ok(CampaignOutcome::LeaseGone),
            _ => Ok(CampaignOutcome::Lost(found.state()?)),
        }
    }

    async fn resign(&self, election: &ElectionName, won: Win) -> Result<ResignOutcome, CoordinatorError> {
        let query = sqlx::query(include_str!("sql/resign.sql"));
        let query = query.bind(election.as_str()).bind(won.revision.0).bind(won.lease.0);
        let (resigned, found) = self.elections.row(query, done).await?;
        Ok(if resigned { ResignOutcome::Resigned } else { ResignOutcome::NotMine { found: found.state()?.leader } })
    }

    async fn transfer(&self, transfer: &Transfer) -> Result<TransferOutcome, CoordinatorError> {
        let record = &transfer.record;
        let query = sqlx::query(include_str!("sql/transfer.sql"))
            .bind(record.election.as_str())
            .bind(transfer.won.revision.0)
            .bind(transfer.won.lease.0)
            .bind(transfer.term_revision.0)
            .bind(record.term.get())
            .bind(record.leader_id.as_str())
            .bind(leader_json(record)?)
            .bind(record.lease_id.0);
        let (transferred, found) = self.elections.row(query, done).await?;
        Ok(if transferred {
            TransferOutcome::Transferred { revision: Revision(found.term_revision) }
        } else {
            TransferOutcome::NotTransferred { found: found.state()? }
        })
    }

    async fn watch(&self, election: &ElectionName, from: Revision) -> Result<Box<dyn ElectionWatch>, CoordinatorError> {
        Ok(Box::new(PollWatch { coordinator: Box::new(self.clone()), election: election.clone(), from }))
    }

    async fn put_replica(&self, record: &ReplicaRecord) -> Result<RegisterOutcome, CoordinatorError> {
        let query = sqlx::query(include_str!("sql/register.sql"))
            .bind(record.replica_id.as_str())
            .bind(record.lease_id.0)
            .bind(replica_json(record)?);
        let registered: bool = self.elections.row(query, |row| row.try_get("registered")).await?;
        Ok(if registered { RegisterOutcome::Registered } else { RegisterOutcome::LeaseGone })
    }

    async fn list_replicas(&self) -> Result<Vec<ReplicaRecord>, CoordinatorError> {
        let most = i32::try_from(MOST_REPLICAS).unwrap_or(i32::MAX);
        let query = sqlx::query(include_str!("sql/replicas.sql")).bind(most);
        let records: Vec<String> = self.elections.rows(query, |row| row.try_get("record")).await?;
        Ok(records.iter().filter_map(|record| serde_json::from_str(record).ok()).collect())
    }

    async fn read_accepted(&self, election: &ElectionName) -> Result<Option<String>, CoordinatorError> {
        let query = sqlx::query(include_str!("sql/accepted.sql")).bind(election.as_str());
        let accepted: Vec<Option<String>> = self.elections.rows(query, |row| row.try_get("accepted")).await?;
        Ok(accepted.into_iter().next().flatten())
    }

    async fn put_accepted(
        &self,
        election: &ElectionName,
        won: Win,
        accepted: &str,
    ) -> Result<AcceptedOutcome, CoordinatorError> {
        let query = sqlx::query(include_str!("sql/accept.sql"));
        let query = query.bind(election.as_str()).bind(won.revision.0).bind(won.lease.0).bind(accepted.to_owned());
        let (noted, found) = self.elections.row(query, done).await?;
        Ok(if noted { AcceptedOutcome::Noted } else { AcceptedOutcome::NotLeader { found: found.state()?.leader } })
    }

    async fn lift_term(&self, election: &ElectionName, least: Term) -> Result<Term, CoordinatorError> {
        let query = sqlx::query(include_str!("sql/lift.sql")).bind(election.as_str()).bind(least.get());
        term(self.elections.row(query, |row| row.try_get("issued")).await?)
    }

    async fn members(&self) -> Members {
        let answered = self.elections.row(sqlx::query(include_str!("sql/ping.sql")), |_| Ok(())).await;
        Members { reachable: u32::from(answered.is_ok()), total: 1 }
    }
}
