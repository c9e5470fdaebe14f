-- How far the job is evaluated, in the transaction that inserted its ticks. Fenced; the row is locked and was compared.
update bursar.job set evaluated_until = $2, term = $3 where id = $1 and evaluated_until <= $2;
