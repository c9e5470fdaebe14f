-- Fenced (begin). Writes one page of a run's units from given keys, in their byte order. Writing it again changes nothing.
-- $1 run, $2 election, $3 keys
with added as (
    insert into bursar.unit (run_id, election, key)
    select $1, $2, k.key
      from unnest($3::text[]) as k (key)
     order by k.key collate "C"
    on conflict (run_id, key) do nothing
    returning 1
)
select count(*) as units from added;
