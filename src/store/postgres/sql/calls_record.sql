-- Fenced (record). What came of calls, each with the state of its unit.
-- Safe because: units are locked before instructions, in the order of ids; a try is recorded only while it is on the wire
-- under this term and is the one that is named, so that recording it twice records it once; a doubt, once there, stays.
-- Fates: done, failed, not_sent (perhaps with a wait), put_off (no attempt, but its key counts), unknown. A wait of null sets the unit aside (failed, unknown).
-- Where no byte of any try left (none was charged, is in doubt, or was put off), the key has not begun to count.
-- A failed try of an instruction that is in doubt from before proves nothing about the earlier one: unknown again, or held.
-- $1 run, $2 election, $3 term, $4 instructions, $5 tries, $6 fates, $7 errors, $8 waits in milliseconds
with given as materialized (
    select g.id, g.attempt, g.fate, g.error, g.again_ms
      from unnest($4::bigint[], $5::integer[], $6::text[], $7::text[], $8::bigint[]) as g (id, attempt, fate, error, again_ms)
), named as materialized (
    select i.unit_id from given g join bursar.instruction i on i.id = g.id order by i.unit_id
), held as materialized (
    -- One by one, by their ids alone: of tables that it knows nothing of yet the server would take a run's index, and read all that
    -- is pending of a large run once per call.
    select u.id, u.attempts
      from named n
     cross join lateral (select * from bursar.unit u where u.id = n.unit_id limit 1 for update) u
     where u.run_id = $1
       and u.election = $2
       and u.state = 'pending'
), told as (
    update bursar.instruction i
       set state = case
               when g.fate = 'done' then 'paid'
               when g.fate = 'unknown' and g.again_ms is null then 'held'
               when g.fate = 'unknown' then 'unknown'
               when g.fate = 'failed' and g.again_ms is null and i.in_doubt then 'held'
               when g.fate = 'failed' and g.again_ms is null then 'rejected'
               when i.in_doubt then 'unknown'
               else 'pending'
           end,
           reason = case when g.again_ms is null and (g.fate = 'unknown' or (g.fate = 'failed' and i.in_doubt)) then 'unknown' end,
           in_doubt = i.in_doubt or g.fate = 'unknown',
           last_error = coalesce(g.error, i.last_error),
           first_sent_at = case when g.fate <> 'not_sent' or i.in_doubt or h.attempts > 0
                                 or exists (select from bursar.instruction_try y where y.instruction_id = i.id and y.outcome <> 'not_sent')
                                then i.first_sent_at end,
           next_attempt_at = clock_timestamp() + g.again_ms * interval '1 millisecond',
           sending_term = null,
           final_at = case when g.fate = 'done' or (g.fate = 'failed' and g.again_ms is null and not i.in_doubt)
                           then clock_timestamp() end
      from given g, held h
     where i.id = g.id
       and i.unit_id = h.id
       and i.run_id = $1
       and i.election = $2
       and i.kind = 'call'
       and i.state = 'sending'
       and i.sending_term = $3
       and i.attempts = g.attempt
    returning i.id, i.attempts, i.unit_id, g.fate, g.error, g.again_ms
), tries as (
    update bursar.instruction_try y
       set ended_at = clock_timestamp(), outcome = case t.fate when 'put_off' then 'undone' else t.fate end, detail = t.error
      from told t
     where y.instruction_id = t.id and y.attempt = t.attempts
), batch as (
    insert into bursar.batch (run_id, election, term, units, settled, carried, empty, set_aside, instructions)
    select $1, $2, $3, count(*), count(*) filter (where t.fate = 'done'), 0, 0, count(*) filter (where t.fate <> 'done'), 0
      from told t
     where t.fate = 'done' or (t.fate in ('failed', 'unknown') and t.again_ms is null)
    having count(*) > 0
    returning id
), ended as (
    update bursar.unit u
       set state = case when t.fate = 'done' then 'settled' when t.again_ms is null then 'set_aside' else 'pending' end,
           attempts = case when t.fate = 'done' then u.attempts else u.attempts + 1 end,
           last_error = coalesce(t.error, u.last_error),
           next_attempt_at = case when t.fate <> 'done' then clock_timestamp() + t.again_ms * interval '1 millisecond' end,
           batch_id = case when t.fate = 'done' or t.again_ms is null then (select b.id from batch b) end,
           term = case when t.fate = 'done' or t.again_ms is null then $3 end,
           xact = case when t.fate = 'done' or t.again_ms is null then pg_current_xact_id() end,
           ended_at = case when t.fate = 'done' or t.again_ms is null then clock_timestamp() end
      from told t
     where u.id = t.unit_id
       and t.fate not in ('not_sent', 'put_off')
    returning 1
)
select (select count(*) from told)  as recorded,
       (select count(*) from told t where t.fate not in ('not_sent', 'put_off')) as expected,
       (select count(*) from ended) as units;
