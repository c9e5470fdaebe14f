-- Those of these ticks that have a row, by the unique index; inside a fenced transaction, and only read.
-- ?1 ticks: [job, nominal time]
select r.job_id, r.tick
  from json_each(?1) t
  join run r on r.job_id = t.value ->> 0 and r.tick = t.value ->> 1 and r.kind = 'tick';
