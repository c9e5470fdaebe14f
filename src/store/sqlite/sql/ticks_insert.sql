-- One run row per tick, also for ticks without work. Fenced; a tick that has its run is left as it is. The deadline counts
-- from the due time, so that a run opened late is overdue when it was promised.
-- ?1 election, ?2 term, ?3 ticks: [job, deadline in microseconds, tick, due, cutoff, value date, state, why, caught up]
insert into run (job_id, job, election, kind, tick, due_at, cutoff_at, value_date, definition, fingerprint, state,
                 why, caught_up, deadline_at, opened_term, opened_at, finished_at, fenced_seq)
select j.id, j.name, ?1, 'tick', t.value ->> 2, t.value ->> 3, t.value ->> 4, t.value ->> 5, j.definition, j.fingerprint,
       t.value ->> 6, t.value ->> 7, t.value ->> 8,
       case when t.value ->> 6 = 'planning' then (t.value ->> 3) + (t.value ->> 1) end, ?2, c.now,
       case when t.value ->> 6 <> 'planning' then c.now end, s.value
  from json_each(?3) t
 cross join job j on j.id = t.value ->> 0
 cross join clock c
 cross join fenced_seq s
 order by t.key
on conflict (job_id, tick) where kind = 'tick' do nothing
returning job_id, tick, state = 'planning' as opened, max(opened_at - due_at, 0) / 1000 as lateness_ms;
