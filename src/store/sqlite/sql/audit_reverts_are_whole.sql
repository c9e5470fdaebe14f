-- Audit: what is withdrawn or marked as reverted without an operator's act that took its whole import back, and what such an
-- act left out. No sum shows it: what is withdrawn counts on no side, what is reverted counts on both, and the ids of both are
-- free for a second import.
-- Moments are not compared: each row has its own, of a clock that may be stepped.
-- ?1 examples
with taken as materialized (
    select e.id, e.source, e.external_id, e.merchant, e.currency, e.amount, e.fee, e.import_id, e.unit_id, e.withdrawn_at, e.reverted_at
      from entry e
     where e.withdrawn_at is not null or e.reverted_at is not null
), bad as (
    select format('entry %s (%s/%s) is %s, its import %s is not taken back', t.id, t.source, t.external_id,
                  case when t.withdrawn_at is not null then 'withdrawn' else 'reverted' end, coalesce(t.import_id, '(none)')) as what
      from taken t
      left join import i on i.id = t.import_id
     where i.reverted_at is null
    union all
    select format('entry %s (%s/%s) is reverted and was never settled', t.id, t.source, t.external_id)
      from taken t
     where t.reverted_at is not null and (t.unit_id is null or t.withdrawn_at is not null)
    union all
    select format('entry %s (%s/%s) is reverted, its opposite is %s', t.id, t.source, t.external_id,
                  case when o.id is null then 'not there' else 'another' end)
      from taken t
      left join unit u on u.id = t.unit_id
      left join run r on r.id = u.run_id
      left join entry o on o.source = 'bursar' and o.external_id = 'revert:' || t.import_id || ':' || t.id
                       and o.withdrawn_at is null and o.reverted_at is null
     where t.reverted_at is not null
       and (o.id is null or o.kind <> 'adjustment' or o.merchant <> t.merchant or o.currency <> t.currency
            or o.amount <> -t.amount or o.fee <> -t.fee or o.job_id is distinct from r.job_id)
    union all
    -- A list of what is reverted, not a join: SQLite would compare each with each.
    select format('entry %s (%s/%s) is the opposite of nothing that is reverted', o.id, o.source, o.external_id)
      from entry o
     where o.source = 'bursar' and o.kind = 'adjustment'
       and o.external_id not in (select 'revert:' || t.import_id || ':' || t.id from taken t
                                  where t.reverted_at is not null and t.import_id is not null)
    union all
    select format('entry %s (%s/%s) stands, its import %s is taken back', e.id, e.source, e.external_id, i.id)
      from import i
      join entry e on e.import_id = i.id
     where i.reverted_at is not null and e.withdrawn_at is null and e.reverted_at is null
    union all
    select format('import %s is taken back by no act', i.id)
      from import i
      left join operator_act a on a.id = i.revert_act_id and a.action = 'imports revert' and a.target = cast(i.id as text)
     where i.reverted_at is not null and a.id is null
    union all
    select format('import %s was taken back by act %s and is not', a.target, a.id)
      from operator_act a
     where a.action = 'imports revert'
       and a.id not in (select i.revert_act_id from import i where i.reverted_at is not null and i.revert_act_id is not null)
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
