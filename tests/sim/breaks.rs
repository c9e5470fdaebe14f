//! Deliberate breaks of what stands around the replicas, so that the simulator is seen to notice them.

use bursar::domain::run::{RunKind, RunState};

use crate::facts::Views;

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Break {
    /// Nothing.
    #[default]
    Nothing,
    /// The store's fence lets everybody in.
    Unfenced,
    /// A payout that is taken again has another key.
    KeyMadeAnew,
    /// A COMMIT without an answer is passed on as one that did not happen.
    UnknownTakenForFailure,
    /// What came of payouts is acknowledged and not written.
    RecordsLost,
    /// The store says that nobody ever led.
    FenceForgotten,
    /// A halt is acknowledged and not in force.
    HaltIgnored,
    /// The store settles what it settled already: a batch is answered as done without being so.
    BatchesLost,
    /// The store says that nobody ever led, and its fence goes down: a lower term is accepted after a higher one.
    FenceGoesDown,
    /// The store says that nobody ever led, and accepts a term from a second tenure.
    TermForTwo,
    /// Leases lapse at the coordinator long before their time.
    LeasesLapseEarly,
    /// Leases are forgotten at the coordinator, every second one.
    LeasesForgotten,
    /// A session of a tenure that has ended asks on.
    AsksAfterItsEnd,
    /// A job's mark is moved, and the runs of its ticks are not in.
    MarkMovedFirst,
    /// New jobs and edits are acknowledged and not written.
    JobChangesLost,
    /// One merchant's entries are left out of every run.
    MerchantSkipped,
    /// A file brings its entries twice, under other names.
    ImportedTwice,
    /// A payout that was made is said to have come back.
    FinalTakenBack,
    /// The store has a second run for each tick.
    RunsDoubled,
    /// The store has runs that are complete while their units are pending.
    RunsEndEarly,
    /// A request arrives with other bytes than it left with.
    BytesChanged,
    /// A receiver says that it has paid, and has nothing in its book.
    PaidUnbooked,
    /// A receiver that says that it compares tokens books under old ones.
    OldTokensBooked,
    /// A receiver that never refuses does.
    RefusesForNothing,
}

impl Break {
    /// The store's rows as it has them where it is broken itself.
    pub fn distort(self, views: &mut Views) {
        match self {
            Self::RunsDoubled => {
                let ticks = views.runs.iter().filter(|run| run.kind == RunKind::Tick);
                let doubled: Vec<_> =
                    ticks.map(|run| bursar::store::RunSummary { id: -run.id, ..run.clone() }).collect();
                views.runs.extend(doubled);
            }
            Self::RunsEndEarly => {
                for run in views.runs.iter_mut().filter(|run| run.state == RunState::Open) {
                    run.state = RunState::Complete;
                }
            }
            _ => {}
        }
    }
}
