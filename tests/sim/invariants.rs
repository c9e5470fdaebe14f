//! What must hold after every event, one function each. They look at the judge's account and at the rows, never at the code
//! that made them.

use std::collections::BTreeMap;

use bursar::domain::instruction::InstructionState;
use bursar::domain::run::{RunKind, RunState};
use bursar::domain::unit::UnitState;
use bursar::domain::{ElectionName, Term};

use crate::facts::{Facts, Kind, Touch, Went, who};

type Found = Vec<String>;
type Invariant = (&'static str, fn(&Facts) -> Found);

/// All of them.
pub const INVARIANTS: &[Invariant] = &[
    ("one_leader_per_term", invariant_one_leader_per_term),
    ("terms_only_rise", invariant_terms_only_rise),
    ("older_term_writes_nothing", invariant_older_term_writes_nothing),
    ("halted_does_nothing", invariant_halted_does_nothing),
    ("nothing_after_demotion", invariant_nothing_after_demotion),
    ("key_and_bytes_stay", invariant_key_and_bytes_stay),
    ("written_before_it_is_sent", invariant_written_before_it_is_sent),
    ("unit_has_one_effect", invariant_unit_has_one_effect),
    ("one_run_per_tick", invariant_one_run_per_tick),
    ("ended_runs_have_no_pending_units", invariant_ended_runs_have_no_pending_units),
    ("book_agrees_with_store", invariant_book_agrees_with_store),
    ("tokens_never_go_down", invariant_tokens_never_go_down),
    ("ledger_balances", invariant_ledger_balances),
    ("final_stays_final", invariant_final_stays_final),
    ("one_leader_at_a_time", invariant_one_leader_at_a_time),
    ("begins_under_its_own_key", invariant_begins_under_its_own_key),
    ("charged_alone", invariant_charged_alone),
    ("no_session_is_lost_for_nothing", invariant_no_session_is_lost_for_nothing),
];

/// What is violated now.
pub fn check(facts: &Facts) -> Found {
    let mut all = Found::new();
    for (name, check) in INVARIANTS {
        all.extend(check(facts).into_iter().map(|found| format!("{name}: {found}")));
    }
    all
}

/// S1: of every term the store accepted one tenure.
fn invariant_one_leader_per_term(facts: &Facts) -> Found {
    let mut tenures = BTreeMap::new();
    let mut found = Found::new();
    for (election, term, tenure) in facts.accepted.values().flatten() {
        let first = tenures.entry((election, term)).or_insert(tenure);
        if *first != tenure {
            found.push(format!("{election}/{term} was accepted from {} and from {}", first.0, tenure.0));
        }
    }
    found
}

/// S1: the fence never goes down.
fn invariant_terms_only_rise(facts: &Facts) -> Found {
    let falls = |claims: &Vec<crate::facts::Who>| {
        claims
            .windows(2)
            .filter(|pair| pair[0].1 >= pair[1].1)
            .map(|pair| format!("{} after {}", pair[1].1, pair[0].1))
            .collect::<Vec<_>>()
    };
    facts.accepted.values().flat_map(falls).collect()
}

/// S2: what the store does under a claim, it does under the one in force.
fn invariant_older_term_writes_nothing(facts: &Facts) -> Found {
    match &facts.last {
        Some(Touch::Did { claim, operation, went: Went::Mine, .. })
            if facts.in_force(&claim.election) != Some(&who(claim)) =>
        {
            let in_force = facts.in_force(&claim.election).map_or(Term::NONE, |who| who.1);
            vec![format!("{operation} was done as {}/{}, in force is {in_force}", claim.election, claim.term)]
        }
        Some(_) | None => Found::new(),
    }
}

/// S6: nothing begins in a halted election.
fn invariant_halted_does_nothing(facts: &Facts) -> Found {
    match &facts.last {
        Some(Touch::Did { claim, operation, kind: Kind::Begin, went: Went::Mine, .. })
            if facts.halted.contains(&claim.election) =>
        {
            vec![format!("{operation} was done in {} while it was halted", claim.election)]
        }
        Some(_) | None => Found::new(),
    }
}

/// S7: a tenure that said that it has ended turns to nobody any more.
fn invariant_nothing_after_demotion(facts: &Facts) -> Found {
    let (claim, what) = match &facts.last {
        Some(Touch::Asked { claim, operation, .. }) => (claim, *operation),
        Some(Touch::Wrote { claim: Some(claim), .. }) => (claim, "a request"),
        Some(_) | None => return Found::new(),
    };
    if facts.ended.contains(&who(claim)) {
        return vec![format!("{what} as {}/{} after that tenure had ended", claim.election, claim.term)];
    }
    Found::new()
}

/// S4: an instruction has the same key and the same bytes at every take, and a key is of one instruction.
fn invariant_key_and_bytes_stay(facts: &Facts) -> Found {
    facts.contradictions.clone()
}

/// S4: what arrives at a receiver was taken under the fence before, as it arrives, and under a term that was accepted.
fn invariant_written_before_it_is_sent(facts: &Facts) -> Found {
    let Some(Touch::Arrived { arrival, .. }) = &facts.last else { return Found::new() };
    let mut found = Found::new();
    match facts.keys.get(&arrival.key).and_then(|instruction| facts.taken.get(instruction)) {
        None => found.push(format!("{} arrived, and nobody took it", arrival.key)),
        Some((_, body)) if arrival.post && *body != arrival.body => {
            found.push(format!("{} arrived with other bytes than it was taken with", arrival.key));
        }
        Some(_) => {}
    }
    let known = ElectionName::new(arrival.election()).ok().and_then(|election| facts.accepted.get(&election));
    if known.is_none_or(|claims| claims.iter().all(|claim| claim.1.get() != arrival.token)) {
        found.push(format!("{} arrived under token {}, which was never accepted", arrival.key, arrival.token));
    }
    found
}

/// S3, S4: a key was booked once, at one receiver; no unit has two instructions.
fn invariant_unit_has_one_effect(facts: &Facts) -> Found {
    let mut found = Found::new();
    for (key, booking) in &facts.book.bookings {
        if booking.times > 1 {
            found.push(format!("{key} was booked {} times at {}", booking.times, booking.host));
        }
    }
    for unit in &facts.views.units {
        // A unit that was set aside and retried has one for each generation; scenarios retry none.
        if unit.instructions.len() > 1 {
            found.push(format!("unit {} has {} instructions", unit.id, unit.instructions.len()));
        }
        let pending = match unit.state {
            UnitState::Pending | UnitState::SetAside => true,
            UnitState::Settled | UnitState::Carried | UnitState::Empty => false,
        };
        if pending && unit.instructions.iter().any(|instruction| instruction.kind == "payout") {
            found.push(format!("unit {} is {:?} and has a payout", unit.id, unit.state));
        }
    }
    found
}

/// S5: one scheduled run per job and tick.
fn invariant_one_run_per_tick(facts: &Facts) -> Found {
    let mut runs = BTreeMap::new();
    let ticks = facts.views.runs.iter().filter(|run| run.kind == RunKind::Tick);
    ticks
        .filter_map(|run| {
            let other = runs.insert((&run.job, run.tick), run.id)?;
            Some(format!("{} {} has the runs {other} and {}", run.job, run.tick, run.id))
        })
        .collect()
}

/// A run ends when none of its units is pending.
fn invariant_ended_runs_have_no_pending_units(facts: &Facts) -> Found {
    let ended = facts.views.runs.iter().filter(|run| run.state == RunState::Complete && run.units.pending > 0);
    ended.map(|run| format!("run {} is complete with {} units pending", run.id, run.units.pending)).collect()
}

/// What the store says of a payout is what its receiver has in the book.
fn invariant_book_agrees_with_store(facts: &Facts) -> Found {
    let mut found = Found::new();
    for payout in &facts.views.payouts {
        let booked = facts.book.bookings.contains_key(&payout.key);
        match payout.state {
            InstructionState::Paid if !booked => found.push(format!("{} is paid and not in the book", payout.key)),
            InstructionState::Rejected if booked => found.push(format!("{} is rejected and in the book", payout.key)),
            InstructionState::Pending if booked && !payout.in_doubt => {
                found.push(format!("{} is in the book, and the store has no doubt that it is not", payout.key));
            }
            InstructionState::Pending
            | InstructionState::Sending
            | InstructionState::Unknown
            | InstructionState::Held
            | InstructionState::Paid
            | InstructionState::Rejected
            | InstructionState::Returned => {}
        }
    }
    let unknown = facts.book.bookings.keys().filter(|key| !facts.keys.contains_key(*key));
    found.extend(unknown.map(|key| format!("{key} is in the book, and was never taken")));
    found
}

/// A receiver that compares tokens booked nothing below what it had seen.
fn invariant_tokens_never_go_down(facts: &Facts) -> Found {
    facts.stale.clone()
}

/// What is paid or rejected stays so: there are no returns in scenarios.
fn invariant_final_stays_final(facts: &Facts) -> Found {
    let loose = |payout: &&bursar::store::PayoutView| {
        let is_final = matches!(payout.state, InstructionState::Paid | InstructionState::Rejected);
        is_final != payout.final_at.is_some()
    };
    let loose = facts.views.payouts.iter().filter(loose).map(|payout| format!("{} is {:?}", payout.key, payout.state));
    facts.unmade.iter().cloned().chain(loose).collect()
}

/// S1, S7: no two say at one moment that they lead, unless somebody works on the coordinator by hand.
fn invariant_one_leader_at_a_time(facts: &Facts) -> Found {
    let Some(Touch::LeadersSeen) = &facts.last else { return Found::new() };
    let many = facts.leading.iter().filter(|(_, replicas)| !facts.meddled && replicas.len() > 1);
    many.map(|(election, replicas)| format!("{election} is led by {replicas:?}")).collect()
}

/// S7: who begins something has the leader key, unless somebody works on the coordinator by hand: a lease is over here before it is
/// over there, and the gate stands before every beginning.
fn invariant_begins_under_its_own_key(facts: &Facts) -> Found {
    match &facts.last {
        Some(Touch::Asked { claim, kind: Kind::Begin, operation })
            if !facts.meddled && facts.key_of != Some(claim.tenure_id) =>
        {
            vec![format!("{operation} was begun as {}/{} without the leader key", claim.election, claim.term)]
        }
        Some(_) | None => Found::new(),
    }
}

/// No tenure ends with its session or its key where nothing in the seed can cost anybody one.
fn invariant_no_session_is_lost_for_nothing(facts: &Facts) -> Found {
    match &facts.last {
        Some(Touch::Ending { claim, reason }) if facts.sessions_are_safe && LOST.contains(&reason.as_str()) => {
            vec![format!("{}/{} ends: {reason}", claim.election, claim.term)]
        }
        Some(_) | None => Found::new(),
    }
}

/// L4: nobody is charged for another's failure: who is charged was tried alone, or is the last that is left.
fn invariant_charged_alone(facts: &Facts) -> Found {
    let Some(Touch::Charges { run, units }) = &facts.last else { return Found::new() };
    let left = facts.views.runs.iter().find(|seen| seen.id == *run);
    if left.is_none_or(|run| run.units.pending <= 1 || !facts.one_by_one.contains(&run.job)) {
        return Found::new();
    }
    let together = units.iter().filter(|unit| !facts.alone.contains(unit));
    together.map(|unit| format!("unit {unit} of run {run} was charged, and never tried alone")).collect()
}

/// Reasons of an end that nobody asked for and the store did not give.
const LOST: &[&str] = &["session_lost", "lease_gone", "leader_key_gone", "leader_key_taken"];

/// No merchant is paid more than came in for it. The store's own audit asks for equality, on its own rows.
fn invariant_ledger_balances(facts: &Facts) -> Found {
    let mut paid: BTreeMap<&str, i64> = BTreeMap::new();
    for (merchant, amount) in facts.book.bookings.values().filter_map(|booking| booking.paid.as_ref()) {
        *paid.entry(merchant).or_insert(0) += amount;
    }
    let more = |(merchant, amount): (&str, i64)| {
        let came_in = facts.came_in.get(merchant).copied().unwrap_or(0);
        (amount > came_in).then(|| format!("{merchant} was paid {amount}, and {came_in} came in"))
    };
    paid.into_iter().filter_map(more).collect()
}
