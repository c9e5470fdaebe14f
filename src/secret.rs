//! Values that are used and never shown, and where they come from: written down, or in a file that is read anew.
//!
//! Invariants:
//! - `Debug` hides them, and there is no `Display` and no `Serialize`.
//! - A file is read each time that its content is needed, which is for each new connection. Where it cannot be read, or is
//!   empty, what was read last stays in use: a rotation that is half done cuts nobody off.
//!
//! Deliberately absent: watching files, and ending connections that stand: what was good when they were made stays good
//! until the other side says otherwise.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;

/// The largest file of a secret, in bytes.
pub const MOST_SECRET_BYTES: u64 = 64 * 1024;
/// The longest wait for a secret's file, well below what an attempt to connect has: there must be time left to do so with what was
/// read last.
const READ_WITHIN: Duration = Duration::from_millis(300);

/// A secret text: a password, a key, a URL that may hold a password.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the client that needs it and nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// The text of a secret's file: without the line break at its end, UTF-8, not empty.
///
/// # Errors
/// What is wrong with it; nothing of its content.
pub fn text_of(bytes: Vec<u8>) -> Result<Secret, &'static str> {
    let content = String::from_utf8(bytes).map_err(|_| "is not UTF-8 text")?;
    let content = content.trim_end_matches(['\r', '\n']);
    if content.is_empty() { Err("is empty") } else { Ok(Secret::new(content)) }
}

/// A secret, and the file that it stands in, if it does. Clones share what was read last.
#[derive(Clone, Default)]
pub struct SecretSource {
    file: Option<PathBuf>,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    secret: Secret,
    /// Held by whoever reads the file.
    reading: Arc<tokio::sync::Mutex<()>>,
    /// Whether the file could not be read the last time: said once, not with every connection.
    is_lost: bool,
}

impl SecretSource {
    /// One that is written down.
    #[must_use]
    pub fn written(secret: Secret) -> Self {
        Self { file: None, known: Arc::new(Mutex::new(Known { secret, ..Known::default() })) }
    }

    /// One in a file, with what was read from it first.
    #[must_use]
    pub fn in_file(path: PathBuf, first: Secret) -> Self {
        Self { file: Some(path), ..Self::written(first) }
    }

    /// What was read last.
    #[must_use]
    pub fn known(&self) -> Secret {
        self.lock().secret.clone()
    }

    /// What it is now. Reads the file, if there is one and it lets itself be read soon.
    pub async fn current(&self) -> Secret {
        let Some(path) = &self.file else { return self.known() };
        // One at a time: of a file system that hangs, each would keep a thread.
        let reading = Arc::clone(&self.lock().reading);
        let Ok(alone) = reading.try_lock_owned() else { return self.known() };
        let file = path.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let _alone = alone;
            read_bytes_now(&file, MOST_SECRET_BYTES)
        });
        let read = answer_of(reading).await.and_then(|bytes| text_of(bytes).map_err(str::to_owned));
        let mut known = self.lock();
        match read {
            Ok(secret) => {
                if known.secret != secret {
                    tracing::info!(file = %path.display(), "a secret was read anew");
                }
                (known.secret, known.is_lost) = (secret, false);
            }
            Err(problem) => {
                if !std::mem::replace(&mut known.is_lost, true) {
                    tracing::warn!(file = %path.display(), problem, "a secret's file cannot be read; what was read last is used");
                }
            }
        }
        known.secret.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Nothing panics under it.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretSource").field("file", &self.file).field("known", &"***").finish()
    }
}

impl From<String> for SecretSource {
    fn from(text: String) -> Self {
        Self::written(Secret::new(text))
    }
}

impl From<&str> for SecretSource {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

/// Reads a regular file of at most so many bytes, and nothing else: a pipe without a writer would be waited for for ever. It has 300
/// milliseconds to answer: one on a file system that hangs keeps a thread for blocking work, and nobody waits for it.
///
/// # Errors
/// What is wrong with it; nothing of its content.
pub async fn read_bytes(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let path = path.to_owned();
    answer_of(tokio::task::spawn_blocking(move || read_bytes_now(&path, most))).await
}

async fn answer_of(reading: JoinHandle<Result<Vec<u8>, String>>) -> Result<Vec<u8>, String> {
    match tokio::time::timeout(READ_WITHIN, reading).await {
        Ok(Ok(read)) => read,
        Ok(Err(stopped)) => Err(stopped.to_string()),
        Err(_elapsed) => Err(format!("no answer within {READ_WITHIN:?}")),
    }
}

/// As [`read_bytes`], on the thread that asks and without a bound in time: for a start.
///
/// # Errors
/// As [`read_bytes`].
pub fn read_bytes_now(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if found.is_dir() {
        return Err("it is a directory".to_owned());
    }
    if !found.is_file() {
        return Err("it is a pipe, a socket or a device; expected a regular file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most { Err(format!("it has more than {most} bytes")) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_read_anew_and_what_was_read_last_outlives_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("password");
        let source = SecretSource::in_file(path.clone(), Secret::new("first"));
        let other = source.clone();
        std::fs::write(&path, "second\r\n").expect("written");
        assert_eq!(source.current().await.expose(), "second");
        assert_eq!(other.known().expose(), "second");
        // In the middle of being written; gone; no text.
        std::fs::write(&path, "\n").expect("written");
        assert_eq!(source.current().await.expose(), "second");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(source.current().await.expose(), "second");
        std::fs::write(&path, [0xff, 0xfe]).expect("written");
        assert_eq!(source.current().await.expose(), "second");
        // A pipe that nobody writes into.
        std::fs::remove_file(&path).expect("removed");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .expect("a pipe");
        assert_eq!(source.current().await.expose(), "second");
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(&path, "third").expect("written");
        assert_eq!(other.current().await.expose(), "third");
    }

    #[tokio::test]
    async fn what_is_written_down_stays_and_nothing_is_shown() {
        let source = SecretSource::from("hunter2");
        assert_eq!(source.current().await.expose(), "hunter2");
        assert!(!format!("{source:?} {:?}", source.known()).contains("hunter2"));
    }
}
