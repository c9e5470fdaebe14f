//! `bursar migrate`: the store's schema, forward only.

use clap::Args;
use serde_json::json;

use super::context::Context;
use super::error::{CommandError, Exit};
use super::operator::actor;
use crate::app;
use crate::store::FourEyesOutcome;

/// Bring the store's schema to what this release needs.
///
/// Migrations go forward only and work beside the previous release, so that replicas can be replaced one by one. No
/// replica ever migrates PostgreSQL by itself; a SQLite file is made and brought up by `bursar run` too.
#[derive(Debug, Args)]
pub(super) struct MigrateArgs {}

impl MigrateArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let config = context.config()?;
        let store = context.reach(app::store_for_migration(&config)?).await?;
        let (found, now) = store.migrate().await?;
        let four_eyes = match config.operator.four_eyes {
            None => None,
            Some(on) => {
                let reason = format!("[operator] four_eyes = {on}");
                Some(store.set_four_eyes(on, &reason, &actor()).await?)
            }
        };
        store.close().await;
        let output = context.output().done();
        if output.is_json() {
            output.json(&json!({ "found": found, "now": now, "four_eyes": four_eyes }))?;
            return Ok(Exit::Done);
        }
        match four_eyes {
            Some(FourEyesOutcome::On) => {
                output.line("acts on money wait for a second pair of eyes from now on")?;
            }
            Some(FourEyesOutcome::Waits { request }) => output.line(&format!(
                "acts on money still wait for a second pair of eyes; its end is request {request}: `bursar approve {request}`, by \
                 another database role"
            ))?,
            Some(FourEyesOutcome::WasOn | FourEyesOutcome::Off) | None => {}
        }
        if found == now {
            output.line(&format!("the schema is at {now}; nothing to do"))?;
        } else {
            output.line(&format!("the schema was at {found} and is now at {now}"))?;
        }
        Ok(Exit::Done)
    }
}
