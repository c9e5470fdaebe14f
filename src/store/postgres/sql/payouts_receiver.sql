-- Fenced (begin). What is on record of a receiver, locked: while it is stopped, one instruction is tried per backoff,
-- whoever leads. No row: it was never stopped or refused anything.
-- $1 origin
select r.stopped_at is not null as stopped, r.reason, r.needs_resume,
       (extract(epoch from r.next_probe_at - clock_timestamp()) * 1000)::bigint as probe_in_ms
  from bursar.receiver r
 where r.origin = $1
   for update;
