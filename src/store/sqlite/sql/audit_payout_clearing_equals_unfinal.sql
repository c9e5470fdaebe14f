-- Audit: currencies whose payout clearing is not the sum of the payouts that are not final. Sums in halves, as
-- audit_nets_follow_from_entries.sql says.
-- ?1 examples
with sides as (
    select l.currency, 1 as account, l.amount from ledger_line l where l.kind = 'payout_clearing'
    union all
    select i.currency, 0, i.amount
      from instruction i
     where i.kind = 'payout' and i.state not in ('paid', 'rejected', 'returned')
), summed as (
    select s.currency,
           coalesce(sum(s.amount >> 32) filter (where s.account), 0) as account_high,
           coalesce(sum(s.amount & 4294967295) filter (where s.account), 0) as account_low,
           coalesce(sum(s.amount >> 32) filter (where not s.account), 0) as payouts_high,
           coalesce(sum(s.amount & 4294967295) filter (where not s.account), 0) as payouts_low
      from sides s
     group by s.currency
), bad as (
    select format('payout_clearing has %s %s, payouts that are not final %s',
                  char(1) || s.account_high || ':' || s.account_low || char(1), s.currency,
                  char(1) || s.payouts_high || ':' || s.payouts_low || char(1)) as what
      from summed s
     where s.account_high - s.payouts_high + ((s.account_low - s.payouts_low) >> 32) <> 0
        or ((s.account_low - s.payouts_low) & 4294967295) <> 0
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
