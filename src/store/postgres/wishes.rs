//! What operators want of single replicas: out of leading, or to hand over. Each wish is an act, written down with it.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::acts::{self, Act};
use super::columns::{election_name, term};
use super::error::at;
use super::fence;
use super::tx::Done;
use crate::domain::{ElectionName, Term};
use crate::store::{Actor, StoreError, TransferAsked, TransferWish, Wishes};

/// What is wanted of a replica now.
pub(super) async fn wishes(connection: &mut PgConnection, replica: &str) -> Result<Wishes, StoreError> {
    read(connection, replica).await.map_err(at("wishes"))
}

async fn read(connection: &mut PgConnection, replica: &str) -> Result<Wishes, sqlx::Error> {
    let row = sqlx::query(include_str!("sql/wishes_cordoned.sql")).bind(replica).fetch_one(&mut *connection).await?;
    let transfers = sqlx::query(include_str!("sql/wishes_transfers.sql")).fetch_all(connection).await?;
    Ok(Wishes { cordoned: row.try_get("cordoned")?, transfers: transfers.iter().map(wish).collect::<Result<_, _>>()? })
}

fn wish(row: &PgRow) -> Result<TransferWish, sqlx::Error> {
    let to = row.try_get("to_replica")?;
    Ok(TransferWish { election: election_name(row, "election")?, term: term(row, "term")?, to })
}

/// Cordons a replica or lifts that, in an open transaction; whether it changed anything.
pub(super) async fn cordon(
    connection: &mut PgConnection,
    replica: &str,
    cordoned: bool,
    reason: &str,
    actor: &Actor,
) -> Result<Done<bool>, StoreError> {
    const OPERATION: &str = "cordon";
    let action = if cordoned { "cordon" } else { "uncordon" };
    let act = Act { action, target: replica, reason: Some(reason), election: None, term: None, details: None };
    let act = acts::write(&mut *connection, OPERATION, actor, act).await?;
    let query = if cordoned {
        sqlx::query(include_str!("sql/cordon_put.sql")).bind(replica).bind(act)
    } else {
        sqlx::query(include_str!("sql/cordon_lift.sql")).bind(replica)
    };
    let changed = query.execute(connection).await.map_err(at(OPERATION))?.rows_affected();
    Ok(if changed > 0 { Done::Commit(true) } else { Done::RollBack(false) })
}

/// Asks the leader of a term to hand over, in an open transaction.
pub(super) async fn ask_transfer(
    connection: &mut PgConnection,
    election: &ElectionName,
    term: Term,
    to: Option<&str>,
    reason: &str,
    actor: &Actor,
) -> Result<Done<TransferAsked>, StoreError> {
    const OPERATION: &str = "ask_transfer";
    sqlx::query(include_str!("sql/act_gate.sql"))
        .bind(election.as_str())
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let act = Act {
        action: "transfer",
        target: to.unwrap_or("any replica"),
        reason: Some(reason),
        election: Some(election.as_str()),
        term: Some(term.get()),
        details: None,
    };
    let act = acts::write(&mut *connection, OPERATION, actor, act).await?;
    let filed = sqlx::query(include_str!("sql/transfer_ask.sql"))
        .bind(election.as_str())
        .bind(term.get())
        .bind(to)
        .bind(act)
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?
        .rows_affected();
    if filed == 1 {
        return Ok(Done::Commit(TransferAsked::Filed));
    }
    let found = fence::read(connection, OPERATION, election).await?;
    Ok(Done::RollBack(TransferAsked::OtherTerm(found.map(|fence| fence.holder))))
}
