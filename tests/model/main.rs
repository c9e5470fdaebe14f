//! The protocol as a model, explored exhaustively: every order of steps in bounded worlds, with every fault that their bounds
//! allow, looked at with the guarantees of ARCHITECTURE.md. README.md beside this file has the table of what was found where.
//!
//! | file | what |
//! |---|---|
//! | `check` | explores with stateright, and how liveness is shown |
//! | `election`, `replica`, `coordinator` | two replicas with the product's own machine, the product's coordinator as a value |
//! | `fencing` | transactions at the fence, statement by statement, with locks |
//! | `paying`, `store`, `receiver` | instructions, from the take to the record |
//! | `ticks` | timers and runs |
//! | `twin` | the model's store beside the product's |
//! | `worlds` | the bounds |
//! | `defect` | what can be done wrongly, each found by the property that it breaks |
//!
//! Operators halt, resume, delete and put keys as steps of these worlds.

#![expect(
    clippy::similar_names,
    clippy::match_same_arms,
    clippy::trivially_copy_pass_by_ref,
    clippy::struct_field_names,
    reason = "names and arms are those of the protocol, step by step; values are as small as a world's states need"
)]

#[path = "../it/mutants/also.rs"]
mod also;
mod check;
mod coordinator;
mod defect;
mod election;
mod fencing;
mod kept;
#[path = "../it/support/long.rs"]
mod long;
mod paying;
mod receiver;
mod replica;
mod store;
mod ticks;
mod twin;
mod worlds;

use std::collections::BTreeSet;

use bursar::domain::job::Misfire;
use check::{falls, holds, no_cycle};
use defect::Defect;
use worlds::{ELECTIONS, FENCES, LARGER_ELECTIONS, LARGER_FENCES, LARGER_PAYINGS, LARGER_TICKS, PAYINGS, TICKS, of};

/// The worlds of a plain run, and in a long one those with more faults as well.
fn worlds<M: Copy>(what: &str, plain: &[(&'static str, M)], larger: &[(&'static str, M)]) -> Vec<(&'static str, M)> {
    let more = long::repetitions(what, 0, larger.len());
    plain.iter().chain(&larger[..more]).copied().collect()
}

#[test]
fn in_every_history_of_elections_the_promises_hold() {
    for (name, world) in worlds("larger worlds of elections", ELECTIONS, LARGER_ELECTIONS) {
        assert!(world.rates.into_iter().all(election::tolerates), "{name}: no budget covers such clocks");
        holds(name, world);
    }
}

#[test]
fn in_worlds_of_nearly_every_fault_nobody_could_be_missed_for_too_long_without_being_noticed() {
    let all: BTreeSet<&str> = ELECTIONS.iter().flat_map(|(_, world)| world.faults.kinds()).collect();
    let bounded = ELECTIONS.iter().filter(|(_, world)| world.shows_l1());
    let bounded: BTreeSet<&str> = bounded.flat_map(|(_, world)| world.faults.kinds()).collect();
    // A message late, lost, and a pause stand for three of these, whose worlds are too many-sided to last for so long; a drain has
    // the shorter bound of a planned end.
    let short: Vec<&str> = all.difference(&bounded).copied().collect();
    assert_eq!(short, ["doubles", "drains", "late_renewals", "stops"]);
    let planned = ELECTIONS.iter().filter(|(_, world)| world.shows_planned());
    let planned: BTreeSet<&str> = planned.flat_map(|(_, world)| world.faults.kinds()).collect();
    assert!(
        ["drains", "handovers", "losses", "delays", "doubles"].iter().all(|kind| planned.contains(kind)),
        "{planned:?}"
    );
}

#[test]
fn in_every_history_at_the_fence_the_promises_hold() {
    for (name, world) in worlds("larger worlds at the fence", FENCES, LARGER_FENCES) {
        holds(name, world);
        no_cycle(name, &world);
    }
}

#[test]
fn in_every_history_of_instructions_the_promises_hold() {
    for (name, world) in worlds("larger worlds of instructions", PAYINGS, LARGER_PAYINGS) {
        holds(name, world);
        no_cycle(name, &world);
    }
}

#[test]
fn in_every_history_of_ticks_the_promises_hold() {
    for (name, world) in worlds("larger worlds of ticks", TICKS, LARGER_TICKS) {
        holds(name, world);
        no_cycle(name, &world);
    }
}

#[test]
fn the_store_in_memory_says_and_holds_what_the_models_store_does() {
    for idempotent in [true, false] {
        let (states, steps) = twin::compare(idempotent, 2);
        check::say(&format!("twin: {steps} transactions from {states} states, idempotent: {idempotent}"));
        assert!(states > 50, "only {states} states");
        let (states, steps) = twin::payouts::compare(idempotent, 2);
        check::say(&format!("twin of payouts: {steps} transactions from {states} states, idempotent: {idempotent}"));
        assert!(states > 30, "only {states} states");
    }
    for policies in [[Misfire::RunAll, Misfire::Skip], [Misfire::RunLatest, Misfire::RunAll]] {
        let (states, steps) = twin::ticks::compare(policies);
        check::say(&format!("twin of ticks: {steps} transactions from {states} states, {policies:?}"));
        assert!(states > 50, "only {states} states");
    }
}

/// Mutants of the product itself: of the machine, of verdicts, of the decision on ticks; with the world in which each is found
/// and the property that it breaks. A process reads once which are on, so each has one of its own.
const OF_THE_PRODUCT: &[(&str, &str, &str)] = &[
    ("session.deadline-counted-from-the-answer", "election: a renewal late, a stop", election::S1_ONE),
    ("session.saved-by-a-late-answer", "election: a renewal late, a stop", election::S7_SESSION),
    ("workers.stuck-for-ever", "election: workers that stand still", election::L1),
    ("term.from-the-clock", "election: a hand-over, a message late", election::S1_TERM),
    ("record.lease-not-compared", "election: a crash", election::S1_ONE),
    ("campaign.unknown-taken-for-lost", "election: two that start, a message lost", election::L1),
    ("http.redirect-taken-for-done", "paying: an idempotent receiver that answers oddly, or is away", paying::S4),
    ("http.echo-not-compared", "paying: an idempotent receiver that answers oddly, or is away", paying::S4),
    ("http.5xx-taken-for-undone", "paying: a receiver that answers oddly and is not idempotent", paying::S4),
    ("calls.unknown-made-again", "paying: a receiver that answers oddly and is not idempotent", paying::S4),
    ("misfire.grace-ignored", "ticks: a leader's clock ahead, a halt, another leader", ticks::L3_POLICY),
    ("resign.leaves-the-key", "election: a drain, a message lost, watches", election::L1_PLANNED),
    ("demotion.overrun-tolerated", "election: a person deletes the key, a message late", election::S7_SESSION),
];

/// Names a mutant for [`the_mutant_that_this_process_was_started_with_falls`].
const CHILD: &str = "BURSAR_MODEL_CHILD";

#[test]
fn mutants_of_the_product_fall() {
    let names: BTreeSet<&str> = OF_THE_PRODUCT.iter().map(|(name, ..)| *name).collect();
    // That each of them is in the sources, the table of mutants is held to.
    assert_eq!(names, also::noticed_by("mutants_of_the_product_fall"), "the table of mutants says the same");
    for (name, world, property) in OF_THE_PRODUCT {
        let child = std::process::Command::new(std::env::current_exe().expect("this is a program"))
            .args(["--exact", "the_mutant_that_this_process_was_started_with_falls", "--nocapture"])
            .env("BURSAR_MUTANTS", name)
            .env(CHILD, name)
            .output()
            .expect("this program can be started");
        let said = String::from_utf8_lossy(&child.stdout).into_owned();
        said.lines().filter(|line| line.starts_with("defect ")).for_each(check::say);
        let complaint = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{name} in {world} does not refute {property}: {complaint}");
    }
}

#[test]
fn the_mutant_that_this_process_was_started_with_falls() {
    let Ok(mutant) = std::env::var(CHILD) else { return };
    let (name, world, property) = OF_THE_PRODUCT.iter().find(|(name, ..)| *name == mutant).expect("one of the list");
    assert!(bursar::chaos::mutant(name), "{name} is on");
    if world.starts_with("paying") {
        let (world_name, world) = of(PAYINGS, world);
        falls(&format!("{name} in {world_name}"), world, property);
    } else if world.starts_with("ticks") {
        let (world_name, world) = of(TICKS, world);
        falls(&format!("{name} in {world_name}"), world, property);
    } else {
        let (world_name, world) = of(ELECTIONS, world);
        falls(&format!("{name} in {world_name}"), world, property);
    }
}

fn election_with(defect: Defect, world: &str, property: &'static str) {
    let (name, world) = of(ELECTIONS, world);
    falls(&format!("{defect:?} in {name}"), election::Election { defect: Some(defect), ..world }, property);
}

fn fence_with(defect: Defect, world: &str, property: &'static str) {
    let (name, world) = of(FENCES, world);
    falls(&format!("{defect:?} in {name}"), fencing::Fencing { defect: Some(defect), ..world }, property);
}

fn paying_with(defect: Defect, world: &str, property: &'static str) {
    let (name, world) = of(PAYINGS, world);
    falls(&format!("{defect:?} in {name}"), paying::Paying { defect: Some(defect), ..world }, property);
}

fn ticks_with(defect: Defect, world: &str, property: &'static str) {
    let (name, world) = of(TICKS, world);
    falls(&format!("{defect:?} in {name}"), ticks::Ticks { defect: Some(defect), ..world }, property);
}

#[test]
fn a_fence_that_is_read_without_its_lock_lets_a_left_claim_write() {
    fence_with(Defect::FenceReadWithoutLock, "lower and a higher", fencing::S2);
}

#[test]
fn a_fence_that_is_read_as_it_was_before_the_lock_lets_a_left_claim_write() {
    fence_with(Defect::FenceReadBeforeLock, "lower and a higher", fencing::S2);
}

#[test]
fn a_savepoint_before_the_fence_gives_the_lock_back() {
    fence_with(Defect::SavepointBeforeFence, "lower and a higher", fencing::S2);
}

#[test]
fn a_term_without_its_tenure_is_accepted_twice() {
    fence_with(Defect::TermWithoutTenureId, "one term", fencing::S1);
    election_with(Defect::TermWithoutTenureId, "two that start, a wipe", election::S1_TERM);
}

#[test]
fn an_advance_that_ends_nobody_waits_for_who_is_paused() {
    fence_with(Defect::AdvanceEndsNoSession, "lower and a higher", fencing::L1);
}

#[test]
fn an_advance_that_ends_no_exclusive_holder_waits_for_who_is_paused() {
    fence_with(Defect::ExclusiveHolderNotEnded, "lower and a higher", fencing::L1);
}

#[test]
fn an_advance_that_takes_its_own_claim_for_a_loss_leaves_nobody_to_lead() {
    fence_with(Defect::RepeatRefused, "lower and a higher", fencing::L1_TOLD);
}

#[test]
fn sums_beside_the_bind_post_an_entry_twice() {
    fence_with(Defect::SumsBesideBind, "lower and a higher", fencing::S3);
}

#[test]
fn a_fence_that_does_not_know_of_the_halt_settles_while_halted() {
    fence_with(Defect::HaltNotInFence, "lower and a higher", fencing::S6);
}

#[test]
fn a_term_from_a_clock_is_issued_twice() {
    election_with(Defect::TermFromClock, "election: a crash", election::S1_TERM);
}

#[test]
fn a_resignation_that_deletes_anothers_key_makes_two_lead() {
    election_with(Defect::ResignDeletesOthersKey, "a drain, a message late", election::S1_ONE);
}

#[test]
fn a_successor_that_is_put_without_the_term_key_gets_a_term_that_is_used_up() {
    election_with(Defect::SuccessorWithoutTermKey, "a term that is lifted", election::S1_TERM);
}

#[test]
fn fenced_taken_for_nothing_due_leaves_a_leader_that_does_nothing() {
    election_with(Defect::FencedAsNothingDue, "two that start, a wipe", election::L1);
    paying_with(Defect::FencedAsNothingDue, "leaders that come and go", paying::S7);
}

#[test]
fn an_unknown_commit_taken_for_a_failure_leaves_an_instruction_to_nobody() {
    paying_with(Defect::UnknownAsFailure, "without an answer", paying::L4);
}

#[test]
fn a_key_made_anew_pays_twice() {
    paying_with(Defect::KeyAnewOnRetry, "leaders that come and go", paying::S4);
}

#[test]
fn a_refusal_after_an_unknown_try_is_not_final() {
    paying_with(Defect::RejectedAfterUnknown, "without tokens", paying::S4);
}

#[test]
fn a_gate_before_the_commit_lets_a_tenure_send_that_is_over() {
    paying_with(Defect::GateBeforeCommit, "a halt", paying::S7);
}

#[test]
fn a_gate_that_is_open_while_the_session_is_in_doubt_lets_a_tenure_begin_something() {
    paying_with(Defect::GateOpenWhileSuspect, "a halt, a held gate", paying::S7);
}

#[test]
fn a_promotion_that_keeps_what_is_sending_leaves_it_for_ever() {
    paying_with(Defect::PromotionKeepsSending, "leaders that come and go", paying::L2);
}

#[test]
fn a_halt_that_is_not_read_again_sends_while_halted() {
    paying_with(Defect::HaltNotReread, "a halt", paying::S6);
}

#[test]
fn evaluated_before_the_run_is_in_loses_a_tick() {
    ticks_with(Defect::EvaluatedBeforeRun, "ticks: leaders", ticks::L3);
}

#[test]
fn ticks_that_are_not_compared_run_twice() {
    ticks_with(Defect::TicksNotCompared, "ticks: leaders", ticks::S5);
}

#[test]
fn ticks_that_are_not_compared_with_the_stores_clock_run_before_their_time() {
    ticks_with(Defect::NotComparedWithStoresClock, "a leader's clock ahead", ticks::S5_EARLY);
}

#[test]
fn ticks_that_are_recorded_whatever_the_halt_open_runs_while_halted() {
    ticks_with(Defect::OpensWhileHalted, "a halt", ticks::S6);
}

#[test]
fn an_edit_that_forgets_what_the_old_definition_owed_loses_a_tick() {
    ticks_with(Defect::EditForgetsTheOld, "ticks: an edit", ticks::L3);
}
