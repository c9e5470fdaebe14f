-- One run row per tick, also for ticks without work. Fenced, under the locks of the job rows; a tick that has its run is left as
-- it is. The deadline counts from the due time, so that a run opened late is overdue when it was promised.
-- $1 jobs, $2 election, $3 term, $4 deadlines in seconds (null: none), $5 to $11 the rest of each tick
insert into bursar.run (job_id, job, election, kind, tick, due_at, cutoff_at, value_date, definition, fingerprint, state,
                        why, caught_up, deadline_at, opened_term, finished_at)
select j.id, j.name, $2, 'tick', t.tick, t.due_at, t.cutoff_at, t.value_date, j.definition, j.fingerprint, t.state,
       t.why, t.caught_up, case when t.state = 'planning' then t.due_at + make_interval(secs => t.deadline) end, $3,
       case when t.state <> 'planning' then clock_timestamp() end
  from unnest($1::bigint[], $4::float8[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $8::date[], $9::text[],
              $10::text[], $11::boolean[])
       with ordinality as t (job_id, deadline, tick, due_at, cutoff_at, value_date, state, why, caught_up, position)
  join bursar.job j on j.id = t.job_id
 order by t.position
on conflict (job_id, tick) where kind = 'tick' do nothing
returning job_id, tick, state = 'planning' as opened,
          (extract(epoch from greatest(opened_at - due_at, interval '0')) * 1000)::bigint as lateness_ms;
