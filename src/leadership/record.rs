//! What the coordinator keeps, as values: leases, revisions, the leader's record, what a read of an election shows.
//!
//! Pure: the machine, the port and every adapter speak in these. A record is JSON in the coordinator; its field names are
//! the interface that `status` and a person with `etcdctl` read.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::{ElectionName, ReplicaId, TenureId, Term};

/// The coordinator's name for a lease. Zero is never a lease: a key without one shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseId(pub i64);

impl LeaseId {
    /// A key that stands without a lease.
    pub const NONE: Self = Self(0);
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// The coordinator's count of changes. A key's revision is that of its last change; zero where the key is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub i64);

impl Revision {
    /// An absent key's revision.
    pub const ABSENT: Self = Self(0);

    /// The revision after this one: where a watch begins that misses nothing since a read.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// `…/elections/NAME/leader`: who leads, and by which win.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaderRecord {
    /// The election led.
    pub election: ElectionName,
    /// The replica that leads.
    pub leader_id: ReplicaId,
    /// The random identity of this holding.
    pub tenure_id: TenureId,
    /// The lease that the key stands on.
    pub lease_id: LeaseId,
    /// The term won.
    pub term: Term,
    /// Host name, for people.
    pub host: String,
    /// Where its HTTP port is, for people; empty where unknown.
    pub address: String,
    /// The version of the program.
    pub version: String,
    /// The schedule that it runs.
    pub schedule_fingerprint: String,
    /// When it stood for this win, by the store's time; shown to people, compared with nothing. `None` before the store's
    /// time was first learnt.
    pub won_at: Option<DateTime<Utc>>,
}

/// `…/replicas/ID`: who is there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReplicaRecord {
    /// The replica.
    pub replica_id: ReplicaId,
    /// Its session's lease, which the key stands on.
    pub lease_id: LeaseId,
    /// Host name, for people.
    pub host: String,
    /// Where its HTTP port is, for people; empty where unknown.
    pub address: String,
    /// The version of the program.
    pub version: String,
    /// The schedule that it would run.
    pub schedule_fingerprint: String,
    /// The elections that it may lead now.
    pub eligible: Vec<ElectionName>,
}

/// A lease as granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grant {
    /// Its name.
    pub lease: LeaseId,
    /// The time to live that the coordinator really gave, which may differ from the one asked for.
    pub ttl: std::time::Duration,
}

/// What a renewal came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RenewOutcome {
    /// The lease lives, for this long from the sending on.
    Renewed {
        /// The time to live in the answer; above zero.
        ttl: std::time::Duration,
    },
    /// The coordinator does not know the lease any more.
    Gone,
}

/// What a revocation came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RevokeOutcome {
    /// It was there and is gone now, with every key on it.
    Revoked,
    /// It was not there.
    Gone,
}

/// The leader key as found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SeenLeader {
    /// Its content; `None` where it is no record (a person's hand).
    pub record: Option<LeaderRecord>,
    /// The revision of its last change: that of the win, where it is a win.
    pub revision: Revision,
    /// The lease that it stands on; [`LeaseId::NONE`] without one.
    pub lease: LeaseId,
}

impl SeenLeader {
    /// What tells it from any other win.
    #[must_use]
    pub const fn win(&self) -> Win {
        Win { revision: self.revision, lease: self.lease }
    }
}

/// A win, as its key shows it. The revision alone would not do: a coordinator that was restored counts on from an earlier one, and
/// another's win may then be of a revision that one won at oneself. Leases are never named twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Win {
    /// The revision that the key was put at.
    pub revision: Revision,
    /// The lease that it stands on; [`LeaseId::NONE`] where it was put by hand.
    pub lease: LeaseId,
}

/// An election, read in one linearizable transaction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ElectionState {
    /// The leader key, where there is one.
    pub leader: Option<SeenLeader>,
    /// The last term issued; [`Term::NONE`] where the key is absent.
    pub term: Term,
    /// The term key's revision; [`Revision::ABSENT`] where the key is absent.
    pub term_revision: Revision,
    /// The revision of the whole store at this read. A watch from the next one misses nothing.
    pub read_at: Revision,
}

/// What made the place look free, to be compared again in the campaign's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vacancy {
    /// There was no leader key.
    Absent,
    /// There was one without a lease, which nobody can hold: put by hand.
    Leaseless(Revision),
}

/// One try at winning: *if* the place is as it was seen and the term key is unchanged, *then* put both.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Campaign {
    /// What to put as the leader's record, on its own lease. Its term is put as the last one issued.
    pub record: LeaderRecord,
    /// How the leader key was seen.
    pub vacancy: Vacancy,
    /// How the term key was seen.
    pub term_revision: Revision,
}

/// What a campaign came to. That it is not known is an error, and settled by reading again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "one per operation and soon taken apart: a box would be in the way")]
pub enum CampaignOutcome {
    /// The record stands since this revision.
    Won {
        /// The revision of the win.
        revision: Revision,
    },
    /// Something had changed; this was found in the same transaction.
    Lost(ElectionState),
    /// The lease to stand on is gone.
    LeaseGone,
}

/// What giving up a leader key came to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "one per operation and soon taken apart: a box would be in the way")]
pub enum ResignOutcome {
    /// The key was of that win and is gone.
    Resigned,
    /// It was not: this was found, and left alone.
    NotMine {
        /// The leader key as it stands.
        found: Option<SeenLeader>,
    },
}

/// A planned hand-over to a successor that is there: *if* the leader key is mine by revision and lease, the term key
/// unchanged and the successor registered on that lease, *then* put the term and the successor's record on its lease.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// One's own win.
    pub won: Win,
    /// How the term key was seen.
    pub term_revision: Revision,
    /// The successor's record, with its lease and a tenure id made for it.
    pub record: LeaderRecord,
}

/// What a transfer came to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "one per operation and soon taken apart: a box would be in the way")]
pub enum TransferOutcome {
    /// The successor's record stands since this revision.
    Transferred {
        /// The revision of its win.
        revision: Revision,
    },
    /// Something was otherwise: nothing was changed.
    NotTransferred {
        /// The election as found in the same transaction.
        found: ElectionState,
    },
}

/// What registering a replica came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegisterOutcome {
    /// The record stands on the lease.
    Registered,
    /// The lease is gone.
    LeaseGone,
}

/// What noting the accepted term came to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "one per operation and soon taken apart: a box would be in the way")]
pub enum AcceptedOutcome {
    /// It is noted.
    Noted,
    /// The leader key is not of that win: nothing was changed.
    NotLeader {
        /// The leader key as it stands.
        found: Option<SeenLeader>,
    },
}

/// How many of the coordinator's members answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Members {
    /// Those that answered within their deadline.
    pub reachable: u32,
    /// Those configured.
    pub total: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leaders_record_has_the_fields_that_people_read() {
        let record = LeaderRecord {
            election: ElectionName::new("settlement").expect("valid"),
            leader_id: ReplicaId::new("a-1").expect("valid"),
            tenure_id: TenureId(uuid::Uuid::nil()),
            lease_id: LeaseId(7),
            term: Term::new(3).expect("valid"),
            host: "a".into(),
            address: "10.0.0.7:9464".into(),
            version: "0.1.0".into(),
            schedule_fingerprint: "f00".into(),
            won_at: None,
        };
        let json = serde_json::to_value(&record).expect("serializable");
        let mut fields: Vec<_> = json.as_object().expect("an object").keys().cloned().collect();
        fields.sort();
        let mut expected = [
            "election",
            "leader_id",
            "tenure_id",
            "lease_id",
            "term",
            "host",
            "address",
            "version",
            "schedule_fingerprint",
            "won_at",
        ];
        expected.sort_unstable();
        assert_eq!(fields, expected);
        assert_eq!(serde_json::from_value::<LeaderRecord>(json).expect("readable"), record);
    }
}
