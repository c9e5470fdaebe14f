-- Fenced (begin). What of a run is pending: how many units, how many of them never tried, and the first wait.
-- A statement after the lock on the run, so that it sees what was committed before it.
-- A unit of an outside handler was tried once it has an instruction; what is on the wire waits for nothing here.
-- $1 run, $2 election
select count(*) as units,
       count(*) filter (where u.attempts = 0 and i.id is null) as fresh,
       (extract(epoch from min(greatest(u.next_attempt_at, i.next_attempt_at) - clock_timestamp())
                           filter (where i.state is distinct from 'sending')) * 1000)::bigint as next_in_ms
  from bursar.unit u
  -- One look per unit, whatever the planner thinks that it knows: hence the fence of OFFSET.
  left join lateral (
       select i.id, i.state, i.next_attempt_at
         from bursar.instruction i
        where i.unit_id = u.id and i.kind = 'call' and i.generation = u.generation
       offset 0) i on true
 where u.run_id = $1
   and u.election = $2
   and u.state = 'pending';
