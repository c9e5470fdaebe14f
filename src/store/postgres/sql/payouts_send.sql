-- Fenced (begin), with the payouts locked. On the wire under this term from now on; or, where only a look-up is made, left
-- as they are and not taken again before that is over.
-- Safe because: key and bytes are those of the first time (a trigger holds them); a doubt is never reset; the number of a try
-- only grows, so that no late record is taken for another try's; the key's validity counts from before the first byte. Each
-- try gets its row.
-- $1 election, $2 term, $3 origin, $4 instructions, $5 whether each is only looked up
-- $6 jobs, $7 idempotent, $8 looked up, $9 validity of a key, $10 time-out (milliseconds), $11 addresses
with sent as (
update bursar.instruction i
   set state = case when g.only_look_up then i.state else 'sending' end,
       attempts = i.attempts + 1,
       sending_term = case when g.only_look_up then null else $2::bigint end,
       next_attempt_at = case when g.only_look_up then clock_timestamp() + (3 * t.timeout_ms + 1000) * interval '1 millisecond' end,
       first_sent_at = coalesce(i.first_sent_at, clock_timestamp()),
       key_valid_until = coalesce(i.key_valid_until, clock_timestamp() + t.valid_ms * interval '1 millisecond'),
       receiver = $3,
       receiver_url = t.url,
       idempotent = t.idempotent and (i.idempotent or not i.in_doubt),
       looks_up = t.looks_up
  from unnest($4::bigint[], $5::boolean[]) as g (id, only_look_up), bursar.instruction n
  join unnest($6::bigint[], $7::boolean[], $8::boolean[], $9::bigint[], $10::bigint[], $11::text[])
       as t (job_id, idempotent, looks_up, valid_ms, timeout_ms, url) on t.job_id = n.job_id
 where i.id = g.id
   and n.id = g.id
   and i.election = $1
   and i.state in ('pending', 'unknown')
returning i.id, i.unit_id, i.run_id, (select u.batch_id from bursar.unit u where u.id = i.unit_id) as batch_id, i.job_id, i.idempotency_key, i.body, i.attempts, i.in_doubt, i.looks_up, g.only_look_up,
          (extract(epoch from least(i.key_valid_until, i.first_sent_at + t.valid_ms * interval '1 millisecond') - clock_timestamp()) * 1000)::bigint - 2 * t.timeout_ms as leaves_within_ms,
          clock_timestamp() as now
), tries as (
    insert into bursar.instruction_try (instruction_id, attempt, asked, term, receiver)
    select s.id, s.attempts, s.only_look_up, $2, $3 from sent s
)
select s.* from sent s;
