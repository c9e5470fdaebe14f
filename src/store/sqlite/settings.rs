//! Where the file is and who asks: plain values from the configuration, so that nobody else needs the driver's types.

use std::path::PathBuf;

/// Where the store is, and who asks.
#[derive(Debug, Clone, Default)]
pub struct SqliteSettings {
    /// The file; SQLite keeps two more beside it (`-wal`, `-shm`).
    pub path: PathBuf,
    /// The replica's id, kept with refusals. For a command, its name.
    pub replica: String,
    /// Whether a missing file is made, and an older schema brought up.
    pub create: bool,
    /// Whether this process is a replica: it is listed in the file, and a new leader that cannot get the file's write lock
    /// because this process stands still with it may end it.
    pub is_replica: bool,
}
