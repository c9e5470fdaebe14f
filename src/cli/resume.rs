//! `bursar resume`: takes a halt back.

use std::time::Duration;

use clap::Args;

use super::context::{Context, actor};
use super::error::{CommandError, Exit};
use super::halt::{reason, report, scope};
use crate::app;
use crate::clock;
use crate::config::Config;
use crate::domain::{ElectionName, Term};
use crate::leadership::CoordinatorError;
use crate::store::Store;

/// How often the fence is looked at while a leader makes room for one with a higher term.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Take a halt back.
///
/// Resumes every election, or one. Ticks that fell in between are judged by their job's misfire policy. Where the store was
/// found to have forgotten (restored, or another one promoted), resuming takes it as it is now as the new baseline.
///
/// With --term-above the next term of that election is above what receivers have seen, and whoever leads with a lower one makes
/// room first: for a coordinator and a store that were restored together, as is always so with elections in the database.
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
    /// Let the next leader's term be above this one.
    #[arg(long, value_name = "TERM", requires = "election", value_parser = term)]
    term_above: Option<Term>,
}

/// A term, as receivers were shown it.
fn term(text: &str) -> Result<Term, String> {
    let term = text.parse().ok().and_then(Term::new);
    term.ok_or_else(|| "expected a whole number, at least 0".to_owned())
}

impl ResumeArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (config, store) = context.open().await?;
        if let (Some(least), Some(election)) = (self.term_above, &self.election) {
            lift(&config, &*store, election, least).await?;
        }
        let reports = store.resume(&scope(self.election), &self.reason, &actor()).await?;
        store.close().await;
        report(context.output(), &reports, "resumed")?;
        Ok(Exit::Done)
    }
}

/// Lifts the term issued, and takes the place from a leader whose term is not above it. It notices within a TTL; until then the
/// election is still halted.
async fn lift(config: &Config, store: &dyn Store, election: &ElectionName, least: Term) -> Result<(), CommandError> {
    let away = |error: CoordinatorError| CommandError::Away(format!("the term was not lifted: {error}"));
    let coordinator = app::coordinator(config);
    let issued = coordinator.lift_term(election, least).await.map_err(away)?;
    if issued < least {
        let why = format!("term {issued} was issued while {least} was to be lifted to: nothing was resumed, try again");
        return Err(CommandError::Away(why));
    }
    let leader = coordinator.read_election(election).await.map_err(away)?.leader;
    let Some(leader) = leader.filter(|leader| leader.record.as_ref().is_none_or(|record| record.term <= least)) else {
        return Ok(());
    };
    // Not its any more: then it has made room by itself.
    coordinator.resign(election, leader.revision).await.map_err(away)?;
    let until = clock::boottime() + config.coordinator.lease_ttl;
    while clock::boottime() < until {
        if store.fence(election).await?.is_some_and(|fence| fence.holder.term > least) {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}
