//! The contract of the store's port, for every store: what each operation answers when all is well, that it may be repeated,
//! and what each of its conditions does when it is not met.
//!
//! A case gets a store of its own and knows nothing of which it is; after each the audit has to be clean. An adapter is a
//! [`Ground`] and a line at the end of this file. What only one store has (its locks, its sessions, its triggers) is tested
//! elsewhere.

mod bench;
mod calls;
mod fence;
mod four_eyes;
mod imports;
mod jobs;
mod ledger;
mod moving;
mod pauses;
mod payouts;
mod recovery;
mod refusals;
mod report;
mod requests;
mod stories;
mod unit_history;
mod units;
mod wishes;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bursar::clock;
use bursar::store::Store;
use bursar::store::memory::MemoryStore;
use bursar::store::postgres::{PgSettings, PgStore};
use chrono::{DateTime, TimeDelta};

use self::bench::{Bench, Ground};
use self::payouts::{doubts, holds, leaving, receivers, records, words};
use crate::desk::{Desk, Ground as _, SqliteFile};
use crate::support::Database;

struct PostgresGround;

#[async_trait(?Send)]
impl Ground for PostgresGround {
    async fn fresh(&self) -> Arc<dyn Store> {
        Desk::<Database>::migrated().await.store()
    }
}

struct SqliteGround;

#[async_trait(?Send)]
impl Ground for SqliteGround {
    async fn fresh(&self) -> Arc<dyn Store> {
        Desk::<SqliteFile>::migrated().await.store()
    }
}

/// A store in memory, on a clock that never stands still, so that whatever happens later is later.
struct MemoryGround;

impl MemoryGround {
    fn proving() -> MemoryStore {
        let last = Mutex::new(DateTime::UNIX_EPOCH);
        let clock = move || {
            let mut last = last.lock().expect("nobody panics with it");
            *last = clock::wall().max(*last + TimeDelta::microseconds(1));
            *last
        };
        MemoryStore::proving(Arc::new(clock), clock::random_id())
    }
}

#[async_trait(?Send)]
impl Ground for MemoryGround {
    async fn fresh(&self) -> Arc<dyn Store> {
        Arc::new(Self::proving())
    }
}

/// A test per case, on one adapter.
macro_rules! cases {
    ($ground:expr; $($part:ident: $($case:ident),+;)+) => {
        $(mod $part {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let bench = super::super::Bench::on(&$ground).await;
                super::super::$part::$case(&bench).await;
                bench.audit_is_clean().await;
                bench.store.close().await;
            })+
        })+
    };
}

/// All cases, on one adapter.
macro_rules! contract {
    ($adapter:ident, $ground:expr) => {
        mod $adapter {
            cases! { $ground;
                fence:
                    a_higher_term_is_accepted_a_lower_or_equal_one_lost,
                    repeating_an_advance_is_accepted_again_and_written_down_once,
                    of_two_leaders_at_one_term_exactly_one_is_accepted,
                    a_halt_is_told_to_whoever_advances_and_stays_through_changes_of_leader,
                    halting_and_resuming_say_what_they_found_and_are_written_down_each_time,
                    a_resume_says_what_it_accepted_and_a_halt_by_bursar_is_added_to_an_operators,
                    a_store_is_bound_to_one_coordinator_for_good,
                    the_first_note_of_a_kind_on_a_tenure_stays_and_an_unknown_one_is_left,
                    a_tenure_is_not_opened_on_a_store_that_forgot,
                    elections_are_apart;
                refusals:
                    an_old_term_is_refused_everything_and_changes_nothing,
                    the_same_term_of_another_tenure_is_refused_everything_and_changes_nothing,
                    another_term_of_the_same_tenure_is_refused_everything_and_changes_nothing,
                    a_higher_term_that_was_not_accepted_is_refused_everything_and_changes_nothing,
                    a_claim_on_an_election_that_nobody_led_is_refused_and_finds_nobody,
                    a_halted_election_begins_nothing_and_still_records,
                    a_tenure_that_has_ended_does_nothing_any_more,
                    nothing_begins_where_it_is_not_admitted_and_outcomes_are_recorded;
                jobs:
                    a_new_job_starts_at_the_stores_now_and_is_put_in_once,
                    a_job_changes_only_where_its_row_is_as_it_was_read,
                    a_changed_job_settles_what_the_old_one_owed_and_a_removed_one_can_come_back,
                    a_job_of_another_election_stays_there,
                    ticks_are_recorded_once_and_bring_their_job_forward,
                    a_job_whose_runs_pile_up_hides_no_other,
                    nothing_is_recorded_before_the_stores_clock_or_where_the_job_is_not_as_it_was_read,
                    ticks_of_many_jobs_go_in_together_each_with_an_answer_of_its_own;
                moving:
                    a_job_goes_over_as_it_is_and_the_ticks_to_come_with_it,
                    what_a_moved_job_had_open_stays_where_it_was_opened_and_later_runs_see_it,
                    what_was_asked_for_goes_over_with_its_job_and_a_retry_stays_with_its_run,
                    nothing_is_taken_from_an_election_that_is_halted_or_by_one_that_is;
                pauses:
                    a_pause_lasts_until_it_is_ended_and_each_is_written_down_once,
                    ticks_are_not_recorded_by_whoever_has_not_seen_the_pause,
                    a_pause_outlives_an_edit_and_a_removal;
                units:
                    planning_goes_page_by_page_in_byte_order_and_may_be_repeated,
                    a_run_without_units_ends_at_once,
                    a_batch_takes_units_in_their_order_and_names_its_cursor,
                    units_that_failed_are_taken_again_after_their_wait_and_set_aside_in_the_end,
                    a_wait_that_is_not_over_is_told_and_kept,
                    a_charge_counts_only_where_its_unit_is_as_expected;
                recovery:
                    a_run_whose_leaders_die_three_times_without_progress_is_set_aside_and_others_go_on,
                    a_run_whose_leaders_died_is_given_up_page_by_page_and_a_successor_goes_on,
                    a_run_that_cannot_be_planned_is_withdrawn_page_by_page_and_a_successor_goes_on,
                    neither_a_planned_end_nor_a_leader_that_lived_on_counts_as_a_death,
                    a_run_set_aside_while_it_was_planned_is_planned_again_by_a_retry,
                    what_a_lower_term_left_on_the_wire_is_unknown_or_held_and_in_doubt_for_good;
                calls:
                    a_call_is_taken_once_recorded_once_and_settles_its_unit,
                    a_try_is_recorded_only_where_it_is_the_one_on_the_wire,
                    what_was_not_sent_is_as_it_was_and_no_late_record_is_taken_for_the_next_try,
                    a_failure_is_charged_and_an_unknown_outcome_without_another_try_is_for_a_person,
                    a_later_term_finds_what_was_on_the_wire_and_an_earlier_one_records_nothing,
                    calls_that_nobody_has_in_hand_are_put_back_as_they_were_and_those_in_hand_are_not,
                    units_with_attempts_behind_them_come_after_fresh_ones,
                    a_calls_key_counts_from_the_first_try_that_left,
                    what_is_put_off_is_no_attempt_and_its_key_goes_on_counting,
                    a_persons_word_ends_what_no_program_can_settle;
                requests:
                    a_trigger_opens_one_manual_run_however_often_it_is_executed,
                    a_request_that_waits_is_listed_and_is_executed_or_withdrawn_never_both,
                    what_does_not_exist_cannot_be_asked_for,
                    a_manual_run_is_refused_where_its_job_is_another_or_its_cutoff_lies_ahead,
                    a_backfill_opens_a_run_for_each_of_its_ticks_or_none,
                    a_retry_sets_back_what_is_set_aside_and_nothing_else,
                    a_call_that_was_final_without_effect_is_retried_under_a_key_of_its_own,
                    a_held_call_of_a_receiver_that_is_idempotent_is_retried_under_its_key_and_in_doubt;
                stories:
                    a_term_is_told_with_what_it_found_did_and_was_refused,
                    an_act_that_looks_at_no_term_stands_in_the_story_of_the_one_that_was_in_force;
                wishes:
                    a_cordon_is_of_one_replica_put_once_lifted_once_and_written_down_each_time,
                    a_transfer_is_asked_of_the_term_in_force_and_means_nothing_to_the_next;
                ledger:
                    amounts_are_exact_in_every_currency_and_the_same_in_unit_and_instruction,
                    a_negative_net_is_carried_into_the_next_run_of_its_job_and_of_no_other,
                    what_a_job_carries_is_settled_by_it_whatever_it_selects_by_now,
                    below_the_minimum_is_carried_above_the_maximum_held_and_zero_settled,
                    what_is_not_available_before_the_cutoff_or_came_late_waits_for_the_next_run,
                    two_runs_that_have_one_merchant_bind_each_entry_once,
                    the_money_is_the_same_whatever_became_of_missed_ticks,
                    a_unit_whose_sums_leave_the_range_is_set_aside_alone_and_binds_nothing,
                    planning_pairs_goes_page_by_page_in_byte_order_as_the_definition_selects,
                    a_preview_is_what_runs_one_after_the_other_would_take_and_changes_nothing;
                report:
                    lines_unit_journal_instruction_and_report_agree_in_every_currency,
                    what_is_rejected_or_returned_is_carried_by_its_run_and_brought_into_the_next,
                    what_is_reverted_stays_in_the_run_that_settled_it_and_is_taken_off_the_next,
                    a_tick_without_a_run_has_no_report_and_one_without_money_an_empty_one;
                unit_history:
                    a_unit_shows_what_it_bound_what_was_posted_asked_and_done_about_it,
                    each_try_of_a_payout_has_a_row_with_its_term_and_its_outcome,
                    each_try_of_a_call_has_a_row_too;
                imports:
                    the_same_file_again_or_under_another_name_brings_nothing,
                    a_conflict_is_shown_with_both_contents_and_nothing_of_the_file_stays,
                    what_only_bursar_writes_is_refused_in_a_file,
                    an_import_taken_back_leaves_the_sums_as_before_and_its_ids_free,
                    what_is_taken_back_is_netted_by_the_job_that_settled_it_whatever_it_selects;
            }
        }
    };
}

/// All cases of payouts, on one adapter.
macro_rules! contract_of_payouts {
    ($adapter:ident, $ground:expr) => {
        mod $adapter {
            cases! { $ground;
                leaving:
                    a_payout_is_taken_once_under_its_first_key_and_bytes,
                    a_take_keeps_to_its_jobs_their_order_and_its_limit,
                    payouts_that_wait_are_told_and_taken_after_those_that_do_not,
                    a_take_without_an_answer_is_put_back_and_what_is_in_hand_is_not,
                    what_is_put_back_keeps_its_doubt_and_a_lower_terms_is_not_put_back,
                    whoever_is_not_in_force_takes_and_records_no_payout,
                    a_halted_election_sends_no_payout_and_records_what_had_left,
                    payouts_are_listed_as_the_filter_says;
                records:
                    what_is_paid_leaves_payout_clearing_for_the_bank_once,
                    a_rejected_net_comes_back_once_and_is_paid_by_the_next_run_under_another_key,
                    a_payout_is_recorded_only_where_its_try_is_the_one_on_the_wire,
                    what_was_put_back_and_never_left_has_a_key_that_has_not_begun_to_count,
                    what_left_and_was_proved_undone_keeps_the_time_of_its_first_try,
                    an_error_is_kept_within_its_bound,
                    a_mismatch_is_in_doubt_and_for_a_person;
                doubts:
                    nothing_in_doubt_is_reversed_and_no_doubt_is_forgotten,
                    a_doubt_that_is_paid_in_the_end_is_still_on_record,
                    past_the_validity_of_its_key_nothing_in_doubt_is_sent,
                    an_edit_that_shortens_the_validity_counts_from_the_first_try,
                    an_unknown_outcome_of_a_receiver_that_is_not_idempotent_is_for_a_person,
                    what_a_lower_term_was_sending_is_in_doubt_and_asked_for_or_sent_again_where_it_can_be,
                    no_doubt_moves_to_another_receiver,
                    no_doubt_moves_to_another_path_of_its_receiver,
                    an_edit_makes_no_doubt_idempotent,
                    what_is_not_idempotent_any_more_is_not_sent_again,
                    a_doubt_is_asked_for_where_it_can_be_and_never_sent_again_where_that_could_pay_twice,
                    an_idempotent_receiver_that_can_be_asked_is_asked_first,
                    past_the_validity_of_its_key_a_doubt_is_asked_for_one_last_time;
                receivers:
                    a_stopped_receiver_is_tried_with_one_payout_per_wait_and_goes_on_when_it_works,
                    a_stop_is_on_record_and_stops_one_receiver_only,
                    the_waits_of_a_stopped_receiver_grow_to_the_longest,
                    a_wait_that_is_over_lets_one_be_tried_and_one_that_is_held_uses_up_no_wait,
                    only_what_was_recorded_stops_a_receiver,
                    too_many_refusals_in_a_row_stop_a_receiver_until_it_is_resumed,
                    a_resume_ends_a_stop_that_ends_by_itself_and_counts_refusals_anew,
                    only_what_was_sent_and_answered_counts_as_refused_or_paid,
                    calls_are_kept_from_a_stopped_receiver_and_stop_it_by_the_same_rules;
                words:
                    what_is_held_is_paid_by_a_persons_word_and_stays_in_doubt,
                    what_was_not_paid_comes_back_by_the_banks_word_or_once_its_key_is_no_longer_valid,
                    what_the_bank_sent_back_comes_back_as_a_carry_once,
                    a_word_is_taken_while_the_election_is_halted_and_of_what_waits,
                    what_was_surely_never_sent_was_not_paid,
                    nobody_says_of_what_others_may_have_taken_that_it_was_never_sent,
                    a_stop_that_was_an_answer_is_no_proof_that_nothing_was_sent;
                holds:
                    payouts_that_wait_for_a_release_leave_after_it,
                    what_is_held_for_its_amount_leaves_once_it_is_released_by_name,
                    what_was_left_in_the_store_is_sent_only_once_it_is_released_by_name,
                    an_amount_above_the_maximum_now_is_held_where_it_was_never_tried,
                    nothing_pending_of_a_merchant_on_hold_is_sent,
                    a_hold_keeps_a_doubt_and_its_end_frees_only_what_it_held,
                    a_merchant_on_hold_gets_no_unit_and_one_that_it_has_binds_nothing,
                    the_oldest_payout_that_could_be_sent_is_told;
            }
        }
    };
}

/// A test per case, on one adapter as two roles have it.
macro_rules! contract_of_four_eyes {
    ($adapter:ident, $pair:path; $($case:ident),+ $(,)?) => {
        mod $adapter {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let (store, other) = $pair().await;
                let bench = super::Bench::of(store);
                let pair = super::four_eyes::Pair { bench: &bench, other };
                super::four_eyes::$case(&pair).await;
                bench.audit_is_clean().await;
                pair.other.close().await;
                bench.store.close().await;
            })+
        }
    };
    ($($adapter:ident: $pair:path),+ $(,)?) => {
        $(contract_of_four_eyes! { $adapter, $pair;
            a_word_waits_for_another_role_and_is_carried_out_once,
            what_is_tried_on_while_its_word_waits_is_still_as_it_was_asked,
            what_is_tried_again_after_somebody_found_it_undone_is_not_what_was_found,
            a_word_on_a_call_waits_for_another_role_too,
            what_is_not_as_it_was_asked_is_refused_and_both_are_shown,
            a_release_lets_go_what_was_asked_and_nothing_that_came_since,
            an_import_is_taken_back_by_two_and_only_as_it_was_seen,
            their_end_waits_for_two_and_no_client_leaves_them_out,
        })+
    };
}

/// A database, as its owner and as another role that an operator has.
async fn two_roles() -> (Arc<dyn Store>, Arc<dyn Store>) {
    let database = Desk::<Database>::migrated().await;
    let other = database.as_second_role().await;
    let settings = PgSettings { url: other.into(), replica: "second".to_owned(), ..PgSettings::default() };
    (database.store(), Arc::new(PgStore::new(&settings).expect("the address is ours")))
}

/// A store in memory, as two replicas have it.
#[expect(clippy::unused_async, reason = "the other ground's way waits for a server")]
async fn two_replicas() -> (Arc<dyn Store>, Arc<dyn Store>) {
    let store = MemoryGround::proving();
    let other = store.seen_by("second");
    (Arc::new(store), Arc::new(other))
}

contract!(postgres, super::super::PostgresGround);
contract!(sqlite, super::super::SqliteGround);
contract!(memory, super::super::MemoryGround);
contract_of_payouts!(payouts_on_postgres, super::super::PostgresGround);
contract_of_payouts!(payouts_on_sqlite, super::super::SqliteGround);
contract_of_payouts!(payouts_in_memory, super::super::MemoryGround);
contract_of_four_eyes!(four_eyes_on_postgres: super::two_roles, four_eyes_in_memory: super::two_replicas);
