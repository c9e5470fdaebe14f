-- Fenced (begin). Writes the instructions of locked units, or takes them up again: on the wire under this term from now on.
-- Safe because: the row is unique per unit, kind and generation; one that is on the wire, held or final is left alone; key
-- and bytes are those of the first time (a trigger holds them); a doubt is never reset. Each try gets its row.
-- $1 run, $2 election, $3 term, $4 job, $5 value date, $6 idempotent, $7 units, $8 generations, $9 keys, $10 bodies
with sent as (
insert into bursar.instruction as i
       (unit_id, run_id, job_id, election, kind, generation, idempotency_key, body, value_date, idempotent, state, attempts,
        first_sent_at, term, sending_term)
select g.unit_id, $1, $4, $2, 'call', g.generation, g.key, g.body, $5, $6, 'sending', 1, clock_timestamp(), $3, $3
  from unnest($7::bigint[], $8::integer[], $9::text[], $10::bytea[]) as g (unit_id, generation, key, body)
 order by g.unit_id
on conflict on constraint instruction_one_per_unit_and_kind do update
   set state = 'sending',
       attempts = i.attempts + 1,
       sending_term = $3,
       next_attempt_at = null,
       first_sent_at = coalesce(i.first_sent_at, clock_timestamp())
 where i.state in ('pending', 'unknown')
   and (i.next_attempt_at is null or i.next_attempt_at <= clock_timestamp())
returning i.id, i.unit_id, i.idempotency_key, i.attempts, i.in_doubt, i.body,
          extract(epoch from clock_timestamp() - i.first_sent_at)::double precision as age
), tries as (
    insert into bursar.instruction_try (instruction_id, attempt, asked, term)
    select s.id, s.attempts, false, $3 from sent s
)
select s.* from sent s;
