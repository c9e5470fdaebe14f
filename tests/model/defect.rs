//! Deliberate defects of the protocol: each is one step done wrongly. A model without one is the protocol as it is.

/// One step done wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Defect {
    /// The fence is read, and no lock is taken.
    FenceReadWithoutLock,
    /// The fence is read as of the moment before the lock was waited for.
    FenceReadBeforeLock,
    /// The savepoint stands before the fence: rolling back to it gives the lock back in the middle of the transaction.
    SavepointBeforeFence,
    /// `term = mine` is enough, whoever's term it is.
    TermWithoutTenureId,
    /// The advance waits for whoever holds the fence, and ends nobody.
    AdvanceEndsNoSession,
    /// It waits for whoever holds the fence exclusively, however long that stands still.
    ExclusiveHolderNotEnded,
    /// An advance that is called again finds its own claim in force, and takes that for a loss.
    RepeatRefused,
    /// What is posted is what a SELECT beside the bind shows.
    SumsBesideBind,
    /// The term is a clock's reading, not one above the last.
    TermFromClock,
    /// The leader key is deleted whoever's it is.
    ResignDeletesOthersKey,
    /// A successor's record is put without comparing the term key.
    SuccessorWithoutTermKey,
    /// A commit that was not answered counts as not done.
    UnknownAsFailure,
    /// Each try has a key of its own.
    KeyAnewOnRetry,
    /// A refusal is final also where an earlier try may have had its effect.
    RejectedAfterUnknown,
    /// The gate is passed before `sending` is committed, and not after it.
    GateBeforeCommit,
    /// The gate is passed although the session is in doubt.
    GateOpenWhileSuspect,
    /// Refused by the fence is taken for nothing due.
    FencedAsNothingDue,
    /// A promotion leaves what lower terms have on the wire as it is.
    PromotionKeepsSending,
    /// The halt is not read again before the first byte.
    HaltNotReread,
    /// Only the start of new work asks for the halt; taking and sending do not.
    HaltNotInFence,
    /// `evaluated_until` is moved before the run is in.
    EvaluatedBeforeRun,
    /// A run of a tick is written without looking whether there is one, and `evaluated_until` is not compared.
    TicksNotCompared,
    /// What is recorded is not compared with the store's clock.
    NotComparedWithStoresClock,
    /// Ticks are recorded whatever the halt.
    OpensWhileHalted,
    /// An edit is put in force without the ticks that the definition before it owed.
    EditForgetsTheOld,
}
