//! The store of one process: its control sessions, and where its tenures and commands get theirs from.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::advance::Standing;
use super::columns::id;
use super::error::at;
use super::file::File;
use super::log_size::LogSize;
use super::sessions::{Purpose, Sessions};
use super::settings::SqliteSettings;
use super::tx::{Done, Tx, begin_immediate, read};
use super::within::{CONTROL, within};
use crate::store::StoreError;
use crate::store::untold::UntoldEnds;

/// Sessions of the control set: eligibility, status and refusals must never wait for work.
pub const CONTROL_CONNECTIONS: u32 = 3;

/// Sessions for commands and for what reads a whole snapshot, at a time.
const COMMAND_CONNECTIONS: u32 = 8;

/// Readings for people at a time (status, lists, figures): one control session is free for the fence whatever they do.
const READING: usize = 1;

/// The longest wait for a free control session.
const CONTROL_ACQUIRE: Duration = Duration::from_secs(5);

/// The store on SQLite.
#[derive(Debug)]
pub struct SqliteStore {
    pub(super) file: Arc<File>,
    /// The replica's id.
    pub(super) replica: String,
    pub(super) control: Arc<Sessions>,
    /// For commands, whose one transaction may be long.
    pub(super) commands: Arc<Sessions>,
    /// Readings for people.
    pub(super) reading: Semaphore,
    /// Ends of tenures of this process.
    pub(super) untold: UntoldEnds,
    /// Refusals that are being written down.
    pub(super) notes: TaskTracker,
    pub(super) log_size: LogSize,
    deployment_id: OnceLock<Uuid>,
    /// Who was last seen to keep the write lock from an advance.
    standing: Mutex<Standing>,
}

impl SqliteStore {
    /// Makes the store without touching the file; whatever asks first makes it ready. [`SqliteStore::open`] does it at once.
    #[must_use]
    pub fn new(settings: &SqliteSettings) -> Self {
        let file = Arc::new(File::new(settings));
        Self {
            control: Sessions::new(Arc::clone(&file), CONTROL_CONNECTIONS, CONTROL_ACQUIRE, Purpose::Control),
            commands: Sessions::new(Arc::clone(&file), COMMAND_CONNECTIONS, CONTROL_ACQUIRE, Purpose::Command),
            file,
            replica: settings.replica.clone(),
            reading: Semaphore::new(READING),
            untold: UntoldEnds::default(),
            notes: TaskTracker::new(),
            log_size: LogSize::default(),
            deployment_id: OnceLock::new(),
            standing: Mutex::default(),
        }
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Looks at the file, and makes it and brings it up where the settings say so.
    ///
    /// # Errors
    /// What is wrong with the file, and what to do; nothing was changed in it then.
    pub async fn open(&self) -> Result<(), StoreError> {
        self.file.make_ready("open").await.map(|_| ())
    }

    /// The deployment's identity, read once.
    pub(super) async fn deployment_id(&self) -> Result<Uuid, StoreError> {
        if let Some(id) = self.deployment_id.get() {
            return Ok(*id);
        }
        let operation = "deployment";
        let mut held = self.control.acquire(operation).await?;
        let deployment = within(operation, CONTROL, async {
            let row = sqlx::query(include_str!("sql/deployment.sql"))
                .fetch_one(held.connection())
                .await
                .map_err(at(operation))?;
            id(&row, "deployment_id").map_err(at(operation))
        })
        .await?;
        held.give_back();
        Ok(*self.deployment_id.get_or_init(|| deployment))
    }

    /// Tells the store how tenures of this process ended; what it could not be told is said again the next time.
    pub(super) async fn tell_ends(&self) -> Result<(), StoreError> {
        let operation = "note_end";
        loop {
            let Some(end) = self.untold.next() else { return Ok(()) };
            let mut tx = self.control_tx(operation).await?;
            let worked =
                within(operation, CONTROL, super::binding::note_end(tx.conn(), &end.claim, &end.reason, end.at)).await;
            finish(tx, worked).await?;
            self.untold.told(&end.claim);
        }
    }

    pub(super) fn standing(&self) -> MutexGuard<'_, Standing> {
        // Nothing panics under it.
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A transaction that writes: short, unfenced.
    pub(super) async fn control_tx(&self, operation: &'static str) -> Result<Tx, StoreError> {
        begin_immediate(&self.control, operation).await
    }

    /// A transaction that writes, for a command whose one transaction may be long.
    pub(super) async fn command_tx(&self, operation: &'static str) -> Result<Tx, StoreError> {
        begin_immediate(&self.commands, operation).await
    }

    /// A transaction that reads one snapshot.
    pub(super) async fn snapshot_tx(&self, operation: &'static str) -> Result<Tx, StoreError> {
        read(&self.commands, operation).await
    }
}

/// Ends a transaction as its operation says, and answers. What was interrupted because its sessions were closed is told so,
/// whatever else it looked like, and never committed.
pub(super) async fn finish<T>(tx: Tx, worked: Result<Done<T>, StoreError>) -> Result<T, StoreError> {
    if tx.is_ended() {
        let operation = tx.operation();
        tx.rollback().await;
        return Err(StoreError::Ended { operation });
    }
    match worked {
        Ok(Done::Commit(answer)) => tx.commit().await.map(|()| answer),
        Ok(Done::RollBack(answer)) => {
            tx.rollback().await;
            Ok(answer)
        }
        // The statement may still be running: only closing its session stops it.
        Err(error @ StoreError::TimedOut { .. }) => {
            tx.abandon().await;
            Err(error)
        }
        Err(error) => {
            tx.rollback().await;
            Err(error)
        }
    }
}
