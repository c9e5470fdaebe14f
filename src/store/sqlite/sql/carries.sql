-- Jobs that have open carries, with how many; only the job itself takes them.
select j.name as job, j.removed_at is not null as removed, count(*) as entries
  from entry e
  join job j on j.id = e.job_id
 where e.unit_id is null and e.withdrawn_at is null
 group by j.id, j.name, j.removed_at
 order by j.name;
