//! Statements that break a store, each with the check that must report it. Triggers, checks and foreign keys are off for
//! them.

use crate::desk::Ground;

/// What breaks this kind of store.
pub fn of<D: Ground>() -> &'static [(&'static str, &'static str)] {
    if D::words("postgres", "sqlite") == "postgres" { ON_POSTGRES } else { ON_SQLITE }
}

/// A run that is opened now, like the newest.
pub const RUN_ON_POSTGRES: &str = "insert into bursar.run (job_id, job, election, kind, tick, due_at, cutoff_at, value_date, definition, fingerprint, state, opened_term)
    select job_id, job, election, kind, tick - interval '1 day', due_at, cutoff_at, value_date, definition, fingerprint, 'planning', opened_term
      from bursar.run order by id desc limit 1";
pub const RUN_ON_SQLITE: &str = "insert into run (job_id, job, election, kind, tick, due_at, cutoff_at, value_date, definition, fingerprint, state, opened_term,
      opened_at, fenced_seq)
    select job_id, job, election, kind, tick - 86400000000, due_at, cutoff_at, value_date, definition, fingerprint, 'planning', opened_term,
           (select max(at) + 1 from operator_act where action = 'halt'), fenced_seq
      from run order by id desc limit 1";

/// A batch of the newest run that sets a unit aside, and one that settles.
pub const BATCHES_ON_POSTGRES: &str =
    "insert into bursar.batch (run_id, election, term, units, settled, carried, empty, set_aside, instructions)
    select r.id, r.election, r.opened_term, 1, 0, e.carried, 0, 1 - e.carried, 0
      from (select * from bursar.run order by id desc limit 1) r, (values (0), (1)) e (carried)";
pub const BATCHES_ON_SQLITE: &str = "insert into batch (run_id, election, term, units, settled, carried, empty, set_aside, instructions, committed_at, fenced_seq)
    select r.id, r.election, r.opened_term, 1, 0, e.value, 0, 1 - e.value, 0, r.opened_at, r.fenced_seq
      from (select * from run order by id desc limit 1) r, json_each('[0, 1]') e";

/// A call that was first sent just after the last halt.
pub const SENT_ON_POSTGRES: &str = "update bursar.instruction
    set first_sent_at = (select max(at) + interval '1 microsecond' from bursar.operator_act where action = 'halt') where merchant = 'rich'";
pub const SENT_ON_SQLITE: &str = "update instruction
    set first_sent_at = (select max(at) + 1 from operator_act where action = 'halt') where merchant = 'rich'";

const ON_POSTGRES: &[(&str, &str)] = &[
    (
        "one_tenure_per_term",
        "insert into bursar.term_history (election, term, tenure_id, replica, host, version, system_identifier, timeline)
         select election, term, gen_random_uuid(), 'x', 'x', 'x', system_identifier, timeline from bursar.term_history where term = 1",
    ),
    ("fence_is_highest", "update bursar.fence set term = 1"),
    ("fence_is_highest", "update bursar.fence set tenure_id = gen_random_uuid()"),
    ("fence_is_highest", "delete from bursar.fence"),
    (
        "no_stale_write",
        "insert into bursar.batch (run_id, election, term, units, settled, carried, empty, set_aside, instructions)
         select run_id, election, 1, 0, 0, 0, 0, 0, 0 from bursar.batch limit 1",
    ),
    ("no_stale_write", "update bursar.instruction set xact = pg_current_xact_id() where term = 1"),
    ("no_stale_write", "update bursar.journal set xact = pg_current_xact_id() where term = 1"),
    ("no_stale_write", "update bursar.unit set xact = pg_current_xact_id() where term = 1"),
    ("no_stale_write", "update bursar.run set xact = pg_current_xact_id() where opened_term = 1"),
    ("settled_has_its_effect", "delete from bursar.instruction where merchant = 'rich'"),
    ("settled_has_its_effect", "update bursar.instruction set amount = amount + 1 where merchant = 'rich'"),
    ("settled_has_its_effect", "update bursar.instruction set currency = 'USD' where merchant = 'rich'"),
    ("settled_has_its_effect", "delete from bursar.journal"),
    ("settled_has_its_effect", "update bursar.unit set state = 'settled', net = 0, ended_at = now() where state = 'pending'"),
    ("unended_has_no_effect", "update bursar.unit set state = 'pending', ended_at = null where merchant = 'rich'"),
    ("unended_has_no_effect", "update bursar.unit set state = 'set_aside' where merchant = 'rich' and state = 'settled'"),
    ("carried_has_its_carry", "delete from bursar.entry where kind = 'carry'"),
    ("carried_has_its_carry", "update bursar.entry set amount = amount - 1 where kind = 'carry'"),
    ("carried_has_its_carry", "update bursar.unit set state = 'empty' where state = 'carried'"),
    (
        "entries_have_one_home",
        "update bursar.entry set unit_id = (select max(id) from bursar.unit where state = 'pending' and merchant = 'late') where merchant = 'late'",
    ),
    (
        "entries_have_one_home",
        "update bursar.entry set unit_id = (select max(id) from bursar.unit where state = 'settled' and merchant = 'rich') where merchant = 'late'",
    ),
    ("entries_have_one_home", "update bursar.entry set unit_id = 999999 where merchant = 'late'"),
    (
        "entries_have_one_home",
        "drop index bursar.entry_one_per_source_and_id;
         insert into bursar.entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, import_id)
         select source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, import_id
           from bursar.entry where merchant = 'late'",
    ),
    ("nets_follow_from_entries", "update bursar.entry set amount = amount + 1 where merchant = 'rich'"),
    ("nets_follow_from_entries", "update bursar.entry set fee = fee + 1 where merchant = 'rich'"),
    ("nets_follow_from_entries", "update bursar.entry set unit_id = null where merchant = 'rich'"),
    ("nets_follow_from_entries", "update bursar.unit set net = net + 1 where merchant = 'rich'"),
    ("nets_follow_from_entries", "update bursar.posting set amount = amount + 1 where debit_owner = 'rich' or credit_owner = 'rich'"),
    ("nets_follow_from_entries", "update bursar.posting set debit_owner = 'stripe' where debit_kind = 'source_clearing' and credit_owner = 'rich'"),
    (
        "keys_are_unique",
        "alter table bursar.instruction drop constraint instruction_key_is_unique,
           drop constraint instruction_one_per_unit_and_kind;
         insert into bursar.instruction (unit_id, run_id, job_id, election, kind, idempotency_key, merchant, currency, amount, body, term)
         select unit_id, run_id, job_id, election, kind, idempotency_key, merchant, currency, amount, body, term
           from bursar.instruction where merchant = 'rich'",
    ),
    ("keys_are_derived", "update bursar.instruction set idempotency_key = 'b' || repeat('a', 26) where merchant = 'rich'"),
    ("keys_are_derived", "update bursar.instruction set body = convert_to('{}', 'UTF8') where merchant = 'rich'"),
    ("keys_are_derived", "update bursar.deployment set deployment_id = gen_random_uuid()"),
    (
        "sending_is_current",
        "update bursar.instruction set state = 'sending', sending_term = 1, attempts = 1, first_sent_at = now() where merchant = 'rich'",
    ),
    ("doubt_is_kept", "update bursar.instruction set state = 'unknown' where merchant = 'rich'"),
    ("doubt_is_kept", "update bursar.instruction set state = 'pending', in_doubt = true where merchant = 'rich'"),
    ("doubt_is_kept", "update bursar.instruction set state = 'rejected', final_at = now(), in_doubt = true where merchant = 'rich'"),
    (
        "one_run_per_tick",
        "drop index bursar.run_one_per_job_and_tick;
         insert into bursar.run (job_id, job, election, kind, tick, due_at, cutoff_at, value_date, definition, fingerprint, state, opened_term)
         select job_id, job, election, kind, tick, due_at, cutoff_at, value_date, definition, fingerprint, state, opened_term
           from bursar.run limit 1",
    ),
    (
        "one_run_per_tick",
        "drop index bursar.unit_one_per_run_and_key;
         insert into bursar.unit (run_id, election, key) select run_id, election, key from bursar.unit limit 1",
    ),
    (
        "run_is_not_early",
        "alter table bursar.run drop constraint run_is_not_early; update bursar.run set opened_at = due_at - interval '1 second'",
    ),
    ("run_is_not_early", "update bursar.run set state = 'complete' where state = 'open'"),
    ("journals_balance", "update bursar.posting set currency = 'USD' where debit_owner = 'rich'"),
    ("journals_balance", "update bursar.posting set amount = amount + 1 where debit_owner = 'rich'"),
    ("journals_balance", "delete from bursar.posting where debit_owner = 'rich' or credit_owner = 'rich'"),
    ("journals_balance", "update bursar.posting set debit_owner = 'poor' where debit_owner = 'rich'"),
    ("payable_is_zero", "delete from bursar.posting where debit_owner = 'rich'"),
    ("payable_is_zero", "update bursar.posting set amount = amount - 1 where credit_owner = 'rich'"),
    ("carry_equals_open_carries", "update bursar.entry set amount = amount - 1 where kind = 'carry' and unit_id is null"),
    ("carry_equals_open_carries", "delete from bursar.posting where credit_kind = 'carry' or debit_kind = 'carry'"),
    ("finals_are_posted", "update bursar.instruction set state = 'paid', final_at = now() where merchant = 'rich'"),
    (
        "finals_are_posted",
        "insert into bursar.journal (unit_id, run_id, kind, generation, election, term)
         select unit_id, run_id, 'paid', generation, election, term from bursar.instruction where merchant = 'rich'",
    ),
    (
        "finals_are_posted",
        "insert into bursar.entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, job_id)
         select 'bursar', 'rejected:' || unit_id || ':' || generation, merchant, currency, 'carry', amount, 0, created_at, created_at, job_id
           from bursar.instruction where merchant = 'rich'",
    ),
    ("payout_clearing_equals_unfinal", "update bursar.instruction set state = 'paid', final_at = now() where merchant = 'rich'"),
    ("payout_clearing_equals_unfinal", "delete from bursar.instruction where merchant = 'rich'"),
    ("merchants_add_up", "delete from bursar.entry where merchant = 'rich'"),
    ("merchants_add_up", "update bursar.instruction set state = 'rejected', final_at = now() where merchant = 'rich'"),
    ("merchants_add_up", "delete from bursar.posting where credit_kind = 'fees'"),
    ("reverts_are_whole", "update bursar.entry set withdrawn_at = now() where merchant = 'late'"),
    ("reverts_are_whole", "update bursar.entry set reverted_at = now() where merchant = 'rich'"),
    ("reverts_are_whole", "update bursar.entry set reverted_at = now() where merchant = 'late'"),
    ("reverts_are_whole", "update bursar.entry set reverted_at = null where external_id = 'w1'"),
    ("reverts_are_whole", "update bursar.entry set job_id = null where external_id like 'revert:%'"),
    ("reverts_are_whole", "update bursar.entry set external_id = 'revert:0:0' where external_id like 'revert:%'"),
    ("reverts_are_whole", "update bursar.import set reverted_at = null where reverted_at is not null"),
    ("reverts_are_whole", "update bursar.import set reverted_at = now() where reverted_at is null"),
    ("reverts_are_whole", "delete from bursar.operator_act where action = 'imports revert'"),
    ("reverts_are_whole", "update bursar.operator_act set target = '0' where action = 'imports revert'"),
];

const ON_SQLITE: &[(&str, &str)] = &[
    (
        "one_tenure_per_term",
        "insert into term_history (election, term, tenure_id, replica, host, version, accepted_at, fenced_seq,
           system_identifier, timeline)
         select election, term, '00000000-0000-4000-8000-000000000001', 'x', 'x', 'x', accepted_at, fenced_seq, system_identifier, timeline
           from term_history where term = 1",
    ),
    ("fence_is_highest", "update fence set term = 1"),
    ("fence_is_highest", "update fence set tenure_id = '00000000-0000-4000-8000-000000000001'"),
    ("fence_is_highest", "delete from fence"),
    (
        "no_stale_write",
        "insert into batch (run_id, election, term, units, settled, carried, empty, set_aside, instructions, committed_at, fenced_seq)
         select b.run_id, b.election, 1, 0, 0, 0, 0, 0, 0, b.committed_at, s.value from batch b, fenced_seq s limit 1",
    ),
    ("no_stale_write", "update instruction set fenced_seq = (select value from fenced_seq) where term = 1"),
    ("no_stale_write", "update journal set fenced_seq = (select value from fenced_seq) where term = 1"),
    ("no_stale_write", "update unit set fenced_seq = (select value from fenced_seq) where term = 1"),
    ("no_stale_write", "update run set fenced_seq = (select value from fenced_seq) where opened_term = 1"),
    ("settled_has_its_effect", "delete from instruction where merchant = 'rich'"),
    ("settled_has_its_effect", "update instruction set amount = amount + 1 where merchant = 'rich'"),
    ("settled_has_its_effect", "update instruction set currency = 'USD' where merchant = 'rich'"),
    ("settled_has_its_effect", "delete from journal"),
    ("settled_has_its_effect", "update unit set state = 'settled', net = 0, ended_at = (select now from clock) where state = 'pending'"),
    ("unended_has_no_effect", "update unit set state = 'pending', ended_at = null where merchant = 'rich'"),
    ("unended_has_no_effect", "update unit set state = 'set_aside' where merchant = 'rich' and state = 'settled'"),
    ("carried_has_its_carry", "delete from entry where kind = 'carry'"),
    ("carried_has_its_carry", "update entry set amount = amount - 1 where kind = 'carry'"),
    ("carried_has_its_carry", "update unit set state = 'empty' where state = 'carried'"),
    (
        "entries_have_one_home",
        "update entry set unit_id = (select max(id) from unit where state = 'pending' and merchant = 'late') where merchant = 'late'",
    ),
    (
        "entries_have_one_home",
        "update entry set unit_id = (select max(id) from unit where state = 'settled' and merchant = 'rich') where merchant = 'late'",
    ),
    ("entries_have_one_home", "update entry set unit_id = 999999 where merchant = 'late'"),
    (
        "entries_have_one_home",
        "drop index entry_one_per_source_and_id;
         insert into entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, import_id)
         select source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, import_id
           from entry where merchant = 'late'",
    ),
    ("nets_follow_from_entries", "update entry set amount = amount + 1 where merchant = 'rich'"),
    ("nets_follow_from_entries", "update entry set fee = fee + 1 where merchant = 'rich'"),
    ("nets_follow_from_entries", "update entry set unit_id = null where merchant = 'rich'"),
    ("nets_follow_from_entries", "update unit set net = net + 1 where merchant = 'rich'"),
    ("nets_follow_from_entries", "update posting set amount = amount + 1 where debit_owner = 'rich' or credit_owner = 'rich'"),
    ("nets_follow_from_entries", "update posting set debit_owner = 'stripe' where debit_kind = 'source_clearing' and credit_owner = 'rich'"),
    (
        "keys_are_unique",
        "drop index instruction_key_is_unique; drop index instruction_one_per_unit_and_kind;
         insert into instruction (unit_id, run_id, job_id, election, kind, idempotency_key, merchant, currency, amount, body, term,
           created_at, fenced_seq)
         select unit_id, run_id, job_id, election, kind, idempotency_key, merchant, currency, amount, body, term, created_at,
           fenced_seq
           from instruction where merchant = 'rich'",
    ),
    ("keys_are_derived", "update instruction set idempotency_key = 'b' || 'aaaaaaaaaaaaaaaaaaaaaaaaaa' where merchant = 'rich'"),
    ("keys_are_derived", "update instruction set body = x'7b7d' where merchant = 'rich'"),
    ("keys_are_derived", "update deployment set deployment_id = '00000000-0000-4000-8000-000000000001'"),
    (
        "sending_is_current",
        "update instruction set state = 'sending', sending_term = 1, attempts = 1, first_sent_at = (select now from clock) where merchant = 'rich'",
    ),
    ("doubt_is_kept", "update instruction set state = 'unknown' where merchant = 'rich'"),
    ("doubt_is_kept", "update instruction set state = 'pending', in_doubt = 1 where merchant = 'rich'"),
    ("doubt_is_kept", "update instruction set state = 'rejected', final_at = (select now from clock), in_doubt = 1 where merchant = 'rich'"),
    (
        "one_run_per_tick",
        "drop index run_one_per_job_and_tick;
         insert into run (job_id, job, election, kind, tick, due_at, cutoff_at, value_date, definition, fingerprint, state,
           opened_term, opened_at, fenced_seq)
         select job_id, job, election, kind, tick, due_at, cutoff_at, value_date, definition, fingerprint, state, opened_term,
           opened_at, fenced_seq
           from run limit 1",
    ),
    (
        "one_run_per_tick",
        "drop index unit_one_per_run_and_key;
         insert into unit (run_id, election, key) select run_id, election, key from unit limit 1",
    ),
    (
        "run_is_not_early",
        "update run set opened_at = due_at - 1000000",
    ),
    ("run_is_not_early", "update run set state = 'complete' where state = 'open'"),
    ("journals_balance", "update posting set currency = 'USD' where debit_owner = 'rich'"),
    ("journals_balance", "update posting set amount = amount + 1 where debit_owner = 'rich'"),
    ("journals_balance", "delete from posting where debit_owner = 'rich' or credit_owner = 'rich'"),
    ("journals_balance", "update posting set debit_owner = 'poor' where debit_owner = 'rich'"),
    ("payable_is_zero", "delete from posting where debit_owner = 'rich'"),
    ("payable_is_zero", "update posting set amount = amount - 1 where credit_owner = 'rich'"),
    ("carry_equals_open_carries", "update entry set amount = amount - 1 where kind = 'carry' and unit_id is null"),
    ("carry_equals_open_carries", "delete from posting where credit_kind = 'carry' or debit_kind = 'carry'"),
    ("finals_are_posted", "update instruction set state = 'paid', final_at = (select now from clock) where merchant = 'rich'"),
    (
        "finals_are_posted",
        "insert into journal (unit_id, run_id, kind, generation, election, term, posted_at, fenced_seq)
         select unit_id, run_id, 'paid', generation, election, term, created_at, fenced_seq from instruction where merchant = 'rich'",
    ),
    (
        "finals_are_posted",
        "insert into entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, job_id)
         select 'bursar', 'rejected:' || unit_id || ':' || generation, merchant, currency, 'carry', amount, 0, created_at, created_at, job_id
           from instruction where merchant = 'rich'",
    ),
    ("payout_clearing_equals_unfinal", "update instruction set state = 'paid', final_at = (select now from clock) where merchant = 'rich'"),
    ("payout_clearing_equals_unfinal", "delete from instruction where merchant = 'rich'"),
    ("merchants_add_up", "delete from entry where merchant = 'rich'"),
    ("merchants_add_up", "update instruction set state = 'rejected', final_at = (select now from clock) where merchant = 'rich'"),
    ("merchants_add_up", "delete from posting where credit_kind = 'fees'"),
    ("reverts_are_whole", "update entry set withdrawn_at = (select now from clock) where merchant = 'late'"),
    ("reverts_are_whole", "update entry set reverted_at = (select now from clock) where merchant = 'rich'"),
    ("reverts_are_whole", "update entry set reverted_at = (select now from clock) where merchant = 'late'"),
    ("reverts_are_whole", "update entry set reverted_at = null where external_id = 'w1'"),
    ("reverts_are_whole", "update entry set job_id = null where external_id like 'revert:%'"),
    ("reverts_are_whole", "update entry set external_id = 'revert:0:0' where external_id like 'revert:%'"),
    ("reverts_are_whole", "update import set reverted_at = null where reverted_at is not null"),
    ("reverts_are_whole", "update import set reverted_at = (select now from clock) where reverted_at is null"),
    ("reverts_are_whole", "delete from operator_act where action = 'imports revert'"),
    ("reverts_are_whole", "update operator_act set target = '0' where action = 'imports revert'"),
];
