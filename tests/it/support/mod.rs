//! What the integration tests stand on: owned processes, real servers, a fault proxy, clusters of replicas.
//!
//! Invariants:
//! - Nothing that a test starts outlives the test process, however that ends ([`process`]).
//! - A wait is bounded and says what it waited for ([`wait`]); nothing sleeps for a guessed time.
//! - Servers are managed by blocking calls, bounded in time; whatever must go on meanwhile (proxies, samplers) has threads
//!   of its own. Data is read and written by async calls of the ordinary clients.
//!
//! Deliberately absent: a way into private fields of the product. Replicas are seen through their port, their commands and
//! the store, as an operator sees them.
#![expect(
    dead_code,
    reason = "a library for tests to come: each file has helpers that only some slices of the tests use yet"
)]
#![expect(unused_imports, reason = "the re-exports are the tests' vocabulary, whether or not each is spoken yet")]

pub mod cluster;
pub mod collector;
pub mod database;
pub mod disk;
pub mod door;
pub mod entries;
pub mod etcd;
pub mod faketime;
pub mod job;
pub mod ledger;
pub mod long;
pub mod metrics;
pub mod orphans;
pub mod ports;
pub mod postgres;
pub mod process;
pub mod proof;
pub mod proxy;
pub mod receiver;
pub mod replica;
pub mod sampler;
pub mod scratch;
pub mod setup;
pub mod wait;

pub use cluster::{Cluster, Pair, Setup};
pub use collector::Collector;
pub use database::Database;
pub use disk::SmallDisk;
pub use door::{BehindDoor, Door, always, door};
pub use entries::Entries;
pub use etcd::Etcd;
pub use faketime::FakeClock;
pub use job::{Calls, EVERY_SECOND, Job, schedule};
pub use ledger::LedgerJob;
pub use long::repetitions;
pub use metrics::{Metrics, measured};
pub use postgres::Postgres;
pub use process::{Finished, Launch, Process};
pub use proxy::Proxy;
pub use replica::Replica;
pub use sampler::Sampler;
pub use wait::{eventually, eventually_blocking, holds_for};
