-- Audit: runs that were opened before their tick was due, and runs that ended with work left.
-- $1 examples
with bad as (
    select format('run %s of %s, due at %s, was opened at %s', r.id, r.job, r.due_at, r.opened_at) as what
      from bursar.run r
     where r.kind = 'tick' and r.opened_at < r.due_at
    union all
    select format('run %s of %s is %s and has pending units', r.id, r.job, r.state)
      from bursar.run r
     where r.state not in ('planning', 'open')
       and exists (select from bursar.unit u where u.run_id = r.id and u.state = 'pending')
)
select (select count(*) from bad) as violations,
       (select array_agg(b.what) from (select bad.what from bad order by bad.what limit $1) b) as examples,
       null::text as not_proven;
