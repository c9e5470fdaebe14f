//! The store on SQLite: what only one file has, its faults, its write lock, its guards. What every store does is the
//! contract's.

mod faults;
mod fence;
mod ground;
mod guards;
mod holder;
mod settling;
mod statements;
