-- Fenced (begin). Writes one page of a run's units, in the order given. Writing it again changes nothing.
-- ?1 run, ?2 election, ?3 units: [key, merchant, currency, payload as text]
insert into unit (run_id, election, key, merchant, currency, payload)
select ?1, ?2, u.value ->> 0, u.value ->> 1, u.value ->> 2, u.value ->> 3
  from json_each(?3) u
 where true
 order by u.key
on conflict (run_id, key) do nothing;
