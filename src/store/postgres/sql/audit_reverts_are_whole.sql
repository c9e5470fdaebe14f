-- Audit: what is withdrawn or marked as reverted without an operator's act that took its whole import back, and what such an
-- act left out. No sum shows it: what is withdrawn counts on no side, what is reverted counts on both, and the ids of both are
-- free for a second import.
-- Moments are not compared: each row has its own, of a clock that may be stepped.
-- $1 examples
with taken as materialized (
    select e.id, e.source, e.external_id, e.merchant, e.currency, e.amount, e.fee, e.import_id, e.unit_id, e.withdrawn_at, e.reverted_at
      from bursar.entry e
     where e.withdrawn_at is not null or e.reverted_at is not null
), bad as (
    select format('entry %s (%s/%s) is %s, its import %s is not taken back', t.id, t.source, t.external_id,
                  case when t.withdrawn_at is not null then 'withdrawn' else 'reverted' end, coalesce(t.import_id::text, '(none)')) as what
      from taken t
      left join bursar.import i on i.id = t.import_id
     where i.reverted_at is null
    union all
    select format('entry %s (%s/%s) is reverted and was never settled', t.id, t.source, t.external_id)
      from taken t
     where t.reverted_at is not null and (t.unit_id is null or t.withdrawn_at is not null)
    union all
    select format('entry %s (%s/%s) is reverted, its opposite is %s', t.id, t.source, t.external_id,
                  case when o.id is null then 'not there' else 'another' end)
      from taken t
      left join bursar.unit u on u.id = t.unit_id
      left join bursar.run r on r.id = u.run_id
      left join bursar.entry o on o.source = 'bursar' and o.external_id = 'revert:' || t.import_id || ':' || t.id
                              and o.withdrawn_at is null and o.reverted_at is null
     where t.reverted_at is not null
       and (o.id is null
            or (o.kind, o.merchant, o.currency, o.amount::numeric, o.fee::numeric, o.job_id)
               is distinct from
               ('adjustment', t.merchant, t.currency, -t.amount::numeric, -t.fee::numeric, r.job_id))
    union all
    select format('entry %s (%s/%s) is the opposite of nothing that is reverted', o.id, o.source, o.external_id)
      from bursar.entry o
      left join taken t on t.reverted_at is not null and o.external_id = 'revert:' || t.import_id || ':' || t.id
     where o.source = 'bursar' and o.kind = 'adjustment' and t.id is null
    union all
    select format('entry %s (%s/%s) stands, its import %s is taken back', e.id, e.source, e.external_id, i.id)
      from bursar.import i
      join bursar.entry e on e.import_id = i.id
     where i.reverted_at is not null and e.withdrawn_at is null and e.reverted_at is null
    union all
    select format('import %s is taken back by no act', i.id)
      from bursar.import i
      left join bursar.operator_act a on a.id = i.revert_act_id and a.action = 'imports revert' and a.target = i.id::text
     where i.reverted_at is not null and a.id is null
    union all
    select format('import %s was taken back by act %s and is not', a.target, a.id)
      from bursar.operator_act a
      left join bursar.import i on i.revert_act_id = a.id and i.reverted_at is not null
     where a.action = 'imports revert' and i.id is null
)
select (select count(*) from bad) as violations,
       (select array_agg(b.what) from (select bad.what from bad order by bad.what limit $1) b) as examples,
       null::text as not_proven;
