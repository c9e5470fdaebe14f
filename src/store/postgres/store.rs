//! The store of one process: its control pool, and where its tenures and commands get their sessions from.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::error::at;
use super::places::Places;
use super::sessions::{Held, Purpose, Sessions};
use super::settings::{PgSettings, Way};
use super::tx::{Done, ONE_SNAPSHOT, READ_COMMITTED, Tx, begin};
use super::within::{CONTROL, within};
use crate::store::StoreError;
use crate::store::untold::UntoldEnds;

/// Sessions of the control pool: eligibility, status, refusals, and ending other sessions must never wait for work.
pub const CONTROL_CONNECTIONS: u32 = 3;

/// Advances at a time: one control session waits for the lock, another ends what it waits for.
const ADVANCING: usize = 1;

/// Readings for people at a time (status, lists, figures): one control session is free for the fence whatever they do.
const READING: usize = 1;

/// The longest wait for a free control session.
const CONTROL_ACQUIRE: Duration = Duration::from_secs(5);

/// The store on PostgreSQL.
#[derive(Debug)]
pub struct PgStore {
    settings: Arc<PgSettings>,
    /// The replica's id.
    pub(super) replica: String,
    pub(super) control: Arc<Sessions>,
    /// What bounds the sessions of all tenures together.
    pub(super) places: Option<Arc<Places>>,
    /// Advances that wait for the exclusive lock; one control session stays free for ending what they wait for.
    pub(super) advancing: Semaphore,
    /// Readings for people.
    pub(super) reading: Semaphore,
    /// Ends of tenures of this process.
    pub(super) untold: UntoldEnds,
    /// Lost advances that are being written down.
    pub(super) notes: TaskTracker,
    deployment_id: OnceLock<Uuid>,
    pub(super) fitness: super::fitness::Fitness,
}

impl PgStore {
    /// Makes the store without connecting; sessions are opened as they are needed. [`PgStore::open_control`] opens them.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] where the settings cannot be read.
    pub fn new(settings: &PgSettings) -> Result<Self, StoreError> {
        settings.known()?;
        let settings = Arc::new(settings.clone());
        let way = Way::new(Arc::clone(&settings), application_name("control", &settings.replica));
        Ok(Self {
            replica: settings.replica.clone(),
            control: Sessions::new(way, CONTROL_CONNECTIONS, CONTROL_ACQUIRE, Purpose::Control),
            places: settings.shares.map(Places::new),
            advancing: Semaphore::new(ADVANCING),
            reading: Semaphore::new(READING),
            untold: UntoldEnds::default(),
            notes: TaskTracker::new(),
            deployment_id: OnceLock::new(),
            fitness: super::fitness::Fitness::default(),
            settings,
        })
    }

    /// The way to the database, as `what`.
    pub(super) fn way_for(&self, what: &str) -> Way {
        Way::new(Arc::clone(&self.settings), application_name(what, &self.replica))
    }

    /// Opens the control pool's sessions, so that they are there when nothing else can be opened.
    ///
    /// # Errors
    /// Those of connecting.
    pub async fn open_control(&self) -> Result<(), StoreError> {
        let mut held = Vec::new();
        for _ in 0..CONTROL_CONNECTIONS {
            held.push(self.control.acquire("open").await?);
        }
        held.into_iter().for_each(Held::give_back);
        Ok(())
    }

    /// The deployment's identity, read once.
    pub(super) async fn deployment_id(&self) -> Result<Uuid, StoreError> {
        if let Some(id) = self.deployment_id.get() {
            return Ok(*id);
        }
        let operation = "deployment";
        let mut held = self.control.acquire(operation).await?;
        let id: Uuid = within(operation, CONTROL, async {
            sqlx::query_scalar(include_str!("sql/deployment.sql"))
                .fetch_one(held.connection())
                .await
                .map_err(at(operation))
        })
        .await?;
        held.give_back();
        Ok(*self.deployment_id.get_or_init(|| id))
    }

    /// Tells the store how tenures of this process ended; what it could not be told is said again the next time.
    pub(super) async fn tell_ends(&self) -> Result<(), StoreError> {
        let operation = "note_end";
        loop {
            let Some(end) = self.untold.next() else { return Ok(()) };
            let mut held = self.control.acquire(operation).await?;
            let noting = super::binding::note_end(held.connection(), &end.claim, &end.reason, end.at);
            within(operation, CONTROL, noting).await?;
            held.give_back();
            self.untold.told(&end.claim);
        }
    }

    /// A transaction of the control pool: short, unfenced.
    pub(super) async fn control_tx(&self, operation: &'static str) -> Result<Tx, StoreError> {
        begin(&self.control, &self.control, operation, READ_COMMITTED, None).await
    }

    /// A transaction on a session of its own, for a command whose one transaction may be long.
    pub(super) async fn command_tx(&self, operation: &'static str) -> Result<Tx, StoreError> {
        begin(&self.command_sessions(operation), &self.control, operation, READ_COMMITTED, None).await
    }

    /// A read-only transaction that sees one state, on a session of its own.
    pub(super) async fn snapshot_tx(&self, operation: &'static str) -> Result<Tx, StoreError> {
        begin(&self.command_sessions(operation), &self.control, operation, ONE_SNAPSHOT, None).await
    }

    /// A session of its own.
    pub(super) async fn command_session(&self, operation: &'static str) -> Result<Held, StoreError> {
        self.command_sessions(operation).acquire(operation).await
    }

    fn command_sessions(&self, operation: &'static str) -> Arc<Sessions> {
        Sessions::new(self.way_for(operation), 1, CONTROL_ACQUIRE, Purpose::Command)
    }
}

/// For a person who looks at the server's sessions; nothing is parsed from it. The server cuts it at 63 bytes.
fn application_name(what: &str, replica: &str) -> String {
    let mut name = format!("bursar/{what}/{replica}");
    let mut end = name.len().min(63);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name
}

/// Ends a transaction as its operation says, and answers.
pub(super) async fn finish<T>(tx: Tx, worked: Result<Done<T>, StoreError>) -> Result<T, StoreError> {
    match worked {
        Ok(Done::Commit(answer)) => tx.commit().await.map(|()| answer),
        Ok(Done::RollBack(answer)) => {
            tx.rollback().await;
            Ok(answer)
        }
        // The statement may still be running on the server: only ending the session stops it.
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
