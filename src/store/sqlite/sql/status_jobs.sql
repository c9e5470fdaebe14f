-- Jobs that were not removed, each with its newest tick.
select j.name, j.election, j.fingerprint, j.evaluated_until, j.definition,
       case when j.paused_at is not null then coalesce(j.paused_reason, '') end as paused,
       t.tick as last_tick, t.state as last_state
  from job j
  left join run t on t.id = (select r.id
                               from run r
                              where r.job_id = j.id and r.kind = 'tick'
                              order by r.tick desc
                              limit 1)
 where j.removed_at is null
 order by j.name;
