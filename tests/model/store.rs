//! The store's side of instructions: the fence's answer and the four transactions, each as one step. [`twin`](crate::twin)
//! compares every one of them with the product's store in memory.

pub mod payouts;

use bursar::domain::instruction::InstructionState;

use crate::defect::Defect;

/// What the fence answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entered {
    /// The term is the one in force.
    Mine,
    /// Another is.
    Fenced,
    /// It is, and the election is halted.
    Halted,
}

/// What is recorded of a try: the product's `CallFate`, without what is for people and without waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fate {
    /// Done.
    Done,
    /// Without an effect: charged.
    Failed {
        /// It may be tried again.
        again: bool,
    },
    /// No byte left.
    NotSent,
    /// The receiver is not to be sent anything for now.
    Stopped,
    /// Nothing was done, which says nothing about the instruction.
    PutOff,
    /// Nobody knows: charged.
    Unknown {
        /// It may be tried again.
        again: bool,
    },
}

impl Fate {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Done,
        Self::Failed { again: true },
        Self::Failed { again: false },
        Self::NotSent,
        Self::Stopped,
        Self::PutOff,
        Self::Unknown { again: true },
        Self::Unknown { again: false },
    ];
}

/// One instruction's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Row {
    /// Its state.
    pub state: InstructionState,
    /// The term that has it on the wire, or had it last.
    pub sending_term: u8,
    /// Whether any try's outcome was unknown.
    pub in_doubt: bool,
    /// Tries, also those of which no byte left.
    pub attempts: u8,
    /// Tries that count.
    pub charged: u8,
}

impl Row {
    const fn as_it_was(&self) -> InstructionState {
        if self.in_doubt { InstructionState::Unknown } else { InstructionState::Pending }
    }

    fn is_sent_by(&self, term: u8) -> bool {
        self.state == InstructionState::Sending && self.sending_term == term
    }
}

/// The store: a fence, and instructions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Store {
    /// The term in force.
    pub fence: u8,
    /// The kill switch.
    pub halted: bool,
    /// The instructions.
    pub rows: Vec<Row>,
}

/// What does not change about it.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Whether the receiver is idempotent.
    pub idempotent: bool,
    /// What is done wrongly.
    pub defect: Option<Defect>,
}

impl Store {
    /// With so many instructions, never tried.
    pub fn new(instructions: usize) -> Self {
        let state = InstructionState::Pending;
        let row = Row { state, sending_term: 0, in_doubt: false, attempts: 0, charged: 0 };
        Self { fence: 0, halted: false, rows: vec![row; instructions] }
    }

    /// The fence's answer. `begins`: refused where halted.
    pub fn enter(&self, term: u8, begins: bool, rules: Rules) -> Entered {
        if self.fence != term {
            Entered::Fenced
        } else if begins && self.halted && rules.defect != Some(Defect::HaltNotInFence) {
            Entered::Halted
        } else {
            Entered::Mine
        }
    }

    /// Puts a term in force; answers whether it is.
    pub fn advance(&mut self, term: u8) -> bool {
        let accepted = self.fence <= term;
        if accepted {
            self.fence = term;
        }
        accepted
    }

    /// Whether an instruction may be taken.
    pub fn may_be_taken(&self, instruction: usize) -> bool {
        match self.rows[instruction].state {
            InstructionState::Pending | InstructionState::Unknown => true,
            InstructionState::Sending
            | InstructionState::Paid
            | InstructionState::Rejected
            | InstructionState::Held
            | InstructionState::Returned => false,
        }
    }

    /// Puts an instruction on the wire; answers which try it is.
    pub fn take(&mut self, term: u8, instruction: usize) -> u8 {
        let row = &mut self.rows[instruction];
        row.state = InstructionState::Sending;
        row.sending_term = term;
        row.attempts += 1;
        row.attempts
    }

    /// Records what a try came to, where it is the one on the wire under that term.
    pub fn record(&mut self, term: u8, instruction: usize, attempt: u8, fate: Fate, rules: Rules) {
        let row = &mut self.rows[instruction];
        if !row.is_sent_by(term) || row.attempts != attempt {
            return;
        }
        if matches!(fate, Fate::Failed { .. } | Fate::Unknown { .. }) {
            row.charged += 1;
        }
        row.state = match fate {
            Fate::Done => InstructionState::Paid,
            // A failed try proves nothing about an earlier one that is in doubt.
            Fate::Failed { again: false } if row.in_doubt && rules.defect != Some(Defect::RejectedAfterUnknown) => {
                InstructionState::Held
            }
            Fate::Failed { again: false } => InstructionState::Rejected,
            Fate::Failed { again: true } | Fate::NotSent | Fate::Stopped | Fate::PutOff => row.as_it_was(),
            Fate::Unknown { again } => {
                row.in_doubt = true;
                if again { InstructionState::Unknown } else { InstructionState::Held }
            }
        };
    }

    /// Puts back what stands on the wire under a term and nobody has in hand.
    pub fn put_back(&mut self, term: u8, in_hand: &[usize]) {
        for (id, row) in self.rows.iter_mut().enumerate() {
            if row.is_sent_by(term) && !in_hand.contains(&id) {
                row.state = row.as_it_was();
            }
        }
    }

    /// A promotion: what lower terms left on the wire is in doubt.
    pub fn recover(&mut self, term: u8, rules: Rules) {
        if rules.defect == Some(Defect::PromotionKeepsSending) {
            return;
        }
        let left = |row: &&mut Row| row.state == InstructionState::Sending && row.sending_term < term;
        for row in self.rows.iter_mut().filter(left) {
            row.in_doubt = true;
            row.state = if rules.idempotent { InstructionState::Unknown } else { InstructionState::Held };
        }
    }
}
