-- One conditional update to win, behind the locks on the election and both leases. Safe to lose the answer of: reading shows it.
select c.outcome, c.read_at, c.term, c.term_revision, c.leader, c.leader_lease, c.leader_revision
  from bursar.coordinator_campaign($1, $2, $3, $4, $5, $6) c;
