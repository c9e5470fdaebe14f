-- Runs of an election that still have work, oldest due first; inside a fenced transaction. An election has as many open
-- runs as its jobs and their catching up allow.
select r.id, cast(r.id as text) as name, r.job_id, r.definition, r.kind, r.request_id, r.tick, r.due_at, r.cutoff_at,
       r.value_date, r.state, r.caught_up, r.opened_at
  from run r
 where r.election = ?1 and r.state in ('planning', 'open')
 order by r.due_at, r.id
 limit 10000;
