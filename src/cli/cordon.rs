//! `bursar cordon` and `bursar uncordon`: whether a replica may lead.

use clap::Args;

use super::context::Context;
use super::error::{CommandError, Exit};
use super::halt::reason;
use super::operator::actor;
use super::output::Output;
use super::status::{Seen, look};
use crate::config::Config;
use crate::domain::ReplicaId;

/// Keep a replica from leading, until `bursar uncordon`
///
/// It goes on as a follower. Where it leads, it resigns as planned (it begins nothing new, and
/// waits for answers under way) within a few seconds. The id is the one that `bursar status`
/// shows; one that is not there now is kept out when it comes.
///
/// Example: bursar cordon settle-7f9c --reason 'its host is drained tonight'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct CordonArgs {
    /// The replica's id.
    replica: ReplicaId,
    /// Why; kept with the act.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

/// Let a replica lead again.
#[derive(Debug, Args)]
pub(super) struct UncordonArgs {
    /// The replica's id.
    replica: ReplicaId,
    /// Why; kept with the act.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

impl CordonArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        act(context, &self.replica, true, &self.reason).await
    }
}

impl UncordonArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        act(context, &self.replica, false, &self.reason).await
    }
}

async fn act(context: &Context, replica: &ReplicaId, cordoned: bool, reason: &str) -> Result<Exit, CommandError> {
    let (config, store) = context.open().await?;
    let changed = store.cordon(replica.as_str(), cordoned, reason, &actor()).await;
    store.close().await;
    let changed = changed?;
    let output = context.output().done();
    if output.is_json() {
        output.json(&serde_json::json!({ "replica": replica, "cordoned": cordoned, "changed": changed }))?;
    } else {
        output.line(&match (cordoned, changed) {
            (true, true) => format!("{replica} is cordoned: it stands for no election, and resigns what it leads"),
            (true, false) => format!("{replica} was cordoned already; nothing changed"),
            (false, true) => format!("{replica} may lead again"),
            (false, false) => format!("{replica} was not cordoned; nothing changed"),
        })?;
    }
    if cordoned {
        warn_of_unknown(output, &config, replica).await;
    }
    Ok(Exit::Done)
}

/// A mistyped id keeps nobody out: who is there is said, where it is known.
async fn warn_of_unknown(output: Output, config: &Config, replica: &ReplicaId) {
    match look(config, Vec::new()).await {
        Seen::Reached { replicas, .. } if replicas.iter().all(|there| there.replica_id != *replica) => {
            let names: Vec<&str> = replicas.iter().map(|there| there.replica_id.as_str()).collect();
            let names =
                if names.is_empty() { "none is".to_owned() } else { format!("registered are {}", names.join(", ")) };
            output.warn(&format!("no such replica is registered ({names}); {replica} is kept out when it comes"));
        }
        Seen::Reached { .. } => {}
        Seen::Away { away } => {
            output.warn(&format!("whether {replica} is registered is not known: the coordinator is away: {away}"));
        }
    }
}
