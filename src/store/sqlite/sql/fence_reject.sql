-- A refusal, after the rollback, unfenced: what was presented and what was in force.
insert into fence_reject (election, term, tenure_id, found_term, found_tenure_id, operation, replica, at)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, (select now from clock));
