-- The election in one snapshot, a leader on a lapsed lease left out. Changes nothing, except that it caps a lease that a
-- stepped clock made too long.
select s.read_at, s.term, s.term_revision, s.leader, s.leader_lease, s.leader_revision from bursar.coordinator_state($1) s;
