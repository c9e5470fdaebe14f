//! The kinds of faults, what each one takes hold of, and which of them the short form has.

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// SIGKILL to a replica.
    Kill,
    /// SIGSTOP to a replica, for half to four TTLs.
    Freeze,
    /// SIGTERM to a replica, and a new one in its place.
    Leave,
    /// So little of the processor for a replica that it is stopped for most of the time.
    Starve,
    /// A replica's wall clock is stepped, there and back.
    ReplicaClock,
    /// A replica is cut from etcd, one way or both.
    CutCoordinator,
    /// A replica is cut from the database, one way or both.
    CutStore,
    /// Whoever leads is cut from the receiver, one way or both.
    CutReceiver,
    /// Whoever leads is cut from the receiver, killed, and followed by another: what it had sent arrives behind that one's.
    LateRequests,
    /// A replica's bytes to and from etcd and the database are late.
    Delay,
    /// A replica's connections with etcd and the database end for itself, and not for the servers.
    HalfOpen,
    /// A replica's connections with the database are reset behind their COMMIT.
    ResetAfterCommit,
    /// The receiver breaks off, is silent, or answers 429 or 503.
    Misbehave,
    /// SIGKILL to one member of etcd.
    KillMember,
    /// SIGSTOP to one member of etcd.
    FreezeMember,
    /// Two of three members of etcd are killed or stopped.
    LoseQuorum,
    /// etcd is set back to an older snapshot.
    RestoreCoordinator,
    /// etcd begins anew, empty.
    WipeCoordinator,
    /// A hand deletes the leader's key.
    DeleteKey,
    /// A hand deletes the leader's key while the leader hears nothing of etcd: it goes on beside the next one.
    DeleteKeyUnheard,
    /// The database is restarted while the leader waits for the answer of a COMMIT.
    RestartStore,
    /// SIGKILL to the database.
    KillStore,
    /// The database takes no new session.
    FreezeStore,
    /// The database's wall clock is stepped, there and back.
    StoreClock,
    /// There is no room left under the database.
    FullDisk,
    /// An operator halts the election, and resumes it.
    Halt,
    /// An operator hands the election over.
    Transfer,
    /// An operator keeps the leader from leading, and lets it again.
    Cordon,
}

/// What a fault takes hold of; two that take the same are not there at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// One of the replicas.
    Replica(usize),
    /// All of etcd.
    Coordinator,
    /// The database.
    Store,
    /// What the receiver does.
    Receiver,
    /// What the store's clock says of halts: the audit compares times of one clock.
    Halts,
    /// Who leads, by an operator's wish.
    Leading,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 28] = [
        Self::Kill,
        Self::Freeze,
        Self::Leave,
        Self::Starve,
        Self::ReplicaClock,
        Self::CutCoordinator,
        Self::CutStore,
        Self::CutReceiver,
        Self::LateRequests,
        Self::Delay,
        Self::HalfOpen,
        Self::ResetAfterCommit,
        Self::Misbehave,
        Self::KillMember,
        Self::FreezeMember,
        Self::LoseQuorum,
        Self::RestoreCoordinator,
        Self::WipeCoordinator,
        Self::DeleteKey,
        Self::DeleteKeyUnheard,
        Self::RestartStore,
        Self::KillStore,
        Self::FreezeStore,
        Self::StoreClock,
        Self::FullDisk,
        Self::Halt,
        Self::Transfer,
        Self::Cordon,
    ];

    /// Those of the short form: of each sort what a plain run can do in two minutes, none that needs root.
    pub const SHORT: [Self; 14] = [
        Self::Kill,
        Self::Freeze,
        Self::Leave,
        Self::CutCoordinator,
        Self::CutStore,
        Self::CutReceiver,
        Self::LateRequests,
        Self::ResetAfterCommit,
        Self::KillMember,
        Self::WipeCoordinator,
        Self::DeleteKeyUnheard,
        Self::RestartStore,
        Self::Transfer,
        Self::Cordon,
    ];

    /// Whether it is done to one replica.
    pub const fn is_of_a_replica(self) -> bool {
        match self {
            Self::Kill
            | Self::Freeze
            | Self::Leave
            | Self::Starve
            | Self::ReplicaClock
            | Self::CutCoordinator
            | Self::CutStore
            | Self::CutReceiver
            | Self::LateRequests
            | Self::Delay
            | Self::HalfOpen
            | Self::ResetAfterCommit
            | Self::DeleteKeyUnheard
            | Self::RestartStore
            | Self::Cordon => true,
            Self::Misbehave
            | Self::KillMember
            | Self::FreezeMember
            | Self::LoseQuorum
            | Self::RestoreCoordinator
            | Self::WipeCoordinator
            | Self::DeleteKey
            | Self::KillStore
            | Self::FreezeStore
            | Self::StoreClock
            | Self::FullDisk
            | Self::Halt
            | Self::Transfer => false,
        }
    }

    /// Whether that replica has to be the leader.
    pub const fn is_of_the_leader(self) -> bool {
        matches!(
            self,
            Self::CutReceiver
                | Self::LateRequests
                | Self::ResetAfterCommit
                | Self::DeleteKeyUnheard
                | Self::RestartStore
                | Self::Cordon
        )
    }

    /// What it takes hold of, done to that replica where it is of one.
    pub fn holds(self, replica: usize) -> Vec<Hold> {
        match self {
            Self::Kill
            | Self::Freeze
            | Self::Leave
            | Self::Starve
            | Self::ReplicaClock
            | Self::CutCoordinator
            | Self::CutStore
            | Self::CutReceiver
            | Self::Delay
            | Self::HalfOpen
            | Self::ResetAfterCommit => vec![Hold::Replica(replica)],
            Self::DeleteKeyUnheard => vec![Hold::Replica(replica), Hold::Coordinator],
            Self::LateRequests => vec![Hold::Replica(replica), Hold::Receiver],
            Self::Misbehave => vec![Hold::Receiver],
            Self::KillMember
            | Self::FreezeMember
            | Self::LoseQuorum
            | Self::RestoreCoordinator
            | Self::WipeCoordinator
            | Self::DeleteKey => vec![Hold::Coordinator],
            Self::RestartStore => vec![Hold::Replica(replica), Hold::Store],
            Self::KillStore | Self::FreezeStore | Self::FullDisk => vec![Hold::Store],
            Self::StoreClock => vec![Hold::Store, Hold::Halts],
            Self::Halt => vec![Hold::Halts],
            Self::Transfer => vec![Hold::Leading],
            Self::Cordon => vec![Hold::Replica(replica), Hold::Leading],
        }
    }

    /// Whether what etcd knew was changed by a hand: two leaders are harmless and possible for a moment behind it.
    pub const fn tampers(self) -> bool {
        matches!(self, Self::RestoreCoordinator | Self::WipeCoordinator | Self::DeleteKey | Self::DeleteKeyUnheard)
    }

    /// Whether a replica that it is done to may hear late of what is in etcd.
    pub const fn deafens(self) -> bool {
        matches!(
            self,
            Self::Freeze | Self::Starve | Self::CutCoordinator | Self::Delay | Self::HalfOpen | Self::DeleteKeyUnheard
        )
    }

    /// Whether it may keep everybody from leading while it lasts.
    pub const fn is_of_a_server(self) -> bool {
        self.is_of_the_coordinator()
            || matches!(self, Self::RestartStore | Self::KillStore | Self::FreezeStore | Self::FullDisk)
    }

    /// Whether members of etcd may have to elect among themselves: leases have their whole time again behind it.
    pub const fn is_of_the_coordinator(self) -> bool {
        matches!(
            self,
            Self::KillMember | Self::FreezeMember | Self::LoseQuorum | Self::RestoreCoordinator | Self::WipeCoordinator
        )
    }

    /// Whether who leads may have to end by it.
    pub const fn unseats(self) -> bool {
        !matches!(self, Self::CutReceiver | Self::Misbehave | Self::ReplicaClock | Self::StoreClock | Self::Halt)
    }

    /// Whether leadership ends by it in good order, or is seen at once to be over: nobody waits for a lease.
    pub const fn is_planned(self) -> bool {
        matches!(self, Self::Leave | Self::DeleteKey | Self::Transfer | Self::Cordon)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_listed_once() {
        let mut kinds = Kind::ALL.to_vec();
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds.len(), Kind::ALL.len());
        // The last one of the declaration: a kind that is added behind it is to be listed too.
        assert_eq!(Kind::Cordon as usize + 1, Kind::ALL.len());
        assert!(Kind::SHORT.iter().all(|kind| Kind::ALL.contains(kind)));
    }
}
