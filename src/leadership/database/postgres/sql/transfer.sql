-- Puts the successor only over the win that is named, on a lease that lives and that it is registered on.
select c.transferred as done, c.read_at, c.term, c.term_revision, c.leader, c.leader_lease, c.leader_revision
  from bursar.coordinator_transfer($1, $2, $3, $4, $5, $6, $7, $8) c;
