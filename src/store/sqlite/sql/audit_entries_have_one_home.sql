-- Audit: entries that are bound to a unit that took none, or to another merchant's.
-- ?1 examples
with bad as (
    select format('entry %s (%s/%s) is bound to unit %s (%s), which is %s', e.id, e.source, e.external_id, e.unit_id,
                  coalesce(u.key, 'gone'), coalesce(u.state, 'gone')) as what
      from entry e
      left join unit u on u.id = e.unit_id
     where e.unit_id is not null
       and (u.id is null or u.state not in ('settled', 'carried') or e.withdrawn_at is not null)
    union all
    select format('entry %s of %s:%s is bound to unit %s (%s)', e.id, e.currency, e.merchant, e.unit_id, u.key)
      from entry e
      join unit u on u.id = e.unit_id
     where e.merchant is distinct from u.merchant or e.currency is distinct from u.currency
    union all
    select format('entry %s (%s/%s) is job %s''s own and is bound to a run of job %s', e.id, e.source, e.external_id, e.job_id, r.job_id)
      from entry e
      join unit u on u.id = e.unit_id
      join run r on r.id = u.run_id
     where e.job_id is not null and e.job_id <> r.job_id
    union all
    select format('unit %s (%s) is empty and has an effect', u.id, u.key)
      from unit u
     where u.state = 'empty'
       and (exists (select 1 from journal j where j.unit_id = u.id)
            -- A call of which a person said that nothing was done leaves its unit empty, and is no effect.
            or exists (select 1 from instruction i
                        where i.unit_id = u.id and not (i.kind = 'call' and i.state = 'rejected')))
    union all
    select format('entries of %s/%s stand %s times', e.source, e.external_id, count(*))
      from entry e
     where e.withdrawn_at is null and e.reverted_at is null
     group by e.source, e.external_id
    having count(*) > 1
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
