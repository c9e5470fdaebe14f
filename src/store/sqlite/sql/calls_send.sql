-- Fenced (begin). Writes the instructions of units that have none: on the wire under this term from now on.
-- Safe because: the row is unique per unit, kind and generation, and a trigger asks for the term once more.
-- ?1 run, ?2 election, ?3 term, ?4 units: [id, generation, key, body], ?5 job, ?6 value date, ?7 idempotent
insert into instruction
       (unit_id, run_id, job_id, election, kind, generation, idempotency_key, body, value_date, idempotent, state, attempts,
        first_sent_at, term, sending_term, created_at, fenced_seq)
select g.value ->> 0, ?1, ?5, ?2, 'call', g.value ->> 1, g.value ->> 2, cast(g.value ->> 3 as blob), ?6, ?7, 'sending', 1,
       c.now, ?3, ?3, c.now, s.value
  from json_each(?4) g, clock c, fenced_seq s
 where not exists (select 1 from instruction i
                    where i.unit_id = g.value ->> 0 and i.kind = 'call' and i.generation = g.value ->> 1)
returning id, unit_id, idempotency_key, body, attempts, in_doubt,
          ((select now from clock) - first_sent_at) / 1000000.0 as age;
