-- Audit: ticks and requests with more than one run.
-- ?1 examples
with bad as (
    select format('job %s has %s runs of tick %s', r.job_id, count(*), datetime(r.tick / 1000000, 'unixepoch')) as what
      from run r
     where r.kind = 'tick'
     group by r.job_id, r.tick
    having count(*) > 1
    union all
    select format('request %s has %s runs of tick %s', r.request_id, count(*), datetime(r.tick / 1000000, 'unixepoch'))
      from run r
     where r.kind = 'manual'
     group by r.request_id, r.tick
    having count(*) > 1
    union all
    select format('run %s has %s units of key %s', u.run_id, count(*), u.key)
      from unit u
     group by u.run_id, u.key
    having count(*) > 1
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
