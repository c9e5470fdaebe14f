//! `bursar transfer`: a planned hand-over, and how long nobody led.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use serde_json::json;

use super::context::Context;
use super::error::{CommandError, Exit};
use super::halt::reason;
use super::operator::actor;
use super::output::{Output, time};
use super::request::wait;
use super::status::{Seen, look, next_tick};
use crate::clock;
use crate::config::Config;
use crate::domain::{ElectionName, ReplicaId, Term};
use crate::store::{ElectionStatus, StatusView, Store, StoreError, TermView, TransferAsked};

/// A hand-over is refused where a tick of the election is due sooner than this.
const CLOSE_SECONDS: i64 = 15;
/// How often the new term is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The end of the one tenure is on record before the next one works, but for one that was killed: so long it is waited for.
const ENDED_WITHIN: Duration = Duration::from_secs(1);
/// Terms of the history that are read: several elections may have changed meanwhile.
const TERMS: u32 = 50;

/// Hand an election over to another replica, as planned
///
/// The leader begins nothing new, waits for answers under way, ends its tenure, and puts its
/// successor in its place in one transaction, so that nobody has to be elected. Where the
/// successor cannot take it over, whoever is first gets it. Shown is the time from the end of
/// the one tenure to the first work of the next, by the store's clock.
///
/// Example: bursar transfer --to settle-7f9c --reason 'the host of the leader is drained'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct TransferArgs {
    /// The successor's replica id, as in `bursar status` [default: any that may lead].
    #[arg(long, value_name = "REPLICA")]
    to: Option<ReplicaId>,
    /// The election [default: the only one that is led].
    #[arg(long, value_name = "NAME")]
    election: Option<ElectionName>,
    /// Also where a tick of the election is due within 15 s.
    #[arg(long)]
    force: bool,
    /// Why; kept with the act.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// How long to wait for the successor, at most 1h.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = wait)]
    wait: Duration,
}

/// A hand-over that was seen.
struct HandedOver {
    election: ElectionName,
    from: TermView,
    to: TermView,
}

impl TransferArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (config, store) = context.open().await?;
        let done = self.hand_over(&config, &*store).await;
        store.close().await;
        show(context.output().done(), &done?)
    }

    async fn hand_over(&self, config: &Config, store: &dyn Store) -> Result<HandedOver, CommandError> {
        let status = store.status().await?;
        let election = self.chosen(&status)?;
        let name = election.election.clone();
        let leader = election.leader.as_deref().unwrap_or_default();
        may_lead(&look(config, vec![name.clone()]).await, &name, leader, self.to.as_ref())?;
        if let Some((job, tick)) = close_tick(&status, &name)
            && !self.force
        {
            return Err(CommandError::Refused(format!(
                "job {job} has a tick at {}, in less than {CLOSE_SECONDS} s: wait for it, or use --force",
                time(tick)
            )));
        }
        let term = election.fence.holder.term;
        let to = self.to.as_ref().map(ReplicaId::as_str);
        match store.ask_transfer(&name, term, to, &self.reason, &actor()).await? {
            TransferAsked::Filed => {}
            TransferAsked::OtherTerm(found) => {
                let found =
                    found.map_or_else(|| "nobody leads".to_owned(), |found| format!("{} is in force", found.term));
                return Err(CommandError::Refused(format!(
                    "term {term} of {name} is over: {found}; nothing was changed"
                )));
            }
        }
        seen(store, &name, term, self.wait).await
    }

    fn chosen<'a>(&self, status: &'a StatusView) -> Result<&'a ElectionStatus, CommandError> {
        let led: Vec<&ElectionStatus> = status.elections.iter().filter(|election| election.ended.is_none()).collect();
        let names = || led.iter().map(|election| election.election.as_str()).collect::<Vec<_>>().join(", ");
        match (&self.election, &led[..]) {
            (_, []) => Err(CommandError::Refused("nobody leads: there is nothing to hand over".to_owned())),
            (None, [only]) => Ok(only),
            (None, _) => Err(CommandError::Refused(format!("several elections are led: name one of {}", names()))),
            (Some(name), _) => led
                .iter()
                .find(|election| election.election == *name)
                .copied()
                .ok_or_else(|| CommandError::Refused(format!("nobody leads {name}; led are: {}", names()))),
        }
    }
}

/// Refuses a successor that is not there, may not lead, or leads already; and a hand-over that nobody could take.
fn may_lead(seen: &Seen, election: &ElectionName, leader: &str, to: Option<&ReplicaId>) -> Result<(), CommandError> {
    let replicas = match seen {
        Seen::Reached { leaders, .. } if !leaders.iter().any(|leader| leader.election == *election) => {
            return Err(CommandError::Refused(format!(
                "nobody leads {election} now: its leader {leader} is gone, and whoever is first follows it"
            )));
        }
        Seen::Reached { replicas, .. } => replicas,
        Seen::Away { away } => return Err(CommandError::Away(format!("the coordinator is away: {away}"))),
    };
    let able: BTreeSet<&str> = replicas
        .iter()
        .filter(|replica| replica.eligible.contains(election) && replica.replica_id.as_str() != leader)
        .map(|replica| replica.replica_id.as_str())
        .collect();
    let others = able.iter().copied().collect::<Vec<_>>().join(", ");
    match to {
        _ if able.is_empty() => {
            Err(CommandError::Refused(format!("no other replica may lead {election} now; see `bursar status`")))
        }
        Some(to) if to.as_str() == leader => Err(CommandError::Refused(format!("{to} leads {election} already"))),
        Some(to) if !able.contains(to.as_str()) => Err(CommandError::Refused(format!(
            "{to} is not there, or may not lead {election} now; these may: {others}"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// The job of the election whose next tick is close.
fn close_tick(status: &StatusView, election: &ElectionName) -> Option<(String, DateTime<Utc>)> {
    let until = status.now + TimeDelta::seconds(CLOSE_SECONDS);
    let jobs = status.jobs.iter().filter(|job| job.election == *election && job.paused.is_none());
    jobs.filter_map(|job| Some((job.job.to_string(), next_tick(job, status.now)?.due_at)))
        .filter(|(_, tick)| *tick <= until)
        .min_by_key(|(_, tick)| *tick)
}

/// Waits until a later term has worked. In an election that is halted none does: there it is enough that one leads. A leader
/// that was killed meanwhile has left no end: then there is no gap to measure.
async fn seen(store: &dyn Store, name: &ElectionName, term: Term, wait: Duration) -> Result<HandedOver, CommandError> {
    let until = clock::boottime() + wait;
    let mut worked_since = None;
    loop {
        let now = clock::boottime();
        match store.history(TERMS).await {
            Ok(history) => {
                let first = |wanted: &dyn Fn(&TermView) -> bool| {
                    history.terms.iter().rfind(|view| view.election == *name && wanted(view)).cloned()
                };
                let from = first(&|view| view.term == term.get());
                let worked = first(&|view| view.term > term.get() && view.worked_at.is_some());
                let leads = first(&|view| view.term > term.get() && view.ended_at.is_none());
                let halted =
                    async || Ok::<_, StoreError>(store.fence(name).await?.is_some_and(|fence| fence.halt.is_some()));
                if let (Some(from), Some(to)) = (from, worked.or(leads))
                    && (to.worked_at.is_some() || halted().await?)
                {
                    let since = *worked_since.get_or_insert(now);
                    if from.ended_at.is_some() || now.since(since) >= ENDED_WITHIN {
                        return Ok(HandedOver { election: name.clone(), from, to });
                    }
                }
            }
            Err(error) if error.is_passing() => {}
            Err(error) => return Err(error.into()),
        }
        if now >= until && worked_since.is_none() {
            return Err(CommandError::Away(format!(
                "no other replica has worked under a new term of {name} within {wait:?}; the leader may still wait for answers \
                 under way. See `bursar status`"
            )));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn show(output: Output, done: &HandedOver) -> Result<Exit, CommandError> {
    let gap = done.to.worked_at.zip(done.from.ended_at).map(|(worked, ended)| (worked - ended).num_milliseconds());
    if output.is_json() {
        output.json(&json!({
            "election": done.election,
            "from": done.from.replica,
            "to": done.to.replica,
            "term": done.to.term,
            "gap_ms": gap,
        }))?;
        return Ok(Exit::Done);
    }
    let gap = gap.map_or_else(|| "not measured".to_owned(), |gap| format!("{gap} ms"));
    output.line(&format!(
        "{}: {} handed over to {} (term {}); from the end of the one to the first work of the other: {gap}",
        done.election, done.from.replica, done.to.replica, done.to.term
    ))?;
    Ok(Exit::Done)
}
