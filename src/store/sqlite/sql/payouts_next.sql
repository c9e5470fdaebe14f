-- When the next payout of these jobs is due that waits for a time, in microseconds from now. Inside a fenced transaction.
-- ?1 election, ?2 jobs: [[job, …]]
select min(i.next_attempt_at) - (select now from clock) as next_in
  from json_each(?2) t
  join instruction i on i.job_id = t.value ->> 0
 where i.election = ?1
   and i.kind = 'payout'
   and i.state in ('pending', 'unknown')
   and i.release <> 'waiting'
   and i.next_attempt_at is not null;
