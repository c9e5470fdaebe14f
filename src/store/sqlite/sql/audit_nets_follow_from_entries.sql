-- Audit: units whose net or postings are not what their entries come to.
-- Both are summed anew: from the entries that are bound, and from the lines that were posted. ?1 examples
-- Sums are kept in halves of 32 bits (high, low), so that none overflows; two are equal where the halves of their
-- difference come to 0. The caller writes a sum in an example, char(1) high:low char(1), as one number.
with bound as materialized (
    select e.unit_id, e.source, e.kind = 'carry' as carry,
           sum(e.amount >> 32) as amount_high, sum(e.amount & 4294967295) as amount_low,
           sum(e.fee >> 32) as fee_high, sum(e.fee & 4294967295) as fee_low
      from entry e
     where e.unit_id is not null
     group by e.unit_id, e.source, e.kind = 'carry'
), nets as materialized (
    select b.unit_id, sum(b.amount_high - b.fee_high) as high, sum(b.amount_low - b.fee_low) as low from bound b group by b.unit_id
), ended as materialized (
    select u.id, u.key, u.state, u.net, u.net >> 32 as high, u.net & 4294967295 as low, r.job || '/' || u.merchant as carry_owner
      from unit u
      join run r on r.id = u.run_id
     where u.state in ('settled', 'carried') and u.merchant is not null
), expected as (
    select b.unit_id, 'source_clearing' as kind, b.source as owner, -b.amount_high as high, -b.amount_low as low
      from bound b
     where not b.carry
    union all
    select b.unit_id, 'fees', '', b.fee_high, b.fee_low from bound b
    union all
    select b.unit_id, 'carry', u.carry_owner, -b.amount_high, -b.amount_low from bound b join ended u on u.id = b.unit_id where b.carry
    union all
    select u.id, case u.state when 'settled' then 'payout_clearing' else 'carry' end,
           case u.state when 'settled' then '' else u.carry_owner end, u.high, u.low
      from ended u
), posted as (
    select j.unit_id, l.kind, l.owner, l.amount >> 32 as high, l.amount & 4294967295 as low
      from ledger_line l
      join journal j on j.id = l.journal_id
     where j.kind = 'settle' and l.kind <> 'payable'
), apart as (
    select s.unit_id, s.kind, s.owner, sum(s.high) as high, sum(s.low) as low, sum(s.found_high) as found_high,
           sum(s.found_low) as found_low
      from (select x.unit_id, x.kind, x.owner, x.high, x.low, 0 as found_high, 0 as found_low from expected x
            union all
            select p.unit_id, p.kind, p.owner, 0, 0, p.high, p.low from posted p) s
     group by s.unit_id, s.kind, s.owner
    having sum(s.high - s.found_high) + (sum(s.low - s.found_low) >> 32) <> 0
        or (sum(s.low - s.found_low) & 4294967295) <> 0
), bad as (
    select format('unit %s (%s): net %s, its entries come to %s', u.id, u.key, u.net,
                  char(1) || coalesce(n.high, 0) || ':' || coalesce(n.low, 0) || char(1)) as what
      from ended u
      left join nets n on n.unit_id = u.id
     where u.net is null
        or n.unit_id is null
        or u.high - n.high + ((u.low - n.low) >> 32) <> 0
        or ((u.low - n.low) & 4294967295) <> 0
    union all
    select format('unit %s: %s %s was posted as %s, its entries come to %s', a.unit_id, a.kind, a.owner,
                  char(1) || a.found_high || ':' || a.found_low || char(1), char(1) || a.high || ':' || a.low || char(1))
      from apart a
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
