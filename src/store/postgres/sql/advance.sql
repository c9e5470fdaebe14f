-- Puts a claim in force. Runs under the election's exclusive advisory lock, in a transaction that does nothing else: no
-- fenced transaction is open, and none begins before this one ends. One row is acceptance; none is a loss (or a repeat).
insert into bursar.fence as f (election, term, tenure_id, accepted_at)
values ($1, $2, $3, clock_timestamp())
on conflict (election) do update
   set term = excluded.term, tenure_id = excluded.tenure_id, accepted_at = excluded.accepted_at
 where f.term < excluded.term
returning f.halt_reason, f.halted_at, f.halted_by;
