//! A watch on one leader key. It only wakes, and shows that it lives: etcd's own progress messages come every ten minutes, so
//! they are asked for.

use std::time::Duration;

use async_trait::async_trait;
use etcd_client::{Client, WatchOptions, WatchStream};
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::link::Connection;
use crate::leadership::coordinator::{CoordinatorError, ElectionWatch};
use crate::leadership::lease::ATTEMPT_LIMIT;
use crate::leadership::record::Revision;

/// How often a quiet watch is asked whether it lives. A member that is frozen is found out after this and one attempt.
const PROBE_EVERY: Duration = Duration::from_secs(2);

pub(super) struct EtcdWatch {
    stream: WatchStream,
    probe: Interval,
    /// Asked, and nothing was heard since.
    unanswered: bool,
    endpoint: String,
    /// Keeps the connection that the stream goes through.
    _client: Client,
}

impl EtcdWatch {
    pub(super) async fn open(connection: Connection, key: String, from: Revision) -> Result<Self, etcd_client::Error> {
        let Connection { mut client, endpoint, keepalive: _ } = connection;
        let options = WatchOptions::new().with_start_revision(from.0);
        let stream = client.watch(key, Some(options)).await?;
        let mut probe = interval(PROBE_EVERY);
        probe.set_missed_tick_behavior(MissedTickBehavior::Delay);
        probe.reset();
        Ok(Self { stream, probe, unanswered: false, endpoint, _client: client })
    }

    fn over(&self, why: &impl ToString) -> CoordinatorError {
        CoordinatorError::Unreachable { endpoint: self.endpoint.clone(), why: why.to_string() }
    }
}

#[async_trait]
impl ElectionWatch for EtcdWatch {
    async fn woken(&mut self) -> Result<(), CoordinatorError> {
        loop {
            tokio::select! {
                biased;
                message = self.stream.message() => {
                    let message = message.map_err(|error| self.over(&error))?.ok_or_else(|| self.over(&"the watch ended"))?;
                    self.unanswered = false;
                    if message.canceled() {
                        return Err(self.over(&message.cancel_reason()));
                    }
                    if !message.events().is_empty() {
                        return Ok(());
                    }
                }
                _ = self.probe.tick() => {
                    if std::mem::replace(&mut self.unanswered, true) {
                        return Err(self.over(&"the watch does not answer"));
                    }
                    let asked = timeout(ATTEMPT_LIMIT, self.stream.request_progress()).await;
                    match asked {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => return Err(self.over(&error)),
                        Err(_) => return Err(self.over(&"the watch takes no question")),
                    }
                }
            }
        }
    }
}
