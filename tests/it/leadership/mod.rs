//! The session's thread against a real etcd, with an application that carries out orders and has fences in memory.

mod app;
mod sessions;
mod timed;
