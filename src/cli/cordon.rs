//! `bursar cordon` and `bursar uncordon`: whether a replica may lead.

use clap::Args;

use super::context::{Context, actor};
use super::error::{CommandError, Exit};
use super::halt::reason;
use crate::domain::ReplicaId;

/// Keep a replica from leading, until `bursar uncordon`.
///
/// It goes on as a follower. Where it leads, it resigns as planned (it begins nothing new, and waits for answers under way)
/// within a few seconds. The id is the one that `bursar status` shows; one that is not there now is kept out when it comes.
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
    let (_, store) = context.open().await?;
    let changed = store.cordon(replica.as_str(), cordoned, reason, &actor()).await;
    store.close().await;
    let changed = changed?;
    let output = context.output();
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
    Ok(Exit::Done)
}
