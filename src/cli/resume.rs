//! `bursar resume`: takes a halt back.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::Duration;

use clap::Args;

use super::context::Context;
use super::error::{CommandError, Exit};
use super::halt::{each, known, reason, report_with};
use super::operator::actor;
use crate::app;
use crate::clock;
use crate::domain::{ElectionName, Term};
use crate::leadership::{Coordinator, CoordinatorError};
use crate::store::Store;

/// How often the fence is looked at while a leader makes room for one with a higher term.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Take a halt back
///
/// Resumes every election, or one. Ticks that fell in between are judged by their job's misfire
/// policy. Where the store was found to have forgotten (restored, or another one promoted),
/// resuming takes it as it is now as the new baseline. Requests that wait are executed: `bursar
/// requests list` shows them before, and the answer says how many there are.
///
/// With --term-above the next term of that election is above what receivers have seen, and
/// whoever leads with a lower one makes room first: for a coordinator and a store that were
/// restored together, as is always so with elections in the database. Terms are never lowered,
/// so one that is far above both the term issued and the fence (by more than 1000000000) is
/// refused.
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

/// The furthest that terms are lifted at once: more than a deployment uses up in a century of elections, and a slip of the finger
/// less than it leaves.
const FURTHEST: i64 = 1_000_000_000;

/// The largest term that is lifted to: beyond it, who reads numbers as floating point (JSON in many a receiver) takes two terms
/// for one.
const LARGEST: i64 = 1 << 53;

/// A term, as receivers were shown it.
fn term(text: &str) -> Result<Term, String> {
    let term = text.parse().ok().and_then(Term::new);
    term.ok_or_else(|| "expected a whole number, at least 0".to_owned())
}

impl ResumeArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (config, store) = context.open().await?;
        if let Some(election) = &self.election {
            known(&config, &*store, election, "resumed").await?;
        }
        // Before it: what waits then is what this act lets go on.
        let waiting = store.waiting_requests().await?;
        if let (Some(least), Some(election)) = (self.term_above, &self.election) {
            let (coordinator, ttl) = (app::coordinator(&config), config.coordinator.lease_ttl);
            let lifted = lift(&*coordinator, &*store, election, least, ttl).await?;
            // Not part of the answer, and no reader that left may keep the rest from being done. Whoever has closed standard error sees
            // the term with `status`.
            let _closed = writeln!(std::io::stderr(), "{lifted}");
        }
        let elections = match self.election {
            Some(election) => BTreeSet::from([election]),
            None => store.elections().await?.into_iter().collect(),
        };
        let by = actor();
        let acts = each(&elections, |election| store.resume(election, &self.reason, &by)).await;
        store.close().await;
        let written = report_with(context.output().done(), &acts.reports, "resumed", |election| {
            waiting.iter().filter(|request| request.election == *election).count()
        });
        acts.verdict("resumed")?.after(written)
    }
}

/// Refuses a term that would use up what there is of them. `issued` and `fence` are where it stands.
fn within_reach(election: &ElectionName, least: Term, issued: Term, fence: Term) -> Result<(), CommandError> {
    let furthest = issued.max(fence).get().saturating_add(FURTHEST).min(LARGEST);
    if least.get() <= furthest || least <= issued {
        return Ok(());
    }
    Err(CommandError::Refused(format!(
        "--term-above {least}: the last term issued for {election} is {issued}, the fence stands at {fence}, and a term is never \
         lowered. At most {furthest} is lifted to; nothing was lifted or resumed"
    )))
}

/// Lifts the term issued, and takes the place from a leader whose term is not above it. It notices within a TTL; until then the
/// election is still halted. Answers what was done, in words.
async fn lift(
    coordinator: &dyn Coordinator,
    store: &dyn Store,
    election: &ElectionName,
    least: Term,
    ttl: Duration,
) -> Result<String, CommandError> {
    let away = |error: CoordinatorError| CommandError::Away(format!("the term was not lifted: {error}"));
    let before = coordinator.read_election(election).await.map_err(away)?.term;
    let fence = store.fence(election).await?.map_or(Term::NONE, |fence| fence.holder.term);
    within_reach(election, least, before, fence)?;
    let issued = coordinator.lift_term(election, least).await.map_err(|error| {
        // It may have been taken in all the same.
        let known = "nothing was resumed, and whether the term was lifted is not known";
        CommandError::Away(format!("{known}: {error}; the same command again does what is left"))
    })?;
    if issued < least {
        let why = format!("term {issued} was issued while {least} was to be lifted to: nothing was resumed, try again");
        return Err(CommandError::Away(why));
    }
    let lifted = if before < least {
        format!("term lifted from {before} to {issued}: the next leader of {election} has a higher one")
    } else {
        format!("term {issued} was issued already for {election}: nothing was lifted")
    };
    match make_room(store, coordinator, election, least, ttl).await {
        Ok(()) => Ok(lifted),
        Err(error) => {
            let what = format!("{lifted}. But nothing was resumed, the same command again does what is left");
            Err(CommandError::Partly { what, source: Box::new(error) })
        }
    }
}

/// Takes the place from a leader whose term is not above `least`, and waits until another leads or a TTL has passed.
async fn make_room(
    store: &dyn Store,
    coordinator: &dyn Coordinator,
    election: &ElectionName,
    least: Term,
    ttl: Duration,
) -> Result<(), CommandError> {
    let away = |error: CoordinatorError| CommandError::Away(format!("who leads was not told: {error}"));
    let leader = coordinator.read_election(election).await.map_err(away)?.leader;
    let Some(leader) = leader.filter(|leader| leader.record.as_ref().is_none_or(|record| record.term <= least)) else {
        return Ok(());
    };
    // Not its any more: then it has made room by itself.
    coordinator.resign(election, leader.win()).await.map_err(away)?;
    let until = clock::boottime() + ttl;
    while clock::boottime() < until {
        match store.fence(election).await {
            Ok(Some(fence)) if fence.holder.term > least => return Ok(()),
            Ok(_) => {}
            // Only looked at: whether the store can be reached, the resume itself finds out.
            Err(error) if error.is_passing() => {}
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, OnceLock};

    use super::*;
    use crate::leadership::memory::MemoryCoordinator;
    use crate::store::memory::{Fault, MemoryStore};

    /// What comes of lifting the term to 41 where somebody holds the place, the coordinator is away after so many answers, and the
    /// store after its first.
    async fn lifted(answers: u32) -> Result<String, CommandError> {
        let election = ElectionName::new("main").expect("a name");
        let itself: Arc<OnceLock<MemoryCoordinator>> = Arc::default();
        let (goes, asked) = (Arc::clone(&itself), AtomicU32::new(1));
        let coordinator = itself.get_or_init(|| {
            MemoryCoordinator::new(Arc::new(move || {
                // Read once for each answer.
                if let Some(coordinator) = goes.get() {
                    coordinator.set_away(asked.fetch_add(1, Ordering::SeqCst) >= answers);
                }
                clock::boottime()
            }))
        });
        coordinator.edit(|model| model.put_leaseless_leader_by_hand(&election));
        let store = MemoryStore::new(Arc::new(|| chrono::DateTime::UNIX_EPOCH), uuid::Uuid::nil());
        let looks = AtomicU32::new(0);
        store.set_faults(Some(Arc::new(move |_| {
            (looks.fetch_add(1, Ordering::SeqCst) > 0).then_some(Fault::Unreachable)
        })));
        let least = Term::new(41).expect("not negative");
        lift(coordinator, &store, &election, least, Duration::from_millis(1)).await
    }

    #[tokio::test]
    async fn what_is_known_of_the_term_is_said_whatever_goes_away_beside_it() {
        let done = lifted(u32::MAX).await.expect("whether the store is there, the resume finds out");
        assert!(done.contains("term lifted from 0 to 41"), "{done}");
        for (answers, says) in [
            (1, &["nothing was resumed, and whether the term was lifted is not known"][..]),
            (2, &["term lifted from 0 to 41", "nothing was resumed", "who leads was not told"]),
            (3, &["term lifted from 0 to 41", "nothing was resumed", "who leads was not told"]),
        ] {
            let error = lifted(answers).await.expect_err("the coordinator is away");
            assert_eq!(error.exit(), Exit::Temporary);
            let said = error.to_string();
            assert!(says.iter().all(|words| said.contains(words)), "after {answers}: {said}");
        }
    }

    #[test]
    fn terms_are_lifted_over_what_is_seen_and_not_used_up() {
        let election = ElectionName::new("main").expect("a name");
        let of = |term: i64| Term::new(term).expect("not negative");
        let tried = |least, issued, fence| within_reach(&election, of(least), of(issued), of(fence));
        for fine in [
            (41, 7, 7),
            (7, 41, 3),
            (1_000_000_041, 7, 41),
            (1 << 53, (1 << 53) - 2, 3),
            (i64::MAX - 3, i64::MAX - 1, 3),
        ] {
            assert!(tried(fine.0, fine.1, fine.2).is_ok(), "{fine:?}");
        }
        for wrong in [(i64::MAX, 7, 7), (1_000_000_042, 7, 41), ((1 << 53) + 1, (1 << 53) - 2, 3)] {
            let error = tried(wrong.0, wrong.1, wrong.2).expect_err("it is refused").to_string();
            assert!(error.contains(&format!("{} is", "main")) && error.contains(&wrong.2.to_string()), "{error}");
        }
    }
}
