-- How far jobs are evaluated, in the transaction that inserted their ticks. Fenced; the rows are locked and were compared.
-- $1 jobs, $2 the due times, $3 term
update bursar.job j set evaluated_until = t.evaluated_until, term = $3
  from unnest($1::bigint[], $2::timestamptz[]) as t (id, evaluated_until)
 where j.id = t.id and j.evaluated_until <= t.evaluated_until;
