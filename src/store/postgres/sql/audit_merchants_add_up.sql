-- Audit: merchants for whom imported is not fees + paid + in flight + open.
-- Imported: what stands, adjustments of reverts included, carries left out. Open: what no unit has bound, carries included. $1 examples
with sides as (
    select e.merchant, e.currency,
           case when e.kind <> 'carry' then e.amount else 0 end as imported,
           0 as fees, 0 as paid, 0 as in_flight,
           case when e.unit_id is null then e.amount else 0 end as open
      from bursar.entry e
     where e.withdrawn_at is null
    union all
    select l.owner, p.currency, 0, case when p.credit_kind = 'fees' then p.amount else -p.amount end, 0, 0, 0
      from bursar.posting p
     cross join lateral (select case when p.credit_kind = 'fees' then p.debit_owner else p.credit_owner end as owner) l
     where p.credit_kind = 'fees' or p.debit_kind = 'fees'
    union all
    select i.merchant, i.currency, 0, 0,
           case when i.state = 'paid' then i.amount else 0 end,
           case when i.state not in ('paid', 'rejected', 'returned') then i.amount else 0 end,
           0
      from bursar.instruction i
     where i.kind = 'payout'
), bad as (
    select format('%s:%s: imported %s, fees %s + paid %s + in flight %s + open %s', s.currency, s.merchant, sum(s.imported),
                  sum(s.fees), sum(s.paid), sum(s.in_flight), sum(s.open)) as what
      from sides s
     group by s.merchant, s.currency
    having sum(s.imported) <> sum(s.fees) + sum(s.paid) + sum(s.in_flight) + sum(s.open)
)
select (select count(*) from bad) as violations,
       (select array_agg(b.what) from (select bad.what from bad order by bad.what limit $1) b) as examples,
       null::text as not_proven;
