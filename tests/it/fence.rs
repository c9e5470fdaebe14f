//! The fence on a real PostgreSQL: what two leaders at once can and cannot do, by the product's own statements.

mod admission;
mod advance;
mod commit;
pub mod ground;
mod guards;
mod halt;
mod health;
mod interleavings;
mod sessions;
mod statements;
