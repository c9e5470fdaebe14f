//! SQLite behind the store's port: one file, the replicas all on one host.
//!
//! Whoever writes begins with BEGIN IMMEDIATE and so holds the file's one write lock: what it reads of the fence stays true
//! until its transaction ends, and one that advances waits for it, or it for the one that advances. A commit is on the disk
//! when it is answered (`synchronous = FULL`, looked at on every connection). SQL stands in `sql/`; every file is prepared
//! against a migrated database by a test.
//!
//! What it does not give, compared with PostgreSQL: several writers at a time, a session that the server ends when its
//! client stands still (`process` does it from outside, for replicas), and an outside memory that notices a restored file.
//!
//! Deliberately absent: retries (the caller knows what a fault means for its batch) and any cache of what the database says.

mod acts;
mod advance;
mod audit;
mod audit_checks;
mod binding;
mod call_acts;
mod calls;
mod carries;
mod charge;
mod columns;
mod error;
mod execute;
mod fence;
mod figures;
mod file;
mod finish;
mod fitness;
mod give_up;
mod halt;
mod history;
mod import;
mod jobs;
mod lineage;
mod log_size;
mod migrate;
mod one_statement;
mod open_runs;
mod pauses;
mod payout_acts;
mod payout_records;
mod payouts;
mod plan;
mod plan_query;
mod port;
mod preview;
mod process;
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
mod settle_parts;
mod settle_sql;
mod status;
mod store;
mod stories;
mod take_over;
mod tenure;
mod ticks;
mod tries;
mod tx;
mod understands;
mod unit_history;
mod units;
mod watch;
mod wishes;
mod within;

pub use settings::SqliteSettings;
pub use store::SqliteStore;
