-- Notes what the store was accepted as, only for the win that is named. Safe to repeat.
select c.noted as done, c.read_at, c.term, c.term_revision, c.leader, c.leader_lease, c.leader_revision
  from bursar.coordinator_accept($1, $2, $3, $4) c;
