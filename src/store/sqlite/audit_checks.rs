//! The statement of each of the audit's checks: it answers `violations`, `examples` and `not_proven` in one row, given how
//! many examples; or, where rows are derived anew, the rows.

use crate::store::checks::Check;

/// The statement of a check.
pub(super) const fn statement(check: Check) -> &'static str {
    match check {
        Check::OneTenurePerTerm => include_str!("sql/audit_one_tenure_per_term.sql"),
        Check::FenceIsHighest => include_str!("sql/audit_fence_is_highest.sql"),
        Check::NoStaleWrite => include_str!("sql/audit_no_stale_write.sql"),
        Check::SettledHasItsEffect => include_str!("sql/audit_settled_has_its_effect.sql"),
        Check::UnendedHasNoEffect => include_str!("sql/audit_unended_has_no_effect.sql"),
        Check::CarriedHasItsCarry => include_str!("sql/audit_carried_has_its_carry.sql"),
        Check::EntriesHaveOneHome => include_str!("sql/audit_entries_have_one_home.sql"),
        Check::NetsFollowFromEntries => include_str!("sql/audit_nets_follow_from_entries.sql"),
        Check::KeysAreUnique => include_str!("sql/audit_keys_are_unique.sql"),
        Check::SendingIsCurrent => include_str!("sql/audit_sending_is_current.sql"),
        Check::DoubtIsKept => include_str!("sql/audit_doubt_is_kept.sql"),
        Check::OneRunPerTick => include_str!("sql/audit_one_run_per_tick.sql"),
        Check::RunIsNotEarly => include_str!("sql/audit_run_is_not_early.sql"),
        Check::HaltedDoesNothing => include_str!("sql/audit_halted_does_nothing.sql"),
        Check::JournalsBalance => include_str!("sql/audit_journals_balance.sql"),
        Check::PayableIsZero => include_str!("sql/audit_payable_is_zero.sql"),
        Check::CarryEqualsOpenCarries => include_str!("sql/audit_carry_equals_open_carries.sql"),
        Check::FinalsArePosted => include_str!("sql/audit_finals_are_posted.sql"),
        Check::PayoutClearingEqualsUnfinal => include_str!("sql/audit_payout_clearing_equals_unfinal.sql"),
        Check::KeysAreDerived => include_str!("sql/audit_instructions.sql"),
        Check::MerchantsAddUp => include_str!("sql/audit_merchants_add_up.sql"),
        Check::RevertsAreWhole => include_str!("sql/audit_reverts_are_whole.sql"),
    }
}
