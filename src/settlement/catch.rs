//! A panic of a handler is a failed attempt, not the end of the run.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt;

use crate::store::{BatchError, BatchHook};

/// Runs a future to its end and turns a panic inside into its message.
///
/// # Errors
/// What the panic said, if it was text.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    // The future is dropped after a panic and never polled again; what it shared holds no half-made state of ours.
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| message(panic.as_ref()))
}

/// A hook whose panic is the batch's verdict.
pub fn guarded(hook: Arc<dyn BatchHook>) -> Arc<dyn BatchHook> {
    Arc::new(Guarded(hook))
}

struct Guarded(Arc<dyn BatchHook>);

#[async_trait]
impl BatchHook for Guarded {
    async fn run(&self, keys: &[String]) -> Result<(), BatchError> {
        caught(self.0.run(keys)).await.unwrap_or_else(|panic| {
            Err(BatchError { message: format!("the handler panicked: {panic}"), permanent: false })
        })
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&'static str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_by_its_words() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let told = runtime.block_on(caught(async {
            tokio::task::yield_now().await;
            assert!(std::hint::black_box(false), "seven");
        }));
        assert_eq!(told, Err("seven".to_owned()));
        assert_eq!(runtime.block_on(caught(async { 7 })), Ok(7));
    }
}
