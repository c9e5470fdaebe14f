-- One run row per tick, also for ticks without work. Fenced; a tick that has its run is left as it is. The deadline counts
-- from the due time, so that a run opened late is overdue when it was promised.
-- ?1 job, ?2 election, ?3 term, ?4 deadline in microseconds, ?5 ticks: [tick, due, cutoff, value date, state, why, caught up]
insert into run (job_id, job, election, kind, tick, due_at, cutoff_at, value_date, definition, fingerprint, state,
                 why, caught_up, deadline_at, opened_term, opened_at, finished_at, fenced_seq)
select j.id, j.name, ?2, 'tick', t.value ->> 0, t.value ->> 1, t.value ->> 2, t.value ->> 3, j.definition, j.fingerprint,
       t.value ->> 4, t.value ->> 5, t.value ->> 6,
       case when t.value ->> 4 = 'planning' then (t.value ->> 1) + ?4 end, ?3, c.now,
       case when t.value ->> 4 <> 'planning' then c.now end, s.value
  from job j, clock c, fenced_seq s, json_each(?5) t
 where j.id = ?1
 order by t.key
on conflict (job_id, tick) where kind = 'tick' do nothing
returning tick, state = 'planning' as opened, max(opened_at - due_at, 0) / 1000 as lateness_ms;
