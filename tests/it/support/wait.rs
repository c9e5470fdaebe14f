//! Waiting: always for a condition, always bounded, and a wait that fails says what for and how long.

use std::time::Duration;

use bursar::clock::boottime;

/// How often a condition is looked at, at first. Short beside every bound that tests measure, long beside a scrape of
/// loopback.
pub const POLL: Duration = Duration::from_millis(10);
/// How often it is looked at once it has been waited for a second: many tests wait beside each other, and a look may cost a
/// session of the database.
const SLOW_POLL: Duration = Duration::from_millis(50);

/// The pause before the next look.
fn pause(waited: Duration) -> Duration {
    if waited < Duration::from_secs(1) { POLL } else { SLOW_POLL }
}

/// Looks at `probe` until it answers `Some`, and gives that.
///
/// # Panics
/// When `within` has passed, with `what`.
pub async fn eventually<T>(within: Duration, what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let since = boottime();
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        let waited = boottime().since(since);
        assert!(waited < within, "waited {within:?} in vain: {what}");
        tokio::time::sleep(pause(waited)).await;
    }
}

/// As [`eventually`], for conditions that are looked at by blocking calls.
///
/// # Panics
/// When `within` has passed, with `what`.
pub fn eventually_blocking<T>(within: Duration, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let since = boottime();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        let waited = boottime().since(since);
        assert!(waited < within, "waited {within:?} in vain: {what}");
        std::thread::sleep(pause(waited));
    }
}

/// Looks again and again for the whole of `time`: the condition must never fail.
///
/// # Panics
/// As soon as `probe` answers a reason why not.
pub async fn holds_for(time: Duration, what: &str, mut probe: impl AsyncFnMut() -> Result<(), String>) {
    let since = boottime();
    while boottime().since(since) < time {
        if let Err(why) = probe().await {
            panic!("{what} did not hold: {why}");
        }
        tokio::time::sleep(SLOW_POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wait_ends_with_what_it_waited_for() {
        let mut looks = 0;
        let found = eventually(Duration::from_secs(5), "three looks", async || {
            looks += 1;
            (looks == 3).then_some(looks)
        })
        .await;
        assert_eq!(found, 3);
    }

    #[tokio::test]
    #[should_panic(expected = "in vain: pigs fly")]
    async fn a_wait_in_vain_says_what_for() {
        eventually(Duration::from_millis(30), "pigs fly", async || None::<()>).await;
    }
}
