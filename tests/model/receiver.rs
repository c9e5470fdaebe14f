//! The receiver, and what is on the way to it and back. Messages are lost, late, doubled and reordered: they lie in a heap,
//! and any of them may be the next.

/// A receiver as it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Receiver {
    /// A known key gets the answer that it got before, and nothing is done.
    pub idempotent: bool,
    /// A token below the highest seen is refused.
    pub tokens: bool,
    /// A refusal is such an answer too. Where not, a payment may follow it.
    pub remembers: bool,
}

/// A request under way. Its body belongs to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    /// The instruction.
    pub instruction: u8,
    /// Which try.
    pub attempt: u8,
    /// The idempotency key.
    pub key: u8,
    /// The fencing token.
    pub term: u8,
}

/// An answer under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Answer {
    /// The instruction.
    pub instruction: u8,
    /// Which try.
    pub attempt: u8,
    /// Whose.
    pub term: u8,
    /// What it says.
    pub reply: Reply,
}

/// What a receiver says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reply {
    /// Paid now.
    Paid,
    /// Paid before, under this key.
    Known,
    /// A final no.
    Refused,
    /// A final no before, under this key.
    StillRefused,
    /// Nothing was done; come again.
    Undone,
    /// The token is an old one: nothing was done.
    Fenced,
    /// It points elsewhere: nothing was done.
    Redirected,
    /// It speaks of another amount: nothing was done for this one.
    Disagrees,
    /// It has too much to do: nothing was done.
    NotNow,
    /// It failed while it did it.
    Failing {
        /// Whether it was done.
        done: bool,
    },
}

impl Reply {
    /// Those that say less than they should, or other things.
    pub const ODD: [Self; 5] =
        [Self::Redirected, Self::Disagrees, Self::NotNow, Self::Failing { done: false }, Self::Failing { done: true }];

    /// Whether it leaves no doubt that nothing was done.
    pub const fn proves_undone(self) -> bool {
        match self {
            Self::Refused | Self::StillRefused | Self::Undone | Self::Fenced | Self::NotNow => true,
            Self::Paid | Self::Known | Self::Redirected | Self::Disagrees | Self::Failing { .. } => false,
        }
    }
}

impl Receiver {
    /// All that it may say to a request. `paid`, `refused`: what it has done for this instruction, under its first key.
    pub fn replies(self, request: Request, highest: u8, paid: bool, refused: bool) -> Vec<Reply> {
        if self.tokens && request.term < highest {
            return vec![Reply::Fenced];
        }
        // Another key than the first is another payment to it.
        if self.idempotent && paid && request.key == 1 {
            return vec![Reply::Known];
        }
        if self.remembers && refused && request.key == 1 {
            return vec![Reply::StillRefused];
        }
        [Reply::Paid, Reply::Refused, Reply::Undone].into_iter().chain(Reply::ODD).collect()
    }
}
