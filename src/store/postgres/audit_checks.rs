//! The audit's checks: what each proves, in a sentence, and the statement that looks for violations.

/// One check: a statement that answers `violations`, `examples` and `not_proven` in one row, given how many examples.
pub(super) struct Check {
    pub(super) guarantee: &'static str,
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    pub(super) statement: &'static str,
}

const fn check(guarantee: &'static str, name: &'static str, meaning: &'static str, statement: &'static str) -> Check {
    Check { guarantee, name, meaning, statement }
}

/// All checks that are made in the database, in the order of reports.
pub(super) const CHECKS: [Check; 19] = [
    check(
        "S1",
        "one_tenure_per_term",
        "Every term of an election was accepted from one tenure only.",
        include_str!("sql/audit_one_tenure_per_term.sql"),
    ),
    check(
        "S1",
        "fence_is_highest",
        "The fence of every election stands at the highest claim that was ever accepted.",
        include_str!("sql/audit_fence_is_highest.sql"),
    ),
    check(
        "S2",
        "no_stale_write",
        "Whatever a lower term wrote to runs, batches, journals and instructions was there, committed, when a higher one was accepted.",
        include_str!("sql/audit_no_stale_write.sql"),
    ),
    check(
        "S3",
        "settled_has_its_effect",
        "Every settled unit has one journal and, where its net is above 0, one payout of exactly that; a called one's call is done.",
        include_str!("sql/audit_settled_has_its_effect.sql"),
    ),
    check(
        "S3",
        "unended_has_no_effect",
        "No unit that is pending or set aside has a journal, a payout or a call that is done.",
        include_str!("sql/audit_unended_has_no_effect.sql"),
    ),
    check(
        "S3",
        "carried_has_its_carry",
        "Every carried unit has exactly one carry of its net, for its job, and every carry of a run its unit.",
        include_str!("sql/audit_carried_has_its_carry.sql"),
    ),
    check(
        "S3",
        "entries_have_one_home",
        "Every entry is open, withdrawn, or bound to one unit of its merchant and currency that ended settled or carried.",
        include_str!("sql/audit_entries_have_one_home.sql"),
    ),
    check(
        "S3",
        "nets_follow_from_entries",
        "The net and the postings of every unit are what the entries that it bound come to, summed anew.",
        include_str!("sql/audit_nets_follow_from_entries.sql"),
    ),
    check(
        "S4",
        "keys_are_unique",
        "No idempotency key stands twice, and no unit has two instructions of a kind and generation.",
        include_str!("sql/audit_keys_are_unique.sql"),
    ),
    check(
        "S4",
        "sending_is_current",
        "What is on the wire is there under the term in force.",
        include_str!("sql/audit_sending_is_current.sql"),
    ),
    check(
        "S4",
        "doubt_is_kept",
        "A try whose outcome is unknown is never forgotten: such an instruction is neither rejected nor, unless it is idempotent, sent again.",
        include_str!("sql/audit_doubt_is_kept.sql"),
    ),
    check(
        "S5",
        "one_run_per_tick",
        "Every job has one scheduled run per tick, every request one run per tick, every run one unit per key.",
        include_str!("sql/audit_one_run_per_tick.sql"),
    ),
    check(
        "S5",
        "run_is_not_early",
        "No scheduled run was opened before its due time, and none ended with units pending.",
        include_str!("sql/audit_run_is_not_early.sql"),
    ),
    check(
        "S6",
        "halted_does_nothing",
        "No run was opened, no batch settled and no call first sent between an operator's halt and the resume after it, by the store's clock. \
         Calls that had left before may be recorded; a halt by bursar itself is no operator's act and is not looked at.",
        include_str!("sql/audit_halted_does_nothing.sql"),
    ),
    check(
        "money",
        "journals_balance",
        "Every journal of a settled unit moves the unit's net from its merchant to payout clearing, in its one currency, and \
         touches no other merchant's accounts.",
        include_str!("sql/audit_journals_balance.sql"),
    ),
    check(
        "money",
        "payable_is_zero",
        "Nothing is left payable to any merchant after any journal.",
        include_str!("sql/audit_payable_is_zero.sql"),
    ),
    check(
        "money",
        "carry_equals_open_carries",
        "What each job carries for each merchant is the sum of its open carry entries.",
        include_str!("sql/audit_carry_equals_open_carries.sql"),
    ),
    check(
        "money",
        "finals_are_posted",
        "Every payout that is paid, rejected or returned has the postings and the carry that its state says, no other one has any.",
        include_str!("sql/audit_finals_are_posted.sql"),
    ),
    check(
        "money",
        "payout_clearing_equals_unfinal",
        "What is in payout clearing is the sum of the payouts that are not final.",
        include_str!("sql/audit_payout_clearing_equals_unfinal.sql"),
    ),
];

/// The check over all of the money, last.
pub(super) const ADDS_UP: Check = check(
    "money",
    "merchants_add_up",
    "For every merchant and currency, imported = fees + paid + in flight + open.",
    include_str!("sql/audit_merchants_add_up.sql"),
);
