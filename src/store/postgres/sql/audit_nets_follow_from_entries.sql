-- Audit: units whose net or postings are not what their entries come to.
-- Both are summed anew: from the entries that are bound, and from the lines that were posted. $1 examples
with bound as (
    select e.unit_id, e.source, e.kind = 'carry' as carry, sum(e.amount) as amount, sum(e.fee) as fee
      from bursar.entry e
     where e.unit_id is not null
     group by e.unit_id, e.source, e.kind = 'carry'
), nets as (
    select b.unit_id, sum(b.amount - b.fee) as net from bound b group by b.unit_id
), ended as (
    select u.id, u.key, u.state, u.net, u.merchant, u.currency, u.generation, r.job || '/' || u.merchant as carry_owner
      from bursar.unit u
      join bursar.run r on r.id = u.run_id
     where u.state in ('settled', 'carried') and u.merchant is not null
), expected as (
    select b.unit_id, 'source_clearing' as kind, b.source as owner, -b.amount as amount from bound b where not b.carry
    union all
    select b.unit_id, 'fees', '', b.fee from bound b
    union all
    select b.unit_id, 'carry', u.carry_owner, -b.amount from bound b join ended u on u.id = b.unit_id where b.carry
    union all
    select u.id, case u.state when 'settled' then 'payout_clearing' else 'carry' end,
           case u.state when 'settled' then '' else u.carry_owner end, u.net
      from ended u
), posted as (
    select j.unit_id, l.kind, l.owner, l.amount
      from bursar.ledger_line l
      join bursar.journal j on j.id = l.journal_id
     where j.kind = 'settle' and l.kind <> 'payable'
), apart as (
    select s.unit_id, s.kind, s.owner, sum(s.expected) as expected, sum(s.found) as found
      from (select x.unit_id, x.kind, x.owner collate "C" as owner, x.amount as expected, 0 as found from expected x
            union all
            select p.unit_id, p.kind, p.owner, 0, p.amount from posted p) s
     group by s.unit_id, s.kind, s.owner
    having sum(s.expected) <> sum(s.found)
), bad as (
    select format('unit %s (%s): net %s, its entries come to %s', u.id, u.key, u.net, coalesce(n.net, 0)) as what
      from ended u
      left join nets n on n.unit_id = u.id
     where u.net is distinct from n.net
    union all
    select format('unit %s: %s %s was posted as %s, its entries come to %s', a.unit_id, a.kind, a.owner, a.found, a.expected)
      from apart a
)
select (select count(*) from bad) as violations,
       (select array_agg(b.what) from (select bad.what from bad order by bad.what limit $1) b) as examples,
       null::text as not_proven;
