-- Takes away only the leader of the win that is named. Safe to repeat: the second finds it gone.
select c.resigned as done, c.read_at, c.term, c.term_revision, c.leader, c.leader_lease, c.leader_revision
  from bursar.coordinator_resign($1, $2, $3) c;
