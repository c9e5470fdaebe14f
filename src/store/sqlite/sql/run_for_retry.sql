-- The run of a retry, in its election. Inside a fenced transaction.
select r.state, r.was_planning, r.why from run r where r.id = ?1 and r.election = ?2;
