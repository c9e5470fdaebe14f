//! Warnings that the server sends beside an answer. The driver gives them to nobody but the log; a COMMIT that succeeds
//! with a warning (a cancel met it while it waited for a synchronous standby: committed here, not replicated) must not be
//! taken for one that succeeded. So while COMMIT is polled, its thread's log events are listened to.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::OnceLock;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber, dispatcher};

/// Where the driver logs them.
const TARGET: &str = "sqlx::postgres::notice";

thread_local! {
    /// The last warning of the poll under way.
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Hears warnings and nothing else.
struct Ear;

impl Subscriber for Ear {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET && *metadata.level() <= Level::WARN
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut words = Words(String::new());
        event.record(&mut words);
        HEARD.with_borrow_mut(|heard| *heard = Some(words.0));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// The message of an event.
struct Words(String);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

/// Waits for `work`; answers the last warning beside what it came to. What else it would log is not logged.
pub(super) async fn with_warnings<T>(work: impl Future<Output = T>) -> (T, Option<String>) {
    // Once for the process: making a dispatcher touches every place that logs. There are two, because as long as only one
    // was ever made, a place that logs asks the thread that reaches it first, and keeps its answer for all others.
    static EARS: OnceLock<[Dispatch; 2]> = OnceLock::new();
    let [ear, _] = EARS.get_or_init(|| [Dispatch::new(Ear), Dispatch::new(Ear)]);
    let mut work = pin!(work);
    let mut warning = None;
    let done = poll_fn(|context| {
        let polled = dispatcher::with_default(ear, || work.as_mut().poll(context));
        if let Some(heard) = HEARD.take() {
            warning = Some(heard);
        }
        polled
    })
    .await;
    (done, warning)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warn() {
        tracing::warn!(target: TARGET, "not replicated");
    }

    #[tokio::test]
    async fn a_warning_is_heard_also_where_it_was_first_given_to_nobody() {
        warn();
        let (done, warning) = with_warnings(async {
            warn();
            7
        })
        .await;
        assert_eq!((done, warning.as_deref()), (7, Some("not replicated")));
        let ((), nothing) = with_warnings(async { tracing::warn!("of another kind") }).await;
        assert_eq!(nothing, None);
    }
}
