//! The store's side of ticks: the fence's answer, and the two transactions that record them, each as one step.
//! [`twin`](crate::twin) compares them with the product's store in memory.

use bursar::domain::job::Misfire;

use super::decided::{Decided, Fate, GRACE, decisions};
use crate::defect::Defect;

/// What a leader read of the job, and decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Read {
    /// Whether the definition was the new one.
    pub edited: bool,
    /// The row's `evaluated_until`.
    pub from: u8,
    /// The time, by the leader's clock.
    pub to: u8,
    /// Whether the edit is to be put in force.
    pub edits: bool,
}

/// What the store says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// Another term is in force.
    Fenced,
    /// The election is halted.
    Halted,
    /// The row is not as it was read.
    Moved,
    /// The store's clock has not reached it.
    NotYet,
    /// It is in; so many ticks had a row.
    Recorded(u8),
    /// The edit is in force.
    Changed,
}

/// What does not change about it.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The policy, and that of the edit.
    pub policies: [Misfire; 2],
    /// What is done wrongly.
    pub defect: Option<Defect>,
}

impl Rules {
    /// What becomes of the ticks in between. Under the defect the edit forgets what the old definition owed.
    pub fn decisions(self, read: Read) -> &'static [Decided] {
        let [old, new] = self.policies;
        match (read.edits, self.defect) {
            (true, Some(Defect::EditForgetsTheOld)) => &[],
            (true, Some(_) | None) => decisions(old, Some(new), read.from, read.to),
            (false, Some(_) | None) => decisions(if read.edited { new } else { old }, None, read.from, read.to),
        }
    }
}

/// The fence, the job's row, and its ticks' rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "what is independent of each other, in every combination")]
pub struct Book {
    /// The term in force.
    pub fence: u8,
    /// The kill switch.
    pub halted: bool,
    /// The store's time: of tick `n`, from 0 on, the due time is `n + 1`.
    pub now: u8,
    /// The edit is in force.
    pub edited: bool,
    /// Up to here every tick has its outcome.
    pub evaluated_until: u8,
    /// Per tick its outcome, and whether the edit was in force when it was recorded.
    pub rows: Vec<Option<(Fate, bool)>>,
    /// Onlooker: a tick was recorded twice.
    pub twice: bool,
    /// Onlooker: a run was opened before its time.
    pub early: bool,
    /// Onlooker: a run was opened while halted.
    pub opened_halted: bool,
    /// Onlooker: the policy took a tick although none was past its grace.
    pub hasty: bool,
}

impl Book {
    /// Of a new job, in nobody's hands.
    pub fn new(ticks: u8) -> Self {
        Self {
            fence: 0,
            halted: false,
            now: 0,
            edited: false,
            evaluated_until: 0,
            rows: vec![None; usize::from(ticks)],
            twice: false,
            early: false,
            opened_halted: false,
            hasty: false,
        }
    }

    /// Whether an onlooker has seen what must never be.
    pub const fn is_wrong(&self) -> bool {
        self.twice || self.early || self.opened_halted || self.hasty
    }

    /// Records what was decided on, together with the mark; or puts the edit in force with what the old definition owed.
    pub fn record(&mut self, term: u8, read: Read, rules: Rules) -> Said {
        if self.fence != term {
            return Said::Fenced;
        }
        if self.halted && rules.defect != Some(Defect::OpensWhileHalted) {
            return Said::Halted;
        }
        let compares = rules.defect != Some(Defect::TicksNotCompared);
        let mark = read.from.max(read.to);
        if compares && (self.edited != read.edited || self.evaluated_until != read.from) {
            return Said::Moved;
        }
        // An edit that moves no mark and settles nothing waits for no clock.
        let reaches = !read.edits || mark != read.from;
        if reaches && mark > self.now && rules.defect != Some(Defect::NotComparedWithStoresClock) {
            return Said::NotYet;
        }
        self.evaluated_until = self.evaluated_until.max(mark);
        let duplicates = if rules.defect == Some(Defect::EvaluatedBeforeRun) { 0 } else { self.insert(read, rules) };
        if read.edits {
            self.edited = true;
            return Said::Changed;
        }
        Said::Recorded(duplicates)
    }

    /// The rows; answers how many were there.
    pub fn insert(&mut self, read: Read, rules: Rules) -> u8 {
        let mut there = 0;
        for (tick, fate) in rules.decisions(read) {
            if *fate == Fate::Opened {
                self.early |= tick + 1 > self.now;
                self.opened_halted |= self.halted;
            } else {
                self.hasty |= read.to <= read.from + 1 + GRACE;
            }
            let row = &mut self.rows[usize::from(*tick)];
            if row.is_some() {
                there += 1;
                self.twice |= rules.defect == Some(Defect::TicksNotCompared);
            } else {
                *row = Some((*fate, read.edited));
            }
        }
        there
    }
}
