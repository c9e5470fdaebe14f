-- Fenced (begin), behind a savepoint. One page of what a user's query for units gives, past a key, in byte order; those
-- without a key come first, and are found out by the caller.
-- Safe because: it is one prepared statement with the query as a sub-select, so it can neither end the transaction nor bring
-- another statement along; it runs with the rights of bursar's own role, no more. Keys that the same job has pending or set
-- aside in another run are marked and left out by the caller, for a retry may settle them there; planning one at a time
-- (plan_query_alone.sql) makes what another run planned visible here. The two states stand apart, since that is how they have an
-- index each: history grows, and what is pending or set aside does not.
-- $1 run, $2 job, $3 last key of the page before (null: the first page), $4 limit
with elsewhere as materialized (
    select u.key
      from bursar.unit u
      join bursar.run r on r.id = u.run_id
     where r.job_id = $2
       and u.run_id <> $1
       and (u.state = 'pending' or u.state = 'set_aside')
)
select p.key, p.payload, exists (select from elsewhere e where e.key = p.key) as elsewhere
  from (select q.key::text collate "C" as key, q.payload::jsonb::text as payload
          from (
-- In place of what stands between these two lines, the user's query.
select null::text as key, null::jsonb as payload
-- To here.
               ) q) p
 where (p.key is null or $3::text is null or p.key > $3)
 order by p.key nulls first
 limit $4;
