-- Fenced (begin). The payouts. Unique per unit, kind and generation, and by key; a trigger asks for the term once more.
-- ?1 run, ?2 election, ?3 term, ?4 job, ?5 payouts: [unit, generation, key, merchant, currency, amount, body, state, reason],
-- ?6 release, ?7 value date
insert into instruction
       (unit_id, run_id, job_id, election, kind, generation, idempotency_key, merchant, currency, amount, body, value_date,
        state, reason, release, term, created_at, fenced_seq)
select g.value ->> 0, ?1, ?4, ?2, 'payout', g.value ->> 1, g.value ->> 2, g.value ->> 3, g.value ->> 4, g.value ->> 5,
       cast(g.value ->> 6 as blob), ?7, g.value ->> 7, g.value ->> 8, ?6, ?3, c.now, s.value
  from json_each(?5) g, clock c, fenced_seq s;
