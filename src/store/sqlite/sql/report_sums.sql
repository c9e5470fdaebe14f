-- The sums of a run by currency and part, each from the rows that it is about: entries bound to its units, nets of units,
-- instructions, carries that came of them, journals. Sums in halves of 32 bits: SQLite's own fail where they overflow.
-- ?1 run
with own as materialized (
    select u.id, u.generation, u.currency, u.net from unit u where u.run_id = ?1
), payout as materialized (
    select i.unit_id, i.generation, i.currency, i.amount, i.state
      from instruction i
     where i.run_id = ?1 and i.kind = 'payout'
), carry as materialized (
    select e.currency, o.part, e.amount, e.unit_id
      from (select 'carry' as part, u.id as unit_id, u.generation from own u
            union all
            select s.part, p.unit_id, p.generation
              from payout p
             cross join (select 'rejected' as part union all select 'returned') s) o
      join entry e
        on e.source = 'bursar'
       and e.external_id = o.part || ':' || o.unit_id || ':' || o.generation
       and e.withdrawn_at is null
       and e.reverted_at is null
     where e.kind = 'carry'
), part as (
    select e.currency, case when e.kind = 'carry' then 'brought_forward' else 'imported' end as part, e.amount
      from own u
      join entry e on e.unit_id = u.id
    union all
    select e.currency, 'fees', e.fee from own u join entry e on e.unit_id = u.id
    union all
    select u.currency, 'nets', u.net from own u where u.net is not null and u.currency is not null
    union all
    select p.currency,
           case when p.state in ('paid', 'rejected', 'returned') then p.state else 'in_flight' end || '_payouts', p.amount
      from payout p
    union all
    select c.currency, c.part, c.amount from carry c
    union all
    select c.currency, 'still_open', c.amount from carry c where c.unit_id is null
    union all
    select l.currency, 'account:' || l.kind, l.amount
      from journal j
      join ledger_line l on l.journal_id = j.id
     where j.run_id = ?1
)
select p.currency, p.part, sum(p.amount >> 32) as amount_high, sum(p.amount & 4294967295) as amount_low
  from part p
 group by p.currency, p.part;
