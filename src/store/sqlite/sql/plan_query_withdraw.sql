-- Fenced (begin). The units of a run whose planning failed: a part of what was to be settled would stand in the way of the
-- job's next run. Safe because: a run that is planning was never worked on, so that nothing refers to its units.
-- ?1 run, ?2 election
delete from unit where run_id = ?1 and election = ?2 and state = 'pending';
