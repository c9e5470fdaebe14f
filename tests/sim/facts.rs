//! What the judge knows: an account of its own of what happened, taken from the ports and not from the store's rows, and the
//! store's rows as its views show them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use bursar::domain::instruction::InstructionState;
use bursar::domain::{Claim, ElectionName, JobName, TenureId, Term};
use bursar::store::memory::MemoryStore;
use bursar::store::{PayoutFilter, PayoutView, RunFilter, RunSummary, Store, UnitFilter, UnitView};
use chrono::{DateTime, Utc};

use crate::receiver::{Arrival, Book, Reply};

/// A claim, in an order.
pub type Who = (ElectionName, Term, TenureId);

pub fn who(claim: &Claim) -> Who {
    (claim.election.clone(), claim.term, claim.tenure_id)
}

/// What a fenced operation is allowed while the election is halted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Begin,
    Record,
}

/// How a fenced operation went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Went {
    Mine,
    Fenced,
    Halted,
    Failed,
}

/// Something that is on its way to a receiver: instruction, key, bytes.
pub type Taken = (i64, String, Vec<u8>);

/// One event.
#[derive(Debug, Clone)]
pub enum Touch {
    /// A tenure turned to the store.
    Asked {
        claim: Claim,
        kind: Kind,
        operation: &'static str,
    },
    /// The store did something under a claim, or refused.
    Did {
        claim: Claim,
        kind: Kind,
        operation: &'static str,
        went: Went,
        taken: Vec<Taken>,
    },
    /// A claim was put in force.
    Accepted {
        claim: Claim,
    },
    /// The coordinator let somebody win.
    Won {
        claim: Claim,
    },
    Halted {
        election: ElectionName,
    },
    Resumed {
        election: ElectionName,
    },
    /// A request arrived at a receiver.
    Arrived {
        arrival: Arrival,
        reply: Reply,
    },
    /// A tenure wrote to a receiver.
    Wrote {
        claim: Option<Claim>,
        key: String,
    },
    TenureEnded {
        claim: Claim,
    },
    /// A tenure notes why it ends.
    Ending {
        claim: Claim,
        reason: String,
    },
    /// A tenure tries one unit alone.
    Alone {
        unit: i64,
    },
    /// A tenure charges units, of a run of the store's own work.
    Charges {
        run: i64,
        units: Vec<i64>,
    },
    /// Who says that it leads was looked at.
    LeadersSeen,
    /// Entries came in: merchant, and amount less fee in minor units.
    Imported {
        entries: Vec<(String, i64)>,
    },
}

impl Touch {
    /// Whether the store's rows may be others now.
    pub fn may_have_written(&self) -> bool {
        match self {
            Self::Did { operation, went, .. } => {
                // Also what failed may have: a COMMIT without an answer.
                matches!(went, Went::Mine | Went::Failed) && !READS.contains(operation)
            }
            Self::Asked { .. }
            | Self::Accepted { .. }
            | Self::Won { .. }
            | Self::Halted { .. }
            | Self::Resumed { .. }
            | Self::Arrived { .. }
            | Self::Wrote { .. }
            | Self::TenureEnded { .. }
            | Self::Ending { .. }
            | Self::Alone { .. }
            | Self::Charges { .. }
            | Self::LeadersSeen
            | Self::Imported { .. } => false,
        }
    }
}

/// Operations that write nothing.
const READS: &[&str] = &["pulse", "jobs", "open_runs", "recorded", "payout_jobs", "requests", "lineage"];

impl fmt::Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked { claim, operation, .. } => write!(f, "asks {operation} as {}/{}", claim.election, claim.term),
            Self::Did { claim, operation, went, taken, .. } => {
                write!(f, "{operation} as {}/{}: {went:?}", claim.election, claim.term)?;
                for (instruction, key, _) in taken {
                    write!(f, " {instruction}={key}")?;
                }
                Ok(())
            }
            Self::Accepted { claim } => {
                write!(f, "accepted {}/{} of {}", claim.election, claim.term, claim.tenure_id.0)
            }
            Self::Won { claim } => write!(f, "won {}/{} as {}", claim.election, claim.term, claim.tenure_id.0),
            Self::Halted { election } => write!(f, "halted {election}"),
            Self::Resumed { election } => write!(f, "resumed {election}"),
            Self::Arrived { arrival, reply } => write!(f, "{arrival}: {reply}"),
            Self::Wrote { key, .. } => write!(f, "writes a request for {key}"),
            Self::TenureEnded { claim } => write!(f, "ended {}/{}", claim.election, claim.term),
            Self::Ending { claim, reason } => write!(f, "ends {}/{}: {reason}", claim.election, claim.term),
            Self::Alone { unit } => write!(f, "tries {unit} alone"),
            Self::Charges { run, units } => write!(f, "charges {units:?} of {run}"),
            Self::LeadersSeen => write!(f, "looks who leads"),
            Self::Imported { entries } => write!(f, "imports {} entries", entries.len()),
        }
    }
}

/// The store's rows.
#[derive(Debug, Default)]
pub struct Views {
    pub runs: Vec<RunSummary>,
    pub units: Vec<UnitView>,
    pub payouts: Vec<PayoutView>,
}

/// More rows than any scenario writes.
const ALL: u32 = 10_000;

impl Views {
    pub async fn read(store: &MemoryStore) -> Self {
        let runs = store.runs(&RunFilter { limit: ALL, ..RunFilter::default() }).await;
        let units = store.units(&UnitFilter { limit: ALL, ..UnitFilter::default() }).await;
        let payouts = store.payouts(&PayoutFilter { limit: ALL, ..PayoutFilter::default() }).await;
        Self {
            runs: runs.expect("the judge has no faults"),
            units: units.expect("the judge has no faults"),
            payouts: payouts.expect("the judge has no faults"),
        }
    }
}

/// All of it.
#[derive(Debug, Default)]
pub struct Facts {
    pub events: u64,
    /// Those that may have written.
    pub writes: u64,
    /// The event that was taken in last.
    pub last: Option<Touch>,
    /// Claims in the order of their acceptance, by election.
    pub accepted: BTreeMap<ElectionName, Vec<Who>>,
    pub halted: BTreeSet<ElectionName>,
    pub ended: BTreeSet<Who>,
    /// Key and bytes as each instruction was first taken, and the other way round.
    pub taken: BTreeMap<i64, (String, Vec<u8>)>,
    pub keys: BTreeMap<String, i64>,
    /// What came in for each merchant, without what was taken back, minor units.
    pub came_in: BTreeMap<String, i64>,
    /// What was found to be otherwise than it was before: keys and bytes; payouts that were final.
    pub contradictions: Vec<String>,
    pub unmade: Vec<String>,
    /// Bookings under a lower token than an earlier one's, at receivers that compare.
    pub stale: Vec<String>,
    pub book: Book,
    pub views: Views,
    /// Units that were tried alone.
    pub alone: BTreeSet<i64>,
    /// Jobs that settle one batch at a time.
    pub one_by_one: BTreeSet<JobName>,
    /// The highest token that each receiver has booked under, by scope.
    pub tokens: BTreeMap<(String, String), i64>,
    /// How each payout ended, when it first had.
    pub finals: BTreeMap<String, InstructionState>,
    /// Who says that it leads.
    pub leading: BTreeMap<ElectionName, BTreeSet<String>>,
    /// Whose the leader key was when a tenure last turned to the store.
    pub key_of: Option<TenureId>,
    /// Somebody worked on the coordinator by hand, or it forgot: leases and keys promise nothing.
    pub meddled: bool,
    /// Nothing in this seed can cost anybody a session.
    pub sessions_are_safe: bool,
    /// Since when there is no more trouble, and when first something was begun in each election after that.
    pub calm_since: Option<Duration>,
    pub worked: BTreeMap<ElectionName, Duration>,
    /// Where the marks of jobs stood when they were brought up.
    pub marks: BTreeMap<JobName, DateTime<Utc>>,
}

impl Facts {
    fn compares_tokens(&self, host: &str) -> bool {
        self.book.habits.get(host).is_some_and(|habits| habits.checks_tokens)
    }

    /// The claim that the store accepted last.
    pub fn in_force(&self, election: &ElectionName) -> Option<&Who> {
        self.accepted.get(election).and_then(|claims| claims.last())
    }

    /// Takes in the store's rows. What was final stays what it was: that is remembered here, not read.
    pub fn show(&mut self, views: Views) {
        for payout in &views.payouts {
            if payout.state.is_final() {
                let first = *self.finals.entry(payout.key.clone()).or_insert(payout.state);
                if first != payout.state {
                    self.unmade.push(format!("{} was {first:?} and is {:?}", payout.key, payout.state));
                }
            } else if let Some(first) = self.finals.get(&payout.key) {
                self.unmade.push(format!("{} was {first:?} and is {:?}", payout.key, payout.state));
            }
        }
        self.views = views;
    }

    pub fn take_in(&mut self, touch: Touch, now: Duration) {
        self.events += 1;
        self.writes += u64::from(touch.may_have_written());
        match &touch {
            Touch::Accepted { claim } => {
                let claims = self.accepted.entry(claim.election.clone()).or_default();
                if claims.last() != Some(&who(claim)) {
                    claims.push(who(claim));
                }
            }
            Touch::Halted { election } => {
                self.halted.insert(election.clone());
            }
            Touch::Resumed { election } => {
                self.halted.remove(election);
            }
            Touch::TenureEnded { claim } => {
                self.ended.insert(who(claim));
            }
            Touch::Did { claim, kind, went, taken, .. } => {
                if self.calm_since.is_some() && (*kind, *went) == (Kind::Begin, Went::Mine) {
                    self.worked.entry(claim.election.clone()).or_insert(now);
                }
                for (instruction, key, body) in taken {
                    let first = self.taken.entry(*instruction).or_insert_with(|| (key.clone(), body.clone()));
                    if first != &(key.clone(), body.clone()) {
                        let was = &first.0;
                        self.contradictions.push(format!("instruction {instruction} was {was} and is {key}"));
                    }
                    let owner = *self.keys.entry(key.clone()).or_insert(*instruction);
                    if owner != *instruction {
                        self.contradictions.push(format!("{key} is of instruction {owner} and of {instruction}"));
                    }
                }
            }
            Touch::Alone { unit } => {
                self.alone.insert(*unit);
            }
            Touch::Imported { entries } => {
                for (merchant, net) in entries {
                    *self.came_in.entry(merchant.clone()).or_insert(0) += net.max(&0);
                }
            }
            Touch::Arrived { arrival, reply } if reply.booked && self.compares_tokens(&arrival.host) => {
                let highest = self.tokens.entry((arrival.host.clone(), arrival.scope.clone())).or_insert(arrival.token);
                if arrival.token < *highest {
                    let (key, token) = (&arrival.key, arrival.token);
                    self.stale.push(format!("{key} was booked under token {token} after {highest}"));
                }
                *highest = arrival.token.max(*highest);
            }
            Touch::Asked { .. }
            | Touch::Won { .. }
            | Touch::Arrived { .. }
            | Touch::Wrote { .. }
            | Touch::Ending { .. }
            | Touch::Charges { .. }
            | Touch::LeadersSeen => {}
        }
        self.last = Some(touch);
    }
}
