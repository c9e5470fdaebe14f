//! The size of the write-ahead log. SQLite starts it anew once nobody reads from it any more; a reader that stands still, a
//! stopped process or a shell with an open transaction, lets it grow with every commit until the disk is full.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A log of this size is worth a word: a hundred times what it has between two checkpoints.
const LARGE: u64 = 256 << 20;

/// What was said last.
#[derive(Debug, Default)]
pub(super) struct LogSize {
    said: AtomicU64,
}

impl LogSize {
    /// Looks at the log of this store, and warns where it is large, once for each doubling.
    pub(super) fn look(&self, store: &Path) {
        let mut log = store.as_os_str().to_owned();
        log.push("-wal");
        let bytes = std::fs::metadata(&log).map_or(0, |found| found.len());
        if self.is_news(bytes) {
            tracing::warn!(
                bytes,
                file = %Path::new(&log).display(),
                "the write-ahead log does not shrink: a process reads from it and stands still; end it, or the disk fills"
            );
        }
    }

    /// Whether this size is to be said now.
    fn is_news(&self, bytes: u64) -> bool {
        if bytes < LARGE {
            self.said.store(0, Ordering::Relaxed);
            return false;
        }
        let said = self.said.load(Ordering::Relaxed);
        let news = bytes >= said.saturating_mul(2).max(LARGE);
        if news {
            self.said.store(bytes, Ordering::Relaxed);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_grows_is_said_at_each_doubling_and_again_after_it_was_small() {
        let log = LogSize::default();
        let sizes = [LARGE - 1, LARGE, LARGE + 1, 2 * LARGE, 3 * LARGE, 4 * LARGE, 10, LARGE];
        let news = sizes.map(|bytes| log.is_news(bytes));
        assert_eq!(news, [false, true, false, true, false, true, false, true]);
    }
}
