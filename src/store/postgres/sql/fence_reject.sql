-- A refusal, after the rollback, unfenced: what was presented and what was in force.
insert into bursar.fence_reject (election, term, tenure_id, found_term, found_tenure_id, operation, replica)
values ($1, $2, $3, $4, $5, $6, $7);
