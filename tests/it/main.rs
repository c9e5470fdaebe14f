//! The one integration binary: real replicas against a real etcd and a real PostgreSQL, started by the tests themselves.
//!
//! Plain `cargo test --features chaos --test it` runs it: all tests as threads of one process, sharing one etcd member and
//! one PostgreSQL server through distinct prefixes and databases, and starting private ones only where a test breaks them.
//! Tests whose verdict is a time bound live in `timed` modules and are run alone, one at a time, by `scripts/test`.

mod answers;
mod architecture;
mod audit;
mod cli;
mod commands;
mod config;
mod contract;
mod dashboards;
mod demo;
mod deploy;
mod desk;
mod election;
mod faults;
mod fence;
mod forgetting;
mod handlers;
mod http;
mod imports;
mod ingest;
mod leadership;
mod ledger;
mod log;
mod money;
mod moving;
mod mutants;
mod operation;
mod outside;
mod pairs;
mod pauses;
mod paying;
mod payouts;
mod recovery;
mod rows;
mod samples;
mod scheduling;
mod security;
mod settling;
mod several;
mod smoke;
mod sqlite;
mod support;
mod tenure;
mod tenures;
mod timed;
mod traces;
mod unanswered;
