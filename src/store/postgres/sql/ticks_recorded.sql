-- Those of these ticks that have a row, by the unique index; inside a fenced transaction, and only read.
-- $1 jobs, $2 nominal times
select r.job_id, r.tick
  from unnest($1::bigint[], $2::timestamptz[]) as t (job_id, tick)
  join bursar.run r on r.job_id = t.job_id and r.tick = t.tick and r.kind = 'tick';
