-- Fenced (begin). Locks units of an outside handler that are due: never called, or to be called again now. Those with attempts
-- behind them, or put back with a wait, come after all others, in the order of their waits: one that fails again and again, or
-- that its receiver stops for, keeps no other waiting.
-- Safe because: what is taken is decided by the upsert that follows, on the instruction's own row; this only chooses.
-- $1 run, $2 election, $3 limit
with fresh as materialized (
    select u.id, u.key, u.attempts, u.generation, u.payload::text as payload
      from bursar.unit u
      -- One look per unit, whatever the planner thinks that it knows: hence the fence of OFFSET.
      left join lateral (
           select i.id, i.state, i.next_attempt_at
             from bursar.instruction i
            where i.unit_id = u.id and i.kind = 'call' and i.generation = u.generation
           offset 0) i on true
     where u.run_id = $1
       and u.election = $2
       and u.state = 'pending'
       and u.attempts = 0
       and (u.next_attempt_at is null or u.next_attempt_at <= clock_timestamp())
       and (i.id is null
            or (i.state = 'pending' and i.next_attempt_at is null)
            or (i.state = 'unknown' and (i.next_attempt_at is null or i.next_attempt_at <= clock_timestamp())))
       and exists (select from bursar.run r where r.id = $1 and r.election = $2 and r.state = 'open' and r.why is null)
     order by u.id
     limit $3
       for update of u skip locked
), tried as materialized (
    select u.id, u.key, u.attempts, u.generation, u.payload::text as payload
      from bursar.unit u
      left join lateral (
           select i.id, i.state, i.next_attempt_at
             from bursar.instruction i
            where i.unit_id = u.id and i.kind = 'call' and i.generation = u.generation
           offset 0) i on true
     where u.run_id = $1
       and u.election = $2
       and u.state = 'pending'
       and (u.attempts > 0 or (i.state = 'pending' and i.next_attempt_at is not null))
       and (u.next_attempt_at is null or u.next_attempt_at <= clock_timestamp())
       and (i.id is null
            or (i.state in ('pending', 'unknown') and (i.next_attempt_at is null or i.next_attempt_at <= clock_timestamp())))
       and exists (select from bursar.run r where r.id = $1 and r.election = $2 and r.state = 'open' and r.why is null)
     order by coalesce(i.next_attempt_at, u.next_attempt_at) nulls first, u.id
     limit $3 - (select count(*) from fresh)
       for update of u skip locked
)
select f.id, f.key, f.attempts, f.generation, f.payload from fresh f
union all
select t.id, t.key, t.attempts, t.generation, t.payload from tried t
 order by id;
