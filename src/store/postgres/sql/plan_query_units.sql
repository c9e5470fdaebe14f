-- Fenced (begin). Writes one page of a run's units with their payloads. Writing it again changes nothing.
-- $1 run, $2 election, $3 keys, $4 payloads
with added as (
    insert into bursar.unit (run_id, election, key, payload)
    select $1, $2, k.key, k.payload::jsonb
      from unnest($3::text[], $4::text[]) as k (key, payload)
     order by k.key collate "C"
    on conflict (run_id, key) do nothing
    returning 1
)
select count(*) as units from added;
