-- Fenced (begin), with the receiver's row locked. One instruction is tried now; the next one after a longer wait.
-- $1 origin, $2 the shortest wait, $3 the longest, milliseconds
update bursar.receiver r
   set probes = r.probes + 1,
       next_probe_at = clock_timestamp() + least($3::bigint, $2::bigint * (1::bigint << least(r.probes, 20))) * interval '1 millisecond'
 where r.origin = $1 and r.stopped_at is not null;
