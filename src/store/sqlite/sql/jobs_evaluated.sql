-- How far jobs are evaluated, in the transaction that inserted their ticks. Fenced; the rows were compared.
-- ?1 jobs: [job, evaluated until], ?2 term
update job set evaluated_until = t.value ->> 1, term = ?2
  from json_each(?1) t
 where job.id = t.value ->> 0 and job.evaluated_until <= t.value ->> 1;
