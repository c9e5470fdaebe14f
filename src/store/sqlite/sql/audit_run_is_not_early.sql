-- Audit: runs that were opened before their tick was due, and runs that ended with work left.
-- ?1 examples
with bad as (
    select format('run %s of %s, due at %s, was opened at %s', r.id, r.job,
                  strftime('%F %H:%M:%f', r.due_at / 1000000.0, 'unixepoch'),
                  strftime('%F %H:%M:%f', r.opened_at / 1000000.0, 'unixepoch')) as what
      from run r
     where r.kind = 'tick' and r.opened_at < r.due_at
    union all
    select format('run %s of %s is %s and has pending units', r.id, r.job, r.state)
      from run r
     where r.state not in ('planning', 'open')
       and exists (select 1 from unit u where u.run_id = r.id and u.state = 'pending')
)
select (select count(*) from bad) as violations,
       (select json_group_array(b.what) from (select bad.what from bad order by bad.what limit ?1) b) as examples,
       null as not_proven;
