//! Leadership: who leads each election, and until when a replica may believe that it does.
//!
//! The decisions are a pure machine ([`machine`], with the lease's [`lease::Window`]); the rest are thin shells: a port to
//! the [`coordinator`], adapters for it ([`etcd`], [`database`], [`memory`]), and the session's thread ([`driver`]). What leads is asked
//! through a [`Gate`], never through a stored flag.
//!
//! Invariants: see [`machine`]. The lease is for liveness; no argument for correctness rests on anything in here.

pub mod coordinator;
pub mod database;
pub mod driver;
pub mod etcd;
pub mod gate;
pub mod lease;
pub mod machine;
pub mod memory;
pub mod observer;
pub mod reason;
pub mod record;

pub use coordinator::{Coordinator, CoordinatorError, ElectionWatch};
pub use driver::{
    CoordinatorFactory, ExitHook, Leadership, LeadershipHandle, LeadershipSettings, ReplicaDescription, StoreTime,
    TenureGrant, TenureOrder,
};
pub use gate::{Gate, GateClosed, GateControl, GateRefusal};
pub use machine::{ElectionView, EndMode, LeadershipView, Report};
pub use observer::{NoObserver, Observer};
pub use reason::{ElectionPhase, EndReason, ExitReason, SessionState, Suspicion, TransitionReason};
pub use record::{
    AcceptedOutcome, Campaign, CampaignOutcome, ElectionState, Grant, LeaderRecord, LeaseId, Members, RegisterOutcome,
    RenewOutcome, ReplicaRecord, ResignOutcome, Revision, RevokeOutcome, SeenLeader, Transfer, TransferOutcome,
    Vacancy, Win,
};
