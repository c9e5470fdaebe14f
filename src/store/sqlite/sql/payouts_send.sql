-- Fenced (begin), after payouts_pick.sql in the same transaction. On the wire under this term from now on; or, where only a
-- look-up is made, left as they are and not taken again before that is over.
-- Safe because: key and bytes are those of the first time (a trigger holds them); a doubt is never reset; the number of a try
-- only grows, so that no late record is taken for another try's; the key's validity counts from before the first byte.
-- ?1 election, ?2 term, ?3 origin, ?4 payouts: [instruction, whether it is only looked up]
-- ?5 jobs: [job, idempotent, looked up, validity of a key, time-out in microseconds, address]
update instruction
   set state = case when g.only_look_up then instruction.state else 'sending' end,
       attempts = instruction.attempts + 1,
       sending_term = case when g.only_look_up then null else ?2 end,
       next_attempt_at = case when g.only_look_up then (select now from clock) + 3 * t.timeout + 1000000 end,
       first_sent_at = coalesce(instruction.first_sent_at, (select now from clock)),
       key_valid_until = coalesce(instruction.key_valid_until, (select now from clock) + t.valid),
       receiver = ?3,
       receiver_url = t.url,
       idempotent = t.idempotent and (instruction.idempotent or not instruction.in_doubt),
       looks_up = t.looks_up
  from (select value ->> 0 as id, value ->> 1 as only_look_up from json_each(?4)) g,
       (select value ->> 0 as job, value ->> 1 as idempotent, value ->> 2 as looks_up, value ->> 3 as valid, value ->> 4 as timeout,
               value ->> 5 as url
          from json_each(?5)) t
 where instruction.id = g.id
   and +instruction.job_id = t.job
   and +instruction.election = ?1
   and +instruction.state in ('pending', 'unknown')
returning id, job_id, run_id, (select u.batch_id from unit u where u.id = instruction.unit_id) as batch_id, idempotency_key, body, attempts, in_doubt, key_valid_until - (select now from clock) as valid_for,
          (select now from clock) - first_sent_at as age,
          (select now from clock) as now;
