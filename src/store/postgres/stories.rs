//! The stories of terms, and what a leader notes for them.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::columns::count;
use super::error::at;
use super::history::{act, term};
use crate::domain::{Claim, ElectionName};
use crate::store::stories::payout_ends;
use crate::store::{
    Promotion, Refused, STORIES_TOLD, STORY_ACTS, StoreError, StoryFilter, TakenOver, TermBefore, TermStory, TermWork,
};

/// Notes how a term came about and what was taken over. A second note changes nothing.
pub(super) async fn note_promotion(
    connection: &mut PgConnection,
    claim: &Claim,
    promotion: &Promotion,
) -> Result<(), StoreError> {
    let (won, vacant) = promotion.micros();
    let [runs, set_aside, unknown] = promotion.taken();
    sqlx::query(include_str!("sql/note_promotion.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(claim.tenure_id.0)
        .bind(promotion.handed_over)
        .bind(won)
        .bind(vacant)
        .bind(runs)
        .bind(set_aside)
        .bind(unknown)
        .execute(connection)
        .await
        .map_err(at("note_promotion"))?;
    Ok(())
}

/// The stories of terms, newest first.
pub(super) async fn stories(connection: &mut PgConnection, filter: &StoryFilter) -> Result<Vec<TermStory>, StoreError> {
    read(connection, filter).await.map_err(at("stories"))
}

async fn read(connection: &mut PgConnection, filter: &StoryFilter) -> Result<Vec<TermStory>, sqlx::Error> {
    let rows = sqlx::query(include_str!("sql/stories_terms.sql"))
        .bind(filter.election.as_ref().map(ElectionName::as_str))
        .bind(filter.term)
        .bind(i64::from(filter.limit.clamp(1, STORIES_TOLD)))
        .fetch_all(&mut *connection)
        .await?;
    let mut stories = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut story = story(row)?;
        let refused = sqlx::query(include_str!("sql/stories_refused.sql"))
            .bind(story.term.election.as_str())
            .bind(story.term.term)
            .bind(story.term.tenure_id)
            .fetch_all(&mut *connection)
            .await?;
        story.refused = refused.iter().map(refusals).collect::<Result<_, _>>()?;
        let acts = sqlx::query(include_str!("sql/stories_acts.sql"))
            .bind(story.term.election.as_str())
            .bind(story.term.term)
            .bind(story.term.tenure_id)
            .bind(i64::from(STORY_ACTS))
            .fetch_all(&mut *connection)
            .await?;
        story.acts = acts.iter().map(act).collect::<Result<_, _>>()?;
        stories.push(story);
    }
    Ok(stories)
}

fn story(row: &PgRow) -> Result<TermStory, sqlx::Error> {
    let before = match row.try_get::<Option<i64>, _>("before_term")? {
        None => None,
        Some(term) => Some(TermBefore {
            term,
            replica: row.try_get("before_replica")?,
            ended_at: row.try_get("before_ended_at")?,
            end_reason: row.try_get("before_reason")?,
        }),
    };
    let taken_over = match row.try_get::<Option<i64>, _>("taken_runs")? {
        None => None,
        Some(_) => Some(TakenOver {
            runs: count(row, "taken_runs")?,
            set_aside: count(row, "taken_set_aside")?,
            unknown: count(row, "taken_unknown")?,
        }),
    };
    Ok(TermStory {
        term: term(row)?,
        in_force: row.try_get("in_force")?,
        before,
        stood_at: row.try_get("stood_at")?,
        won_at: row.try_get("won_at")?,
        handed_over: row.try_get("handed_over")?,
        taken_over,
        work: work(row)?,
        refused: Vec::new(),
        acts: Vec::new(),
    })
}

fn work(row: &PgRow) -> Result<TermWork, sqlx::Error> {
    Ok(TermWork {
        runs_opened: count(row, "runs_opened")?,
        ticks_without_run: count(row, "ticks_without_run")?,
        batches: count(row, "batches")?,
        settled: count(row, "settled")?,
        carried: count(row, "carried")?,
        empty: count(row, "empty")?,
        set_aside: count(row, "set_aside")?,
        instructions: count(row, "instructions")?,
        payouts: payout_ends([count(row, "paid")?, count(row, "rejected")?, count(row, "returned")?]),
    })
}

fn refusals(row: &PgRow) -> Result<Refused, sqlx::Error> {
    Ok(Refused { operation: row.try_get("operation")?, count: count(row, "count")?, last_at: row.try_get("last_at")? })
}
