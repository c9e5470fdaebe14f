//! Of settling: units, instructions, ticks, halts, and what others left.

use super::Test::{It, Model, Sim, Unit};
use super::{Mutant, row};

/// All of them.
pub const ROWS: &[Mutant] = &[
    // One effect per unit.
    row(
        "commit.unknown-taken-for-failed",
        "S3",
        "a COMMIT without an answer counts as one that failed",
        It(
            "fence::commit::a_commit_that_happened_and_was_not_answered_is_unknown_and_repeating_it_finds_nothing_to_do",
        ),
        "Err(TryAgain { operation: \"settle\"",
    )
    .and(&[
        Model("an_unknown_commit_taken_for_a_failure_leaves_an_instruction_to_nobody"),
        Sim("teeth::an_unknown_commit_taken_for_a_failure_is_noticed"),
    ]),
    row(
        "entries.summed-beside-the-bind",
        "S3",
        "sums are over a SELECT beside the UPDATE that binds the entries",
        It("ledger::on_postgres::two_runs_that_pick_one_merchant_at_once_post_its_entries_once"),
        " right: 50",
    )
    .and(&[
        Model("sums_beside_the_bind_post_an_entry_twice"),
    ]),
    row(
        "carry.taken-by-any-job",
        "S3",
        "a carry is netted by another job than its own",
        It("contract::store::postgres::ledger::a_negative_net_is_carried_into_the_next_run_of_its_job_and_of_no_other"),
        "left: (Settled, Some(\"100.00\"))\n right: (Settled, Some(\"75.00\"))",
    ),
    row(
        "import.twice",
        "S3",
        "a file that is imported twice brings its entries twice",
        It("contract::store::postgres::imports::the_same_file_again_or_under_another_name_brings_nothing"),
        "right: NothingNew { same_file: Some(1), known: 2 }",
    ),
    // Instructions.
    row(
        "payouts.key-made-anew",
        "S4",
        "another try at a payout has another key",
        It("contract::store::payouts_on_postgres::doubts::nothing_in_doubt_is_reversed_and_no_doubt_is_forgotten"),
        "-again",
    )
    .and(&[
        It("paying::answers::a_payment_that_was_booked_and_answered_too_late_is_made_once_under_the_same_key_and_bytes"),
        Model("a_key_made_anew_pays_twice"),
        Sim("teeth::a_key_made_anew_is_noticed"),
    ]),
    row(
        "payouts.doubt-forgotten",
        "S4",
        "a doubt is over with the next try that is known",
        It("contract::store::payouts_on_postgres::doubts::nothing_in_doubt_is_reversed_and_no_doubt_is_forgotten"),
        "a doubt is never forgotten",
    ),
    row(
        "payouts.rejected-in-doubt",
        "S4",
        "a payout that may have been made is reversed",
        It("contract::store::payouts_on_postgres::doubts::nothing_in_doubt_is_reversed_and_no_doubt_is_forgotten"),
        "left: Some(Rejected)\n right: Some(Held)",
    )
    .and(&[
        Model("a_refusal_after_an_unknown_try_is_not_final"),
    ]),
    row(
        "payouts.validity-of-the-key-ignored",
        "S4",
        "a doubt is sent again when its key may be forgotten",
        It("contract::store::payouts_on_postgres::doubts::past_the_validity_of_its_key_nothing_in_doubt_is_sent"),
        "it may not leave: PayoutsTaken",
    ),
    row(
        "http.rejected-after-an-unknown-try",
        "S4",
        "a refusal counts although an earlier try may have had its effect",
        Unit("settlement::http::answer::tests::nothing_is_rejected_while_an_earlier_try_is_in_doubt"),
        "assertion failed: !rejected",
    )
    .and(&[
        Model("a_refusal_after_an_unknown_try_is_not_final"),
    ]),
    row(
        "http.5xx-taken-for-undone",
        "S4",
        "a server's failure counts as proof that nothing was done",
        Unit("settlement::http::answer::tests::each_status_has_its_verdict_by_the_kind_of_receiver"),
        "left: [\"undone\", \"undone\"]\n right: [\"later\", \"unknown\"]",
    )
    .and(&[
        Model("mutants_of_the_product_fall"),
        Sim("mutants::mutants_that_the_simulator_sees_fall"),
    ]),
    row(
        "http.redirect-taken-for-done",
        "S4",
        "a redirect counts as a payment",
        Unit("settlement::http::answer::tests::each_status_has_its_verdict_by_the_kind_of_receiver"),
        "left: [\"paid\", \"paid\"]",
    )
    .and(&[Sim("mutants::mutants_that_the_simulator_sees_fall"), Model("mutants_of_the_product_fall"), It("outside::answers::a_redirect_is_not_followed_and_stops_an_idempotent_receiver")]),
    row(
        "http.echo-not-compared",
        "S4",
        "an answer about another amount counts as a payment",
        Unit("settlement::http::answer::tests::a_success_is_a_payment_only_with_a_body_that_agrees"),
        "left: \"paid\"\n right: \"mismatch\"",
    )
    .and(&[Model("mutants_of_the_product_fall"), It("outside::answers::a_payment_is_what_the_answer_says_and_no_less")]),
    row(
        "http.connection-used-again",
        "S4",
        "a receiver that is not idempotent is sent to on a used connection",
        It("outside::requests::a_receiver_that_is_not_idempotent_gets_a_fresh_connection_each_time"),
        "left: [0, 0, 0]\n right: [0, 1, 2]",
    ),
    row(
        "calls.unknown-made-again",
        "S4",
        "a call of unknown outcome is made again although its handler is not idempotent",
        Unit("tenure::fate::tests::what_is_not_known_is_tried_again_only_where_that_is_harmless"),
        "assertion failed: matches!(fate(unknown(), &retry(), 0, 1, false, true, 7)",
    )
    .and(&[
        Model("mutants_of_the_product_fall"),
        Sim("mutants::mutants_that_the_simulator_sees_fall"),
    ]),
    row(
        "calls.stopped-not-counted",
        "S4",
        "a call that was answered with a stop counts as never sent, so that its key is used past its validity",
        Unit("tenure::fate::tests::a_receiver_is_waited_for_as_long_as_it_asks_and_a_stopped_one_costs_no_attempt"),
        "assertion failed: matches!(fate(stopped, &retry(), 2, 1, false, true, 7)",
    ),
    row(
        "calls.unknown-take-taken-for-failed",
        "L4",
        "calls of a take that was committed and not answered stay on the wire, in nobody's hands",
        Unit("tenure::tests::what_a_take_without_an_answer_may_have_left_on_the_wire_is_put_back"),
        "it would be in nobody's hands",
    )
    .and(&[
        It("unanswered::a_take_of_calls_that_was_committed_and_not_answered_is_put_back_under_the_same_tenure"),
        Model("an_unknown_commit_taken_for_a_failure_leaves_an_instruction_to_nobody"),
    ]),
    // Ticks and halts.
    row(
        "ticks.run-twice",
        "S5",
        "a tick that has its run gets another",
        It("contract::store::postgres::jobs::ticks_are_recorded_once_and_bring_their_job_forward"),
        "right: Recorded { opened: [], duplicates: 4 }",
    )
    .and(&[
        Model("ticks_that_are_not_compared_run_twice"),
    ]),
    row(
        "ticks.before-the-stores-clock",
        "S5",
        "a tick is run before its time, by a replica's clock",
        It(
            "contract::store::postgres::jobs::nothing_is_recorded_before_the_stores_clock_or_where_the_job_is_not_as_it_was_read",
        ),
        "the store's clock has not reached the run's due time",
    )
    .and(&[Model("ticks_that_are_not_compared_with_the_stores_clock_run_before_their_time")]),
    row(
        "ticks.mark-moved-first",
        "L3",
        "the mark of what was evaluated is moved before the run is in",
        It("fence::commit::a_mark_is_where_it_was_when_the_run_of_its_tick_could_not_be_written"),
        "the tick would never be looked at again",
    )
    .and(&[
        Model("evaluated_before_the_run_is_in_loses_a_tick"),
    ]),
    row(
        "misfire.grace-ignored",
        "L3",
        "a tick within its grace counts as missed",
        Unit("schedule::misfire::tests::a_tick_on_time_is_opened_with_its_lateness"),
        "assertion failed: !scan.more && !scan.misfired",
    )
    .and(&[Sim("mutants::mutants_that_the_simulator_sees_fall"), Model("mutants_of_the_product_fall")]),
    row(
        "halt.passed-over",
        "S6",
        "a halted election begins work",
        It("contract::store::postgres::refusals::a_halted_election_begins_nothing_and_still_records"),
        "left: Ok(Mine(\"Pulse",
    )
    .and(&[
        Model("a_fence_that_does_not_know_of_the_halt_settles_while_halted"),
        Sim("teeth::a_halt_that_is_not_in_force_is_noticed"),
    ]),
    row(
        "halt.keeps-outcomes-out",
        "S6",
        "a halted election does not record what had left before",
        It("contract::store::postgres::refusals::a_halted_election_begins_nothing_and_still_records"),
        "charge: Ok(Halted",
    ),
    row(
        "leave.halt-not-read-again",
        "S6",
        "the halt is not read again before the first byte",
        Unit("tenure::tests::a_halt_that_came_while_a_call_waited_at_the_gate_is_read_before_its_first_byte"),
        "left: Ok(())\n right: Err(NotSent)",
    )
    .and(&[
        It("operation::halting::calls_that_were_taken_and_not_sent_before_a_halt_are_put_back_and_made_after_the_resume"),
        Model("a_halt_that_is_not_read_again_sends_while_halted"),
    ]),
    // What others left.
    row(
        "recovery.sending-left-as-it-is",
        "S4 L4",
        "a promotion leaves `sending` what a lower term was sending",
        It(
            "contract::store::postgres::recovery::what_a_lower_term_left_on_the_wire_is_unknown_or_held_and_in_doubt_for_good",
        ),
        "left: 0\n right: 2",
    )
    .and(&[
        Model("a_promotion_that_keeps_what_is_sending_leaves_it_for_ever"),
    ]),
    row(
        "recovery.waits-for-a-time-out",
        "L2",
        "what a lower term left waits before it is taken up",
        It(
            "contract::store::postgres::recovery::what_a_lower_term_left_on_the_wire_is_unknown_or_held_and_in_doubt_for_good",
        ),
        "it waits for nothing: []",
    ),
    row(
        "recovery.run-never-set-aside",
        "L4",
        "a run that kills its leaders is taken up for ever",
        It(
            "contract::store::postgres::recovery::a_run_whose_leaders_die_three_times_without_progress_is_set_aside_and_others_go_on",
        ),
        "death 3\n  left: []",
    ),
    row(
        "batch.charged-without-halving",
        "L4",
        "a batch that fails is charged to a unit that did not fail alone",
        It("tenure::units::of_five_thousand_units_only_the_two_bad_ones_are_set_aside_after_the_configured_attempts"),
        "run 1 is complete_set_aside",
    )
    .and(&[Sim("mutants::mutants_that_the_simulator_sees_fall"), Unit("tenure::halving::tests::exactly_the_bad_units_end_alone_and_every_other_is_settled_once")]),
];
