//! Carries that wait for their job.

use serde::{Deserialize, Serialize};

use crate::domain::JobName;

/// A job that has open carries. Only it takes them, whatever other jobs select.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCarries {
    /// The job.
    pub job: JobName,
    /// Whether it was taken out of the schedule: nobody takes them until it comes back.
    pub removed: bool,
    /// How many.
    pub entries: u64,
}
