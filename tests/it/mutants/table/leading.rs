//! Of leading: who leads, what the fence refuses, and what goes on after it.

use super::Test::{It, Model, Sim, Unit};
use super::{Mutant, row};

/// All of them.
pub const ROWS: &[Mutant] = &[
    // The coordinator issues a term once.
    row(
        "term.from-the-clock",
        "S1 S2",
        "a term is the time, not one more than the last",
        Unit("leadership::machine::tests::electing::the_term_is_above_both_the_coordinators_and_the_fences"),
        "left: Term(1)\n right: Term(4)",
    )
    .and(&[
        Model("a_term_from_a_clock_is_issued_twice"),
        Model("mutants_of_the_product_fall"),
    ]),
    row(
        "etcd.term-key-not-compared",
        "S1",
        "a campaign does not compare the term key that it read",
        It("contract::coordinator::etcd_issues_no_term_to_who_has_not_seen_the_last_one"),
        "expected a loss, found Won",
    ),
    row(
        "record.lease-not-compared",
        "S1",
        "a record with one's id is one's own on whatever lease",
        Unit("leadership::machine::tests::electing::a_record_is_ones_own_only_with_ones_id_and_ones_live_lease"),
        "me on 4c",
    )
    .and(&[Model("mutants_of_the_product_fall")]),
    row(
        "campaign.unknown-taken-for-lost",
        "S1 L1",
        "a campaign without an answer counts as lost, and nobody looks",
        Unit("leadership::machine::tests::electing::an_unknown_campaign_is_settled_by_reading_and_a_win_is_taken_up"),
        "no read of settlement in",
    )
    .and(&[Model("mutants_of_the_product_fall")]),
    row(
        "etcd.resigns-anothers-win",
        "S1",
        "resigning deletes the leader key, whoever has won it",
        It("contract::coordinator::etcd_resigns_only_ones_own_win"),
        "another's key was deleted",
    )
    .and(&[
        Model("a_resignation_that_deletes_anothers_key_makes_two_lead"),
    ]),
    row(
        "resign.revokes-the-lease",
        "L1",
        "the end of one tenure revokes the lease of all",
        It("leadership::sessions::a_leader_key_deleted_by_hand_ends_the_tenure_and_not_the_session"),
        "left: Some(LeaseId(",
    )
    .and(&[Sim("mutants::mutants_that_the_simulator_sees_fall"), Unit("leadership::machine::tests::ending::of_two_elections_one_is_lost_and_the_other_goes_on")]),
    row(
        "resign.leaves-the-key",
        "L1",
        "whoever resigns leaves its key, and others wait for the lease to lapse",
        Unit(
            "leadership::machine::tests::ending::draining_ends_as_planned_then_deletes_the_key_then_revokes_then_leaves",
        ),
        "no resignation in",
    )
    .and(&[Model("mutants_of_the_product_fall")]),
    // The session ends here before the lease does there.
    row(
        "session.deadline-counted-from-the-answer",
        "S7",
        "the deadline is counted from a renewal's answer, not from its sending",
        Unit("leadership::machine::tests::session::the_window_is_counted_from_the_moment_before_the_sending"),
        "deadline: Moment(5300000000)",
    )
    .and(&[
        Model("mutants_of_the_product_fall"),
    ]),
    row(
        "session.saved-by-a-late-answer",
        "S7",
        "an answer that comes after the deadline saves the session",
        Unit("leadership::machine::tests::session::an_answer_at_the_deadline_itself_comes_too_late"),
        "left: []\n right: [(\"settlement\", Abrupt, SessionLost)]",
    )
    .and(&[Model("mutants_of_the_product_fall")]),
    row(
        "etcd.keepalive-queued-taken-for-answered",
        "S7",
        "a keepalive that was queued counts as answered",
        It("contract::coordinator::etcd_calls_a_lease_gone_as_soon_as_it_is_revoked"),
        "left: Renewed { ttl: 30s }\n right: Gone",
    ),
    row(
        "gate.open-while-suspect",
        "S7",
        "a session in doubt begins new work",
        Unit("leadership::gate::tests::a_process_that_was_stopped_is_told_no_before_any_thread_noticed"),
        "left: Ok(())\n right: Err(Held)",
    )
    .and(&[Model("a_gate_that_is_open_while_the_session_is_in_doubt_lets_a_tenure_begin_something")]),
    row(
        "workers.stuck-for-ever",
        "L1",
        "a replica that renews and does nothing lives on",
        Unit("leadership::machine::tests::session::workers_that_do_not_beat_for_three_ttls_end_the_process"),
        "left: false\n right: true",
    )
    .and(&[Model("mutants_of_the_product_fall")]),
    // The fence.
    row(
        "fence.read-without-its-lock",
        "S2",
        "the fence is read without the election's shared lock",
        It("fence::interleavings::a_stale_batch_that_waits_on_a_units_row_commits_nothing"),
        "Ok(Mine(Settled(BatchCounts { settled: 3",
    )
    .and(&[
        It("fence::interleavings::under_repeatable_read_as_the_roles_default_a_transaction_that_waited_is_still_fenced"),
        Model("a_fence_that_is_read_without_its_lock_lets_a_left_claim_write"),
        Sim("teeth::a_fence_that_lets_everybody_in_is_noticed"),
    ]),
    row(
        "fence.behind-a-savepoint",
        "S2",
        "the fence is entered behind a savepoint, whose rollback gives its lock back",
        It("fence::interleavings::a_stale_batch_that_waits_on_a_units_row_commits_nothing"),
        "Ok(Mine(Settled(BatchCounts { settled: 3",
    )
    .and(&[
        Model("a_savepoint_before_the_fence_gives_the_lock_back"),
    ]),
    row(
        "fence.tenure-not-compared",
        "S1 S2",
        "the term of another tenure is let in",
        It(
            "contract::store::postgres::refusals::the_same_term_of_another_tenure_is_refused_everything_and_changes_nothing",
        ),
        "left: Ok(Mine(\"Pulse",
    )
    .and(&[
        Model("a_term_without_its_tenure_is_accepted_twice"),
    ]),
    row(
        "advance.tenure-not-compared",
        "S1",
        "a term that another tenure has put in force is accepted once more",
        It("contract::store::postgres::fence::of_two_leaders_at_one_term_exactly_one_is_accepted"),
        "[Accepted { halt: None }, Accepted { halt: None }]",
    )
    .and(&[
        Model("a_term_without_its_tenure_is_accepted_twice"),
    ]),
    row(
        "advance.waits-for-nobody",
        "S2",
        "the advance does not take the exclusive lock",
        It("fence::interleavings::an_advance_waits_for_a_holder_that_it_may_not_end_and_sees_all_that_it_wrote"),
        "the gate is held: Ok(Accepted",
    ),
    row(
        "advance.ends-no-holder",
        "L1",
        "a takeover waits for a stopped leader to let go of the fence",
        It("fence::advance::a_holder_idle_in_its_transaction_is_ended"),
        "an answer: TimedOut { operation: \"advance\"",
    )
    .and(&[
        Model("an_advance_that_ends_nobody_waits_for_who_is_paused"),
    ]),
    row(
        "advance.ends-no-exclusive-holder",
        "L1",
        "a takeover waits for an operator's command that stands still with the fence in hand",
        It("fence::advance::an_exclusive_holder_is_ended_only_after_a_second"),
        "an answer: TimedOut { operation: \"advance\"",
    )
    .and(&[Model("an_advance_that_ends_no_exclusive_holder_waits_for_who_is_paused")]),
    row(
        "sqlite.tenure-not-compared",
        "S1 S2",
        "on SQLite the term of another tenure is let in",
        Unit("store::sqlite::tx::tests::the_fence_answers_by_term_and_tenure_and_halt"),
        "a halt hides no refusal",
    )
    .and(&[
        Model("a_term_without_its_tenure_is_accepted_twice"),
    ]),
    row(
        "fenced.taken-for-nothing-due",
        "S2 S7",
        "a tenure that is refused goes on as if nothing were due",
        Unit("tenure::tests::a_refusal_by_the_fence_ends_the_tenure_whatever_was_asked"),
        "it is not that nothing is due",
    )
    .and(&[
        Model("fenced_taken_for_nothing_due_leaves_a_leader_that_does_nothing"),
    ]),
    row(
        "store.forgetting-not-noticed",
        "S2",
        "a store that was set back is led on as if nothing had happened",
        It("tenure::promotion::a_store_that_forgot_is_halted_and_only_a_resume_makes_it_the_baseline"),
        "\nhalted\n",
    )
    .and(&[Unit("tenure::accepted::tests::each_way_of_forgetting_is_named")]),
    // Nothing goes on.
    row(
        "leave.gate-only-before-the-commit",
        "S7",
        "the gate is asked before `sending` is committed, and not after",
        Unit("tenure::tests::a_call_that_was_committed_does_not_leave_once_the_session_is_lost"),
        "left: Ok(())\n right: Err(NotSent)",
    )
    .and(&[
        Model("a_gate_before_the_commit_lets_a_tenure_send_that_is_over"),
    ]),
    row(
        "gate.not-asked-before-begin",
        "S7",
        "what waited for a connection begins, whatever became of the session",
        It("fence::admission::what_waited_for_a_connection_begins_only_once_the_session_is_live"),
        "it began while the session was suspect",
    ),
    row(
        "demotion.overrun-tolerated",
        "S7",
        "a tenure that does not end in time is waited for",
        Unit(
            "leadership::machine::tests::ending::an_abrupt_end_that_is_not_reported_within_the_budget_ends_the_process",
        ),
        "TeardownOverran",
    )
    .and(&[
        Model("mutants_of_the_product_fall"),
    ]),
    row(
        "demotion.sessions-left",
        "S7",
        "the sessions of a tenure are not ended on the server",
        It("fence::sessions::the_end_of_a_tenure_ends_its_sessions_whatever_they_do"),
        "SessionsEnded { terminated: 0",
    )
    .and(&[
        It("fence::sessions::fifty_tenures_leave_no_session"),
    ]),
    row(
        "timers.left-running",
        "S7",
        "the timers go on after the demotion",
        Unit("tenure::timers::tests::a_timer_fires_before_its_tick_and_only_the_last_arming_counts"),
        "nothing fires after the end",
    ),
    row(
        "command.outlives-its-tenure",
        "S7",
        "a program goes on after the demotion",
        It("outside::processes::the_end_of_a_tenure_and_a_dropped_call_kill_the_tree"),
        "left: (TimedOut, [])\n right: (Abandoned, [])",
    ),
    row(
        "command.outlives-its-replica",
        "S7",
        "a program goes on when its replica was killed",
        It("outside::processes::a_parent_that_is_killed_leaves_nothing_behind"),
        "in vain: nothing of the tree is alive",
    ),
    row(
        "command.outlives-its-lease",
        "S7",
        "a program goes on past the lease of a replica that is stopped",
        It("outside::processes::a_parent_that_is_stopped_leaves_nothing_behind_once_its_lease_is_over"),
        "in vain: nothing of the tree is alive",
    ),
];
