//! The secrets that requests are signed with: read from files, anew when they change, and never shown.
//!
//! The files are looked at no more than once a second. Where one that was read before cannot be read any more, what was
//! read last stays in use: a rotation that is half done does not stop payments. Where one was never read, nothing is sent:
//! a request without its signature would be refused, or, worse, taken.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::domain::Moment;
use crate::secret;

/// How long what was read is taken for what is there.
const FRESH: Duration = Duration::from_secs(1);
/// The largest file of a secret, in bytes.
const MOST_BYTES: u64 = 64 * 1024;
/// The shortest secret, in bytes.
pub(super) const LEAST_BYTES: usize = 16;

/// A secret. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey(Vec<u8>);

impl SigningKey {
    /// Wraps bytes.
    #[must_use]
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(super) fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(***)")
    }
}

/// Why a secret could not be read. Names the file, shows nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the secret in {path}: {problem}")]
pub struct SecretsError {
    path: String,
    problem: String,
}

/// What was read, and how often it has changed.
#[derive(Debug, Clone, Default)]
struct Read {
    at: Option<Moment>,
    keys: Option<Arc<[SigningKey]>>,
    changes: u64,
    /// Whether one could not be read the last time: said once.
    is_lost: bool,
}

/// The secrets of one receiver.
#[derive(Debug)]
pub struct Secrets {
    files: Vec<PathBuf>,
    read: Mutex<Read>,
}

impl Secrets {
    /// None is read yet.
    #[must_use]
    pub fn new(files: Vec<PathBuf>) -> Self {
        Self { files, read: Mutex::default() }
    }

    /// The secrets now, in the order of their files.
    ///
    /// # Errors
    /// One of them was never readable.
    pub async fn current(&self, now: Moment) -> Result<Arc<[SigningKey]>, SecretsError> {
        let mut read = self.read.lock().await;
        if let (Some(at), Some(keys)) = (read.at, &read.keys)
            && now.since(at) < FRESH
        {
            return Ok(Arc::clone(keys));
        }
        let found = self.read_all().await;
        read.at = Some(now);
        let was_lost = std::mem::replace(&mut read.is_lost, found.is_err());
        match (found, read.keys.clone()) {
            (Ok(found), Some(last)) if *last == *found => Ok(last),
            (Ok(found), last) => {
                let keys: Arc<[SigningKey]> = found.into();
                read.keys = Some(Arc::clone(&keys));
                read.changes += u64::from(last.is_some());
                Ok(keys)
            }
            (Err(error), Some(last)) => {
                if !was_lost {
                    tracing::warn!(%error, "a receiver's secret cannot be read; those before are used");
                }
                Ok(last)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// How often a change was read: a receiver that was stopped for want of the right one is tried again at once.
    pub async fn changes(&self, now: Moment) -> u64 {
        // What cannot be read has not changed; whoever signs is told.
        let _ = self.current(now).await;
        self.read.lock().await.changes
    }

    async fn read_all(&self) -> Result<Vec<SigningKey>, SecretsError> {
        let mut keys = Vec::with_capacity(self.files.len());
        for path in &self.files {
            let key = read_one(path).await;
            keys.push(key.map_err(|problem| SecretsError { path: path.display().to_string(), problem })?);
        }
        Ok(keys)
    }
}

async fn read_one(path: &Path) -> Result<SigningKey, String> {
    let mut bytes = secret::read_bytes(path, MOST_BYTES).await.map_err(|error| format!("cannot be read: {error}"))?;
    while matches!(bytes.last(), Some(b'\r' | b'\n')) {
        bytes.pop();
    }
    if bytes.len() < LEAST_BYTES {
        return Err(format!("found {} bytes, expected at least {LEAST_BYTES}", bytes.len()));
    }
    Ok(SigningKey(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::after_boot(Duration::from_secs(seconds))
    }

    #[tokio::test]
    async fn a_changed_secret_is_read_anew_and_a_lost_one_stays_in_use() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        let secrets = Secrets::new(vec![one.clone(), two.clone()]);
        std::fs::write(&one, "0123456789abcdef\n").expect("written");
        let missing = secrets.current(at(1)).await.expect_err("two is not there").to_string();
        assert!(missing.contains("two: cannot be read"), "{missing}");
        std::fs::write(&two, "short\n").expect("written");
        let short = secrets.current(at(2)).await.expect_err("two is short").to_string();
        assert!(short.contains("found 5 bytes, expected at least 16") && !short.contains("short"), "{short}");
        std::fs::write(&two, "fedcba9876543210").expect("written");
        let first = secrets.current(at(3)).await.expect("both");
        assert_eq!((first[0].expose(), first.len()), (&b"0123456789abcdef"[..], 2));
        assert_eq!(format!("{secrets:?}").matches("SigningKey(***)").count(), 2);
        assert_eq!(secrets.changes(at(5)).await, 0);
        std::fs::write(&one, "another-secret-16\r\n").expect("written");
        assert_eq!(secrets.current(at(5)).await.expect("fresh enough"), first);
        assert_eq!(secrets.current(at(6)).await.expect("both")[0].expose(), b"another-secret-16");
        assert_eq!(secrets.changes(at(6)).await, 1);
        std::fs::remove_file(&two).expect("removed");
        assert_eq!(secrets.current(at(9)).await.expect("the last ones").len(), 2);
        assert_eq!(secrets.changes(at(9)).await, 1);
    }
}
