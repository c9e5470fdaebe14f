//! `bursar history`: who led and why it ended, who was refused, who did what; and the stories of terms, in words.

use clap::Args;
use serde::Serialize;

use super::context::Context;
use super::error::{CommandError, Exit};
use super::output::{Output, dash, or_dash, time, time_or};
use super::story::tell;
use crate::domain::ElectionName;
use crate::store::{ActView, FenceReject, HistoryView, STORIES_TOLD, Store, StoryFilter, TermStory, TermView};

/// Terms and why each ended, fencing rejects, operators' acts; then the stories of the newest terms
///
/// A story goes from candidacy to the end: how the term was won and how long that took from the
/// end of the one before, when the store accepted it, what its leader took over, settled and
/// paid, what operators did meanwhile, why it ended, and what of it was refused afterwards.
/// `--term` tells one of any age and nothing else.
///
/// Example: bursar history --term 8
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct HistoryArgs {
    /// At most so many of each, newest first.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// The stories of so many terms.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(STORIES_TOLD)))]
    stories: u32,
    /// Only the story of this term.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    term: Option<i64>,
    /// Stories of this election alone.
    #[arg(long, value_name = "NAME")]
    election: Option<ElectionName>,
}

/// What `--json` answers.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    history: &'a HistoryView,
    stories: &'a [TermStory],
}

impl HistoryArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let answered = self.answer(context.output(), &*store).await;
        store.close().await;
        answered
    }

    async fn answer(&self, output: Output, store: &dyn Store) -> Result<Exit, CommandError> {
        if let Some(term) = self.term {
            let filter = StoryFilter { election: self.election.clone(), term: Some(term), limit: STORIES_TOLD };
            let stories = store.stories(&filter).await?;
            if stories.is_empty() {
                let of = self.election.as_ref().map_or_else(String::new, |election| format!(" of {election}"));
                return Err(CommandError::Refused(format!("term {term}{of} was never accepted; see `bursar history`")));
            }
            if output.is_json() {
                output.json(&stories)?;
            } else {
                narrate(output, &stories)?;
            }
            return Ok(Exit::Done);
        }
        let history = store.history(self.limit).await?;
        let stories = match self.stories {
            0 => Vec::new(),
            limit => store.stories(&StoryFilter { election: self.election.clone(), term: None, limit }).await?,
        };
        if output.is_json() {
            output.json(&Told { history: &history, stories: &stories })?;
        } else {
            show(output, &history)?;
            if !stories.is_empty() {
                output.line("\nSTORIES, newest first")?;
                narrate(output, &stories)?;
            }
        }
        Ok(Exit::Done)
    }
}

fn narrate(output: Output, stories: &[TermStory]) -> Result<(), CommandError> {
    let told: Vec<String> = stories.iter().map(|story| tell(story).join("\n")).collect();
    output.line(&told.join("\n\n"))
}

fn show(output: Output, history: &HistoryView) -> Result<(), CommandError> {
    let term = |term: &TermView| {
        vec![
            term.election.to_string(),
            term.term.to_string(),
            term.replica.clone(),
            time(term.accepted_at),
            time_or(term.worked_at),
            time_or(term.ended_at),
            or_dash(term.end_reason.as_deref()),
        ]
    };
    let rows: Vec<Vec<String>> = history.terms.iter().map(term).collect();
    let columns = ["election", "term", "replica", "accepted", "first work", "ended", "why"];
    output.table("TERMS", "none", &columns, &rows)?;
    let reject = |reject: &FenceReject| {
        let found = reject.found.map_or_else(dash, |found| found.term.to_string());
        vec![
            time(reject.at),
            reject.presented.election.to_string(),
            reject.presented.term.to_string(),
            found,
            reject.operation.clone(),
            reject.replica.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = history.rejects.iter().map(reject).collect();
    let columns = ["at", "election", "presented", "in force", "operation", "replica"];
    output.table("\nFENCING REJECTS", "none", &columns, &rows)?;
    let act = |act: &ActView| {
        vec![
            time(act.at),
            act.action.clone(),
            act.target.clone(),
            act.by.clone(),
            act.role.clone(),
            or_dash(act.reason.as_deref()),
        ]
    };
    let rows: Vec<Vec<String>> = history.acts.iter().map(act).collect();
    output.table("\nOPERATORS' ACTS", "none", &["at", "what", "on", "by", "role", "why"], &rows)
}
