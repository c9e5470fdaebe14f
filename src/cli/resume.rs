//! `bursar resume`: takes a halt back.

use clap::Args;

use super::context::{Context, actor};
use super::error::{CommandError, Exit};
use super::halt::{reason, report, scope};
use crate::domain::ElectionName;

/// Take a halt back.
///
/// Resumes every election, or one. Ticks that fell in between are judged by their job's misfire policy. Where the store was
/// found to have forgotten (restored, or another one promoted), resuming takes it as it is now as the new baseline.
///
/// Example: bursar resume --reason 'fees corrected, import 17 reverted'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ResumeArgs {
    /// Why; kept with the act.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// Only this election.
    #[arg(long, value_name = "NAME")]
    election: Option<ElectionName>,
}

impl ResumeArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let reports = store.resume(&scope(self.election), &self.reason, &actor()).await?;
        store.close().await;
        report(context.output(), &reports, "resumed")?;
        Ok(Exit::Done)
    }
}
