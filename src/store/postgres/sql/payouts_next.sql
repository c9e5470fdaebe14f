-- When the next payout of these jobs is due that waits for a time. Inside a fenced transaction.
-- $1 election, $2 jobs
select (extract(epoch from min(i.next_attempt_at) - clock_timestamp()) * 1000)::bigint as next_in_ms
  from bursar.instruction i
 where i.job_id = any ($2::bigint[])
   and i.election = $1
   and i.kind = 'payout'
   and i.state in ('pending', 'unknown')
   and i.release <> 'waiting'
   and i.next_attempt_at is not null;
