-- Fenced (begin). What is on record of a receiver: while it is stopped, one instruction is tried per backoff, whoever leads.
-- No row: it was never stopped or refused anything. Nobody else writes until the transaction's end. ?1 origin
select r.stopped_at is not null as stopped, r.reason, r.needs_resume,
       r.next_probe_at - (select now from clock) as probe_in
  from receiver r
 where r.origin = ?1;
