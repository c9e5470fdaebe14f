//! PostgreSQL behind the store's port.
//!
//! Every transaction of a tenure is a `tx::FencedTx`: READ COMMITTED said explicitly, `bursar.enter` first, and COMMIT
//! with an unknown outcome told apart from failure. Sessions are known by their backends, so that a tenure's can be ended
//! from the control pool. SQL stands in `sql/`, one statement a file; every file is prepared against a migrated database by
//! a test.
//!
//! Deliberately absent: retries (the caller knows what a fault means for its batch) and any cache of what the database says.

mod acts;
mod advance;
mod approvals;
mod audit;
mod audit_checks;
mod binding;
mod call_acts;
mod calls;
mod carries;
mod charge;
mod columns;
mod end;
mod error;
mod execute;
mod fence;
mod figures;
mod finish;
mod fitness;
mod give_up;
mod halt;
mod history;
mod import;
mod jobs;
mod lineage;
mod migrate;
mod notices;
mod open_runs;
mod pauses;
mod payout_acts;
mod payout_records;
mod payouts;
mod places;
mod plan;
mod plan_query;
mod port;
mod preview;
mod receivers;
mod recover;
mod refusals;
mod report;
mod requests;
mod revert;
mod runs;
mod sessions;
mod settings;
mod settle;
mod settle_ledger;
mod settle_sql;
mod status;
mod store;
mod stories;
mod take_over;
mod tenure;
mod ticks;
mod tx;
mod understands;
mod unit_history;
mod units;
mod wishes;
mod within;

pub use places::PgShares;
pub use settings::PgSettings;
pub use store::PgStore;
