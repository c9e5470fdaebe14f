-- Audit: currencies whose payout clearing is not the sum of the payouts that are not final.
-- $1 examples
with sides as (
    select l.currency, l.amount as account, 0 as instructions from bursar.ledger_line l where l.kind = 'payout_clearing'
    union all
    select i.currency, 0, i.amount
      from bursar.instruction i
     where i.kind = 'payout' and i.state not in ('paid', 'rejected', 'returned')
), bad as (
    select format('payout_clearing has %s %s, payouts that are not final %s', sum(s.account), s.currency, sum(s.instructions)) as what
      from sides s
     group by s.currency
    having sum(s.account) <> sum(s.instructions)
)
select (select count(*) from bad) as violations,
       (select array_agg(b.what) from (select bad.what from bad order by bad.what limit $1) b) as examples,
       null::text as not_proven;
