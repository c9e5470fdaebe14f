//! Closed sets of reasons and states: the labels of metrics, the words of logs and of `status`.

use std::fmt;

macro_rules! closed {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident => $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$vdoc])* $variant),+
        }

        impl $name {
            /// All of them, in the order of reports.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The label in metrics, logs and JSON.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

closed! {
    /// Why a tenure ends.
    EndReason {
        /// The process was asked to stop.
        Drain => "drain",
        /// An operator took the replica out of leading.
        Cordoned => "cordoned",
        /// It is handed to a named successor.
        Transfer => "transfer",
        /// No renewal succeeded before the deadline.
        SessionLost => "session_lost",
        /// The coordinator said that the lease is gone.
        LeaseGone => "lease_gone",
        /// The leader key is not there any more.
        LeaderKeyGone => "leader_key_gone",
        /// The leader key is there, but not from this win.
        LeaderKeyTaken => "leader_key_taken",
        /// The replica may not lead any more (store away, read-only, of another schema).
        Ineligible => "ineligible",
        /// A step of the promotion failed.
        PromotionFailed => "promotion_failed",
        /// The store knows a higher term, or another tenure of this one.
        Fenced => "fenced",
        /// The tenure itself failed.
        Fault => "fault",
    }
}

closed! {
    /// Why leadership changed hands at this replica, in either direction.
    TransitionReason {
        /// A campaign was won.
        Won => "won",
        /// A record on this replica's lease was found and taken up: a transfer, or a campaign whose answer was lost.
        Adopted => "adopted",
        /// See [`EndReason::Drain`].
        Drain => "drain",
        /// See [`EndReason::Cordoned`].
        Cordoned => "cordoned",
        /// See [`EndReason::Transfer`].
        Transfer => "transfer",
        /// See [`EndReason::SessionLost`].
        SessionLost => "session_lost",
        /// See [`EndReason::LeaseGone`].
        LeaseGone => "lease_gone",
        /// See [`EndReason::LeaderKeyGone`].
        LeaderKeyGone => "leader_key_gone",
        /// See [`EndReason::LeaderKeyTaken`].
        LeaderKeyTaken => "leader_key_taken",
        /// See [`EndReason::Ineligible`].
        Ineligible => "ineligible",
        /// See [`EndReason::PromotionFailed`].
        PromotionFailed => "promotion_failed",
        /// See [`EndReason::Fenced`].
        Fenced => "fenced",
        /// See [`EndReason::Fault`].
        Fault => "fault",
    }
}

impl From<EndReason> for TransitionReason {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::Drain => Self::Drain,
            EndReason::Cordoned => Self::Cordoned,
            EndReason::Transfer => Self::Transfer,
            EndReason::SessionLost => Self::SessionLost,
            EndReason::LeaseGone => Self::LeaseGone,
            EndReason::LeaderKeyGone => Self::LeaderKeyGone,
            EndReason::LeaderKeyTaken => Self::LeaderKeyTaken,
            EndReason::Ineligible => Self::Ineligible,
            EndReason::PromotionFailed => Self::PromotionFailed,
            EndReason::Fenced => Self::Fenced,
            EndReason::Fault => Self::Fault,
        }
    }
}

closed! {
    /// Where the session stands.
    SessionState {
        /// No lease was ever held, or the process is leaving.
        None => "none",
        /// A lease is being asked for.
        Granting => "granting",
        /// Renewals succeed.
        Live => "live",
        /// A renewal failed or is overdue, or the process was paused: nothing new begins.
        Suspect => "suspect",
        /// The last lease was lost, and there is no new one yet.
        Lost => "lost",
    }
}

closed! {
    /// Why a session is suspect.
    Suspicion {
        /// A renewal failed.
        RenewalFailed => "renewal_failed",
        /// No renewal succeeded when one should have.
        Overdue => "overdue",
        /// The session's thread woke much later than it had asked for.
        Paused => "paused",
        /// The clock that counts through a suspend ran away from the one that does not.
        ClocksDisagree => "clocks_disagree",
    }
}

closed! {
    /// Where one election stands at this replica.
    ElectionPhase {
        /// Watching whoever leads, or unable to stand.
        Observing => "observing",
        /// The place is free; waiting a short random time.
        Waiting => "waiting",
        /// Asking the store for the fence's term.
        ReadingFence => "reading_fence",
        /// The campaign is under way.
        Campaigning => "campaigning",
        /// The campaign's outcome is unknown and being read.
        Settling => "settling",
        /// Won; the store has not accepted the term yet.
        Promoting => "promoting",
        /// Won, and accepted by the store.
        Active => "active",
        /// The tenure is being ended.
        Ending => "ending",
        /// The tenure has ended; its leader key is being deleted.
        Clearing => "clearing",
        /// Not standing for a time, after tenures that ended by own fault.
        StandingBack => "standing_back",
    }
}

closed! {
    /// Why the process has to end itself.
    ExitReason {
        /// A tenure did not end within the teardown budget: its lease may be given to another while it goes on.
        TeardownOverrun => "teardown_overrun",
        /// The workers did not beat for three TTLs: a replica that renews and does nothing must not live on.
        WorkersStuck => "workers_stuck",
        /// The session's thread ended by itself.
        SessionThreadEnded => "session_thread_ended",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_tenure_is_a_transition_of_the_same_name() {
        for reason in EndReason::ALL {
            assert_eq!(TransitionReason::from(*reason).as_str(), reason.as_str());
        }
        assert_eq!(TransitionReason::ALL.len(), EndReason::ALL.len() + 2);
    }
}
