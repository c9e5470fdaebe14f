-- Audit: merchants for whom imported is not fees + paid + in flight + open. Sums in halves, as
-- audit_nets_follow_from_entries.sql says.
-- Imported: what stands, adjustments of reverts included, carries left out. Open: what no unit has bound, carries included. ?1 examples
with sides as (
    select e.merchant, e.currency, 'imported' as side, e.amount from entry e where e.withdrawn_at is null and e.kind <> 'carry'
    union all
    select e.merchant, e.currency, 'open', e.amount from entry e where e.withdrawn_at is null and e.unit_id is null
    union all
    select p.debit_owner, p.currency, 'fees', p.amount from posting p where p.credit_kind = 'fees'
    union all
    select p.credit_owner, p.currency, 'fees', -p.amount from posting p where p.debit_kind = 'fees' and p.credit_kind <> 'fees'
    union all
    select i.merchant, i.currency, case i.state when 'paid' then 'paid' else 'in flight' end, i.amount
      from instruction i
     where i.kind = 'payout' and i.state not in ('rejected', 'returned')
), summed as (
    select s.merchant, s.currency, s.side, sum(s.amount >> 32) as high, sum(s.amount & 4294967295) as low
      from sides s
     group by s.merchant, s.currency, s.side
), bad as (
    select format('%s:%s: imported %s, fees %s + paid %s + in flight %s + open %s', s.currency, s.merchant,
                  coalesce(max(char(1) || s.high || ':' || s.low || char(1)) filter (where s.side = 'imported'), 0),
                  coalesce(max(char(1) || s.high || ':' || s.low || char(1)) filter (where s.side = 'fees'), 0),
                  coalesce(max(char(1) || s.high || ':' || s.low || char(1)) filter (where s.side = 'paid'), 0),
                  coalesce(max(char(1) || s.high || ':' || s.low || char(1)) filter (where s.side = 'in flight'), 0),
                  coalesce(max(char(1) || s.high || ':' || s.low || char(1)) filter (where s.side = 'open'), 0)) as what
      from summed s
     group by s.merchant, s.currency
    having sum(case s.side when 'imported' then s.high else -s.high end)
           + (sum(case s.side when 'imported' then s.low else -s.low end) >> 32) <> 0
        or (sum(case s.side when 'imported' then s.low else -s.low end) & 4294967295) <> 0
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
