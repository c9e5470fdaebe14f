//! The coordinator in etcd.
//!
//! What is peculiar to etcd, and heeded here:
//! - A lost lease is no error: the keepalive's answer has a TTL of 0. That and nothing else is *gone*; the end of the stream
//!   is a failure whose meaning the next renewal finds out. A keepalive that was queued is no keepalive: the answer counts.
//! - A TTL of less than 2 s is granted as 2 s: the granted one counts.
//! - A read-only transaction is linearizable as long as none of its reads asks to be serializable.
//! - Streams ask for a leader behind the member, so that one on the wrong side of a partition ends them.
//! - A token of a user ends with its time, with the member that gave it, and with any change of users or roles. What is asked
//!   with one that is over is refused, and the next attempt, on a connection of its own, brings another.
//!
//! Deliberately absent: etcd's own election API (it knows no terms), retries (the machine's), and caching.

mod config;
mod keys;
mod link;
mod refusal;
mod watch;

use std::time::Duration;

use async_trait::async_trait;
use etcd_client::{Compare, CompareOp, Error, GetOptions, PutOptions, Txn, TxnOp, TxnResponse};

pub use config::{EtcdAuth, EtcdConfig, EtcdTls};

use self::keys::Keys;
use self::link::{Connection, Keepalive, Link};
use self::watch::EtcdWatch;
use super::coordinator::{Coordinator, CoordinatorError, ElectionWatch, MOST_REPLICAS};
use super::record::{
    AcceptedOutcome, Campaign, CampaignOutcome, ElectionState, Grant, LeaderRecord, LeaseId, Members, RegisterOutcome,
    RenewOutcome, ReplicaRecord, ResignOutcome, Revision, RevokeOutcome, Transfer, TransferOutcome, Vacancy, Win,
};
use crate::domain::{ElectionName, Term};

/// gRPC: what etcd answers where a lease is not known.
const NOT_FOUND: i32 = 5;

/// How the client words a keepalive for a lease that is gone.
const LEASE_NOT_FOUND: &str = "lease not found";

/// The coordinator in etcd. Connects when first asked, on the runtime that asks; of one runtime only.
pub struct EtcdCoordinator {
    link: Link,
    keys: Keys,
}

impl EtcdCoordinator {
    /// An adapter that has not connected yet.
    #[must_use]
    pub fn new(config: EtcdConfig) -> Self {
        Self { keys: Keys::new(&config.prefix), link: Link::new(config) }
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, CoordinatorError> {
        self.link.attempt(|mut connection| async move { connection.client.txn(txn).await }).await
    }

    /// A transaction that puts something on a lease: `None` if that lease is gone.
    async fn txn_on_lease(&self, txn: Txn) -> Result<Option<TxnResponse>, CoordinatorError> {
        self.link.attempt(|mut connection| async move { lease_gone_is_none(connection.client.txn(txn).await) }).await
    }

    fn read_both(&self, election: &ElectionName) -> Vec<TxnOp> {
        vec![TxnOp::get(self.keys.leader(election), None), TxnOp::get(self.keys.term(election), None)]
    }

    fn put_both(&self, record: &LeaderRecord) -> Result<Vec<TxnOp>, CoordinatorError> {
        let on_lease = PutOptions::new().with_lease(record.lease_id.0);
        Ok(vec![
            TxnOp::put(self.keys.term(&record.election), record.term.to_string(), None),
            TxnOp::put(self.keys.leader(&record.election), json(record)?, Some(on_lease)),
        ])
    }

    /// The key of that win: its lease as well, since revisions repeat after a restore.
    fn is_from(&self, election: &ElectionName, won: Win) -> [Compare; 2] {
        let key = self.keys.leader(election);
        [
            Compare::mod_revision(key.clone(), CompareOp::Equal, won.revision.0),
            Compare::lease(key, CompareOp::Equal, won.lease.0),
        ]
    }

    fn term_is_from(&self, election: &ElectionName, revision: Revision) -> Compare {
        Compare::mod_revision(self.keys.term(election), CompareOp::Equal, revision.0)
    }

    fn read_leader(&self, election: &ElectionName) -> Vec<TxnOp> {
        vec![TxnOp::get(self.keys.leader(election), None)]
    }
}

fn json(record: &impl serde::Serialize) -> Result<String, CoordinatorError> {
    serde_json::to_string(record).map_err(|error| CoordinatorError::Corrupt {
        key: "(a record to be put)".to_owned(),
        found: error.to_string(),
        expected: "a record that can be written as JSON",
    })
}

fn lease_gone_is_none<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(Error::GRpcStatus(status)) if i32::from(status.code()) == NOT_FOUND => Ok(None),
        Err(error) => Err(error),
    }
}

fn seconds(ttl: i64) -> Duration {
    Duration::from_secs(u64::try_from(ttl).unwrap_or(0))
}

/// One renewal: sent, and answered. The stream is put back only after a good answer.
async fn renew(mut connection: Connection, lease: LeaseId) -> Result<RenewOutcome, Error> {
    let kept = connection.keepalive.lock().await.take().filter(|kept| kept.lease == lease);
    let mut kept = match kept {
        Some(kept) => kept,
        // Opening sends a first keepalive and reads its answer, but keeps the TTL to itself: so another one follows.
        None => match connection.client.lease_keep_alive(lease.0).await {
            Ok((keeper, answers)) => Keepalive { lease, keeper, answers },
            Err(Error::LeaseKeepAliveError(why)) if why == LEASE_NOT_FOUND => return Ok(RenewOutcome::Gone),
            Err(error) => return Err(error),
        },
    };
    kept.keeper.keep_alive().await?;
    crate::mutant!("etcd.keepalive-queued-taken-for-answered" => {
        *connection.keepalive.lock().await = Some(kept);
        return Ok(RenewOutcome::Renewed { ttl: Duration::from_secs(30) });
    });
    let answer = kept
        .answers
        .message()
        .await?
        .ok_or_else(|| Error::LeaseKeepAliveError("the keepalive stream ended".to_owned()))?;
    if answer.ttl() <= 0 {
        return Ok(RenewOutcome::Gone);
    }
    *connection.keepalive.lock().await = Some(kept);
    Ok(RenewOutcome::Renewed { ttl: seconds(answer.ttl()) })
}

#[async_trait]
impl Coordinator for EtcdCoordinator {
    async fn grant(&self, ttl: Duration) -> Result<Grant, CoordinatorError> {
        let asked = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
        self.link
            .attempt(|mut connection| async move {
                let granted = connection.client.lease_grant(asked, None).await?;
                Ok(Grant { lease: LeaseId(granted.id()), ttl: seconds(granted.ttl()) })
            })
            .await
    }

    async fn renew(&self, lease: LeaseId) -> Result<RenewOutcome, CoordinatorError> {
        self.link.attempt(|connection| renew(connection, lease)).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<RevokeOutcome, CoordinatorError> {
        let revoked = self
            .link
            .attempt(|mut connection| async move { lease_gone_is_none(connection.client.lease_revoke(lease.0).await) })
            .await?;
        Ok(if revoked.is_some() { RevokeOutcome::Revoked } else { RevokeOutcome::Gone })
    }

    async fn read_election(&self, election: &ElectionName) -> Result<ElectionState, CoordinatorError> {
        let response = self.txn(Txn::new().and_then(self.read_both(election))).await?;
        Ok(keys::election(&response))
    }

    async fn campaign(&self, campaign: &Campaign) -> Result<CampaignOutcome, CoordinatorError> {
        let election = &campaign.record.election;
        let leader_key = self.keys.leader(election);
        let mut conditions = vec![self.term_is_from(election, campaign.term_revision)];
        crate::mutant!("etcd.term-key-not-compared" => conditions.clear(););
        match campaign.vacancy {
            Vacancy::Absent => conditions.push(Compare::create_revision(leader_key, CompareOp::Equal, 0)),
            Vacancy::Leaseless(revision) => {
                conditions.extend(self.is_from(election, Win { revision, lease: LeaseId::NONE }));
            }
        }
        let txn =
            Txn::new().when(conditions).and_then(self.put_both(&campaign.record)?).or_else(self.read_both(election));
        match self.txn_on_lease(txn).await? {
            None => Ok(CampaignOutcome::LeaseGone),
            Some(response) if response.succeeded() => Ok(CampaignOutcome::Won { revision: keys::revision(&response) }),
            Some(response) => Ok(CampaignOutcome::Lost(keys::election(&response))),
        }
    }

    async fn resign(&self, election: &ElectionName, won: Win) -> Result<ResignOutcome, CoordinatorError> {
        let mine = crate::mutant!("etcd.resigns-anothers-win", instead of Vec::from(self.is_from(election, won)) => Vec::new());
        let txn = Txn::new()
            .when(mine)
            .and_then([TxnOp::delete(self.keys.leader(election), None)])
            .or_else(self.read_leader(election));
        let response = self.txn(txn).await?;
        Ok(if response.succeeded() {
            ResignOutcome::Resigned
        } else {
            ResignOutcome::NotMine { found: keys::leader(&response, 0) }
        })
    }

    async fn transfer(&self, transfer: &Transfer) -> Result<TransferOutcome, CoordinatorError> {
        let record = &transfer.record;
        let election = &record.election;
        let successor = self.keys.replica(&record.leader_id);
        let [revision, lease] = self.is_from(election, transfer.won);
        let conditions = [
            revision,
            lease,
            self.term_is_from(election, transfer.term_revision),
            Compare::lease(successor, CompareOp::Equal, record.lease_id.0),
        ];
        let txn = Txn::new().when(conditions).and_then(self.put_both(record)?).or_else(self.read_both(election));
        let response = match self.txn_on_lease(txn).await? {
            Some(response) if response.succeeded() => {
                return Ok(TransferOutcome::Transferred { revision: keys::revision(&response) });
            }
            Some(response) => response,
            // The successor's lease went between the comparison and the put: nothing was changed.
            None => self.txn(Txn::new().and_then(self.read_both(election))).await?,
        };
        Ok(TransferOutcome::NotTransferred { found: keys::election(&response) })
    }

    async fn watch(&self, election: &ElectionName, from: Revision) -> Result<Box<dyn ElectionWatch>, CoordinatorError> {
        let key = self.keys.leader(election);
        let watch = self.link.attempt(|connection| EtcdWatch::open(connection, key, from)).await?;
        Ok(Box::new(watch))
    }

    async fn put_replica(&self, record: &ReplicaRecord) -> Result<RegisterOutcome, CoordinatorError> {
        let (key, value) = (self.keys.replica(&record.replica_id), json(record)?);
        let on_lease = PutOptions::new().with_lease(record.lease_id.0);
        let put = self
            .link
            .attempt(|mut connection| async move {
                lease_gone_is_none(connection.client.put(key, value, Some(on_lease)).await)
            })
            .await?;
        Ok(if put.is_some() { RegisterOutcome::Registered } else { RegisterOutcome::LeaseGone })
    }

    async fn list_replicas(&self) -> Result<Vec<ReplicaRecord>, CoordinatorError> {
        let prefix = self.keys.replicas();
        let most = i64::try_from(MOST_REPLICAS).unwrap_or(i64::MAX);
        let options = GetOptions::new().with_prefix().with_limit(most);
        let found = self
            .link
            .attempt(|mut connection| async move { connection.client.get(prefix, Some(options)).await })
            .await?;
        let leased = found.kvs().iter().filter(|kv| kv.lease() != 0);
        Ok(leased.filter_map(|kv| serde_json::from_slice(kv.value()).ok()).collect())
    }

    async fn read_accepted(&self, election: &ElectionName) -> Result<Option<String>, CoordinatorError> {
        let key = self.keys.accepted(election);
        let found = self.link.attempt(|mut connection| async move { connection.client.get(key, None).await }).await?;
        let Some(kv) = found.kvs().first() else { return Ok(None) };
        match kv.value_str() {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(CoordinatorError::Corrupt {
                key: self.keys.accepted(election),
                found: String::from_utf8_lossy(kv.value()).into_owned(),
                expected: "text",
            }),
        }
    }

    async fn put_accepted(
        &self,
        election: &ElectionName,
        won: Win,
        accepted: &str,
    ) -> Result<AcceptedOutcome, CoordinatorError> {
        let txn = Txn::new()
            .when(self.is_from(election, won))
            .and_then([TxnOp::put(self.keys.accepted(election), accepted, None)])
            .or_else(self.read_leader(election));
        let response = self.txn(txn).await?;
        Ok(if response.succeeded() {
            AcceptedOutcome::Noted
        } else {
            AcceptedOutcome::NotLeader { found: keys::leader(&response, 0) }
        })
    }

    async fn lift_term(&self, election: &ElectionName, least: Term) -> Result<Term, CoordinatorError> {
        let seen = self.read_election(election).await?;
        if seen.term >= least {
            return Ok(seen.term);
        }
        let txn = Txn::new()
            .when([self.term_is_from(election, seen.term_revision)])
            .and_then([TxnOp::put(self.keys.term(election), least.to_string(), None)])
            .or_else(self.read_both(election));
        let response = self.txn(txn).await?;
        // Where a term was issued meanwhile, that one counts: whoever asked sees whether it is enough, and asks again.
        if response.succeeded() { Ok(least) } else { Ok(keys::election(&response).term) }
    }

    async fn members(&self) -> Members {
        self.link.members().await
    }
}
