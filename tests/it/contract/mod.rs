//! One suite per port, run against every adapter: a fake has the same contract as the real thing.

mod coordinator;
mod store;
