//! Deliberate breaks of what stands around the replicas, so that the simulator is seen to notice them.

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
}
