-- The first statement of every fenced transaction, before any savepoint. Safe because the function takes the election's
-- shared advisory lock first and then reads the fence with a fresh snapshot (READ COMMITTED, checked inside): while this
-- transaction lives, nobody advances. The backend shows that the settings of the session are in force here.
select e.outcome, e.found_term, e.found_tenure, e.halt_reason, e.halted_at, e.halted_by, pg_backend_pid() as backend
  from bursar.enter($1, $2, $3, $4) e;
