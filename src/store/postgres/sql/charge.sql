-- Fenced (record). Charges failed attempts; a unit that waits for nothing more is set aside, in a batch row of its own.
-- Safe because: units are locked in the order of ids and looked at again; each names the attempts that it expects, so that
-- charging twice charges once.
-- $1 run, $2 election, $3 term, $4 units, $5 attempts expected, $6 errors, $7 waits in milliseconds (null: set aside)
with held as materialized (
    select u.id, g.error, g.again_ms
      from bursar.unit u
      join unnest($4::bigint[], $5::integer[], $6::text[], $7::bigint[]) as g (id, attempts, error, again_ms) on g.id = u.id
     where u.run_id = $1
       and u.election = $2
       and u.state = 'pending'
       and u.attempts = g.attempts
     order by u.id
       for update of u
), batch as (
    insert into bursar.batch (run_id, election, term, units, settled, carried, empty, set_aside, instructions)
    select $1, $2, $3, count(*), 0, 0, 0, count(*), 0
      from held h
     where h.again_ms is null
    having count(*) > 0
    returning id
), charged as (
    update bursar.unit u
       set attempts = u.attempts + 1,
           last_error = h.error,
           state = case when h.again_ms is null then 'set_aside' else 'pending' end,
           next_attempt_at = clock_timestamp() + h.again_ms * interval '1 millisecond',
           ended_at = case when h.again_ms is null then clock_timestamp() end,
           term = case when h.again_ms is null then $3 end,
           xact = case when h.again_ms is null then pg_current_xact_id() end,
           batch_id = case when h.again_ms is null then (select b.id from batch b) end
      from held h
     where u.id = h.id
    returning 1
)
select count(*) as charged from charged;
