//! The coordinator in a SQLite file of its own, beside the store's: for several replicas on one host.
//!
//! The file is apart from the store, so that no long transaction there can delay a renewal. It expires by the machine's boot and
//! `CLOCK_BOOTTIME`, which all its replicas share; after another boot everything in it has lapsed. So it need not survive a
//! loss of power in full (`synchronous = NORMAL`): terms go on from the store's fence.
//!
//! Every change runs in `BEGIN IMMEDIATE`, and reads the clock after it. Reads take a snapshot and wait for no writer.

mod file;
mod link;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use self::link::{Link, Stamp};
use super::watch::PollWatch;
use super::{Found, from_millis, leader_json, millis, new_lease, replica_json, term};
use crate::domain::{ElectionName, Term};
use crate::leadership::coordinator::{Coordinator, CoordinatorError, ElectionWatch, MOST_REPLICAS};
use crate::leadership::record::{
    AcceptedOutcome, Campaign, CampaignOutcome, ElectionState, Grant, LeaseId, Members, RegisterOutcome, RenewOutcome,
    ReplicaRecord, ResignOutcome, Revision, RevokeOutcome, Transfer, TransferOutcome, Vacancy, Win,
};

/// Where the lease file is, and how long a process may hold it up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteCoordinatorSettings {
    /// The lease file; made where it is missing. See [`lease_file`].
    pub path: PathBuf,
    /// The lease's TTL: a recorded process that holds the file's write lock for so long is ended.
    pub ttl: Duration,
}

/// The lease file of a store: beside it, `.lease` at its end.
#[must_use]
pub fn lease_file(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".lease");
    PathBuf::from(name)
}

/// The coordinator in a SQLite file. Opens it when first asked. Clones share their connections.
#[derive(Clone)]
pub struct SqliteCoordinator {
    link: Arc<Link>,
}

impl SqliteCoordinator {
    /// An adapter that has not opened its file yet.
    #[must_use]
    pub fn new(settings: SqliteCoordinatorSettings) -> Self {
        Self { link: Arc::new(Link::new(settings)) }
    }
}

/// Inside of a transaction that writes, and in the words of the driver.
type Answer<T> = Result<T, sqlx::Error>;

async fn state(connection: &mut SqliteConnection, election: &str, at: &Stamp) -> Answer<Found> {
    let query = sqlx::query(include_str!("sql/read.sql")).bind(election.to_owned()).bind(at.boot.clone()).bind(at.now);
    let Some(row) = query.fetch_optional(connection).await? else { return Ok(Found::NOTHING) };
    Ok(Found {
        read_at: row.try_get("read_at")?,
        term: row.try_get("term")?,
        term_revision: row.try_get("term_revision")?,
        leader: row.try_get("leader")?,
        leader_lease: row.try_get("leader_lease")?,
        leader_revision: row.try_get("leader_revision")?,
    })
}

/// Makes sure that there is a row to update.
async fn open_election(connection: &mut SqliteConnection, election: &str) -> Answer<()> {
    sqlx::query(include_str!("sql/open_election.sql")).bind(election.to_owned()).execute(connection).await?;
    Ok(())
}

/// Whether the place was as the campaign had seen it.
fn as_seen(campaign: &Campaign, found: &Found) -> bool {
    let vacant = match campaign.vacancy {
        Vacancy::Absent => found.leader.is_none(),
        Vacancy::Leaseless(revision) => found.leader_lease == Some(0) && found.leader_revision == Some(revision.0),
    };
    vacant && found.term_revision == campaign.term_revision.0 && found.term < campaign.record.term.get()
}

async fn campaign(
    connection: &mut SqliteConnection,
    campaign: Campaign,
    leader: String,
    at: Stamp,
) -> Answer<(bool, Found)> {
    let record = &campaign.record;
    let vacancy = match campaign.vacancy {
        Vacancy::Absent => None,
        Vacancy::Leaseless(revision) => Some(revision.0),
    };
    open_election(connection, record.election.as_str()).await?;
    let won = sqlx::query(include_str!("sql/campaign.sql"))
        .bind(record.election.as_str().to_owned())
        .bind(vacancy)
        .bind(campaign.term_revision.0)
        .bind(record.term.get())
        .bind(leader)
        .bind(record.lease_id.0)
        .bind(at.boot.clone())
        .bind(at.now)
        .execute(&mut *connection)
        .await?;
    let found = state(connection, record.election.as_str(), &at).await?;
    Ok((won.rows_affected() == 1, found))
}

async fn transfer(
    connection: &mut SqliteConnection,
    transfer: Transfer,
    leader: String,
    at: Stamp,
) -> Answer<(bool, Found)> {
    let record = &transfer.record;
    let done = sqlx::query(include_str!("sql/transfer.sql"))
        .bind(record.election.as_str().to_owned())
        .bind(transfer.won.revision.0)
        .bind(transfer.term_revision.0)
        .bind(record.term.get())
        .bind(record.leader_id.as_str().to_owned())
        .bind(leader)
        .bind(record.lease_id.0)
        .bind(at.boot.clone())
        .bind(at.now)
        .bind(transfer.won.lease.0)
        .execute(&mut *connection)
        .await?;
    let found = state(connection, record.election.as_str(), &at).await?;
    Ok((done.rows_affected() == 1, found))
}

async fn resign(connection: &mut SqliteConnection, election: String, won: Win, at: Stamp) -> Answer<(bool, Found)> {
    let done = sqlx::query(include_str!("sql/resign.sql"))
        .bind(election.clone())
        .bind(won.revision.0)
        .bind(at.boot.clone())
        .bind(at.now)
        .bind(won.lease.0)
        .execute(&mut *connection)
        .await?;
    let found = state(connection, &election, &at).await?;
    Ok((done.rows_affected() == 1, found))
}

async fn accept(
    connection: &mut SqliteConnection,
    election: String,
    won: Win,
    accepted: String,
    at: Stamp,
) -> Answer<(bool, Found)> {
    let done = sqlx::query(include_str!("sql/accept.sql"))
        .bind(election.clone())
        .bind(won.revision.0)
        .bind(accepted)
        .bind(at.boot.clone())
        .bind(at.now)
        .bind(won.lease.0)
        .execute(&mut *connection)
        .await?;
    let found = state(connection, &election, &at).await?;
    Ok((done.rows_affected() == 1, found))
}

async fn grant(connection: &mut SqliteConnection, lease: i64, ttl: i64, at: Stamp) -> Answer<()> {
    let tidy = sqlx::query(include_str!("sql/tidy_leases.sql")).bind(at.boot.clone()).bind(at.now);
    tidy.execute(&mut *connection).await?;
    sqlx::query(include_str!("sql/tidy_replicas.sql")).execute(&mut *connection).await?;
    let grant = sqlx::query(include_str!("sql/grant.sql")).bind(lease).bind(ttl).bind(at.boot).bind(at.now);
    grant.execute(connection).await?;
    Ok(())
}

async fn revoke(connection: &mut SqliteConnection, lease: i64, at: Stamp) -> Answer<bool> {
    let query = sqlx::query(include_str!("sql/revoke.sql")).bind(lease).bind(at.boot).bind(at.now);
    let row = query.fetch_optional(&mut *connection).await?;
    sqlx::query(include_str!("sql/revoke_replicas.sql")).bind(lease).execute(connection).await?;
    row.map_or(Ok(false), |row: SqliteRow| row.try_get("lived"))
}

async fn lift(connection: &mut SqliteConnection, election: String, least: i64, at: Stamp) -> Answer<Found> {
    open_election(connection, &election).await?;
    let lift = sqlx::query(include_str!("sql/lift.sql")).bind(election.clone()).bind(least);
    lift.execute(&mut *connection).await?;
    state(connection, &election, &at).await
}

#[async_trait]
impl Coordinator for SqliteCoordinator {
    async fn grant(&self, ttl: Duration) -> Result<Grant, CoordinatorError> {
        let lease = new_lease();
        self.link.write(|connection, at| Box::pin(grant(connection, lease.0, millis(ttl), at))).await?;
        Ok(Grant { lease, ttl })
    }

    async fn renew(&self, lease: LeaseId) -> Result<RenewOutcome, CoordinatorError> {
        let ttl = self
            .link
            .write(|connection, at| {
                Box::pin(async move {
                    let query = sqlx::query(include_str!("sql/renew.sql")).bind(lease.0).bind(at.boot).bind(at.now);
                    let row = query.fetch_optional(connection).await?;
                    row.map(|row: SqliteRow| row.try_get::<i64, _>("ttl_ms")).transpose()
                })
            })
            .await?;
        Ok(ttl.map_or(RenewOutcome::Gone, |ttl| RenewOutcome::Renewed { ttl: from_millis(ttl) }))
    }

    async fn revoke(&self, lease: LeaseId) -> Result<RevokeOutcome, CoordinatorError> {
        let lived = self.link.write(|connection, at| Box::pin(revoke(connection, lease.0, at))).await?;
        Ok(if lived { RevokeOutcome::Revoked } else { RevokeOutcome::Gone })
    }

    async fn read_election(&self, election: &ElectionName) -> Result<ElectionState, CoordinatorError> {
        let name = election.as_str().to_owned();
        let read = self.link.read(|connection, at| Box::pin(async move { state(connection, &name, &at).await }));
        read.await?.state()
    }

    async fn campaign(&self, tried: &Campaign) -> Result<CampaignOutcome, CoordinatorError> {
        let (own, leader) = (tried.clone(), leader_json(&tried.record)?);
        let (won, found) = self.link.write(|connection, at| Box::pin(campaign(connection, own, leader, at))).await?;
        Ok(if won {
            CampaignOutcome::Won { revision: Revision(found.term_revision) }
        } else if as_seen(tried, &found) {
            // Everything was as it was seen but the lease.
            CampaignOutcome::LeaseGone
        } else {
            CampaignOutcome::Lost(found.state()?)
        })
    }

    async fn resign(&self, election: &ElectionName, won: Win) -> Result<ResignOutcome, CoordinatorError> {
        let name = election.as_str().to_owned();
        let (done, found) = self.link.write(|connection, at| Box::pin(resign(connection, name, won, at))).await?;
        Ok(if done { ResignOutcome::Resigned } else { ResignOutcome::NotMine { found: found.state()?.leader } })
    }

    async fn transfer(&self, tried: &Transfer) -> Result<TransferOutcome, CoordinatorError> {
        let (own, leader) = (tried.clone(), leader_json(&tried.record)?);
        let (done, found) = self.link.write(|connection, at| Box::pin(transfer(connection, own, leader, at))).await?;
        Ok(if done {
            TransferOutcome::Transferred { revision: Revision(found.term_revision) }
        } else {
            TransferOutcome::NotTransferred { found: found.state()? }
        })
    }

    async fn watch(&self, election: &ElectionName, from: Revision) -> Result<Box<dyn ElectionWatch>, CoordinatorError> {
        Ok(Box::new(PollWatch { coordinator: Box::new(self.clone()), election: election.clone(), from }))
    }

    async fn put_replica(&self, record: &ReplicaRecord) -> Result<RegisterOutcome, CoordinatorError> {
        let (id, lease, json) = (record.replica_id.as_str().to_owned(), record.lease_id.0, replica_json(record)?);
        let put = self
            .link
            .write(|connection, at| {
                Box::pin(async move {
                    let query = sqlx::query(include_str!("sql/register.sql")).bind(id).bind(lease).bind(json);
                    query.bind(at.boot).bind(at.now).execute(connection).await
                })
            })
            .await?;
        Ok(if put.rows_affected() == 1 { RegisterOutcome::Registered } else { RegisterOutcome::LeaseGone })
    }

    async fn list_replicas(&self) -> Result<Vec<ReplicaRecord>, CoordinatorError> {
        let most = i64::try_from(MOST_REPLICAS).unwrap_or(i64::MAX);
        let records = self
            .link
            .read(|connection, at| {
                Box::pin(async move {
                    let query = sqlx::query(include_str!("sql/replicas.sql")).bind(at.boot).bind(at.now).bind(most);
                    let rows = query.fetch_all(connection).await?;
                    rows.iter().map(|row| row.try_get("record")).collect::<Answer<Vec<String>>>()
                })
            })
            .await?;
        Ok(records.iter().filter_map(|record| serde_json::from_str(record).ok()).collect())
    }

    async fn read_accepted(&self, election: &ElectionName) -> Result<Option<String>, CoordinatorError> {
        let name = election.as_str().to_owned();
        self.link
            .read(|connection, _| {
                Box::pin(async move {
                    let query = sqlx::query(include_str!("sql/accepted.sql")).bind(name);
                    let row = query.fetch_optional(connection).await?;
                    row.map_or(Ok(None), |row: SqliteRow| row.try_get("accepted"))
                })
            })
            .await
    }

    async fn put_accepted(
        &self,
        election: &ElectionName,
        won: Win,
        accepted: &str,
    ) -> Result<AcceptedOutcome, CoordinatorError> {
        let (name, accepted) = (election.as_str().to_owned(), accepted.to_owned());
        let write = self.link.write(|connection, at| Box::pin(accept(connection, name, won, accepted, at)));
        let (done, found) = write.await?;
        Ok(if done { AcceptedOutcome::Noted } else { AcceptedOutcome::NotLeader { found: found.state()?.leader } })
    }

    async fn lift_term(&self, election: &ElectionName, least: Term) -> Result<Term, CoordinatorError> {
        let name = election.as_str().to_owned();
        let found = self.link.write(|connection, at| Box::pin(lift(connection, name, least.get(), at))).await?;
        term(found.term)
    }

    async fn members(&self) -> Members {
        let opened = self.link.read(|_, _| Box::pin(async { Ok(()) })).await;
        Members { reachable: u32::from(opened.is_ok()), total: 1 }
    }
}
