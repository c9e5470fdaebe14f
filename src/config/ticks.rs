//! The one place where reading a schedule asks `schedule` about cron expressions.

use super::values::Read;
use crate::domain::job::{FoldRule, GapRule};
use crate::schedule::{Cron, default_rules};

/// Reads an expression and says which DST rules hold where its job names none.
pub(super) fn rules_of(text: &str) -> Read<(GapRule, FoldRule)> {
    let cron = Cron::parse(text).map_err(|error| error.to_string())?;
    Ok(default_rules(&cron))
}
