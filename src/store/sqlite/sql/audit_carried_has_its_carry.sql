-- Audit: carried units without exactly one carry of their net, and carries without their unit.
-- ?1 examples
with carry as materialized (
    select e.external_id, count(*) as carries, min(e.amount) as amount, min(e.merchant) as merchant, min(e.currency) as currency,
           min(e.job_id) as job_id
      from entry e
     where e.kind = 'carry' and e.source = 'bursar'
     group by e.external_id
), carried as materialized (
    select u.id, u.key, u.net, u.merchant, u.currency, r.job_id, 'carry:' || u.id || ':' || u.generation as external_id
      from unit u
      join run r on r.id = u.run_id
     where u.state = 'carried'
), bad as (
    select format('unit %s (%s): net %s, %s carries of %s', u.id, u.key, u.net, coalesce(c.carries, 0), coalesce(c.amount, 0)) as what
      from carried u
      left join carry c on c.external_id = u.external_id
     where c.carries is distinct from 1
        or (c.amount, c.merchant, c.currency, c.job_id) is not (u.net, u.merchant, u.currency, u.job_id)
    union all
    select format('entry bursar/%s is a carry of no unit', c.external_id)
      from carry c
      left join carried u on u.external_id = c.external_id
     where c.external_id glob 'carry:*' and u.id is null
    union all
    select format('unit %s (%s) is carried and has a payout', u.id, u.key)
      from carried u
      join instruction i on i.unit_id = u.id and i.kind = 'payout'
    union all
    select format('unit %s (%s) is carried and was not posted', u.id, u.key)
      from carried u
     where not exists (select 1 from journal j where j.unit_id = u.id and j.kind = 'settle')
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
