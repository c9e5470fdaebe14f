-- How far the job is evaluated, in the transaction that inserted its ticks. Fenced; the row was compared.
-- ?1 job, ?2 evaluated until, ?3 term
update job set evaluated_until = ?2, term = ?3 where id = ?1 and evaluated_until <= ?2;
