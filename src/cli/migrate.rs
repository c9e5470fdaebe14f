//! `bursar migrate`: the store's schema, forward only.

use clap::Args;
use serde_json::json;

use super::context::Context;
use super::error::{CommandError, Exit};
use crate::app;

/// Bring the store's schema to what this release needs.
///
/// Migrations go forward only and work beside the previous release, so that replicas can be replaced one by one. No
/// replica ever migrates PostgreSQL by itself; a SQLite file is made and brought up by `bursar run` too.
#[derive(Debug, Args)]
pub(super) struct MigrateArgs {}

impl MigrateArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let store = context.reach(app::store_for_migration(&context.config()?)?).await?;
        let (found, now) = store.migrate().await?;
        store.close().await;
        if context.output().is_json() {
            context.output().json(&json!({ "found": found, "now": now }))?;
        } else if found == now {
            context.output().line(&format!("the schema is at {now}; nothing to do"))?;
        } else {
            context.output().line(&format!("the schema was at {found} and is now at {now}"))?;
        }
        Ok(Exit::Done)
    }
}
