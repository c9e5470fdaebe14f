-- Fenced (record), after calls_record.sql. The units of calls that were an attempt at them.
-- ?1 calls: [instruction, unit, fate, error, wait in microseconds], ?2 term, ?3 batch
update unit
   set state = case when g.fate = 'done' then 'settled' when g.again is null then 'set_aside' else 'pending' end,
       attempts = case when g.fate = 'done' then unit.attempts else unit.attempts + 1 end,
       last_error = coalesce(g.error, unit.last_error),
       next_attempt_at = case when g.fate <> 'done' then (select now from clock) + g.again end,
       batch_id = case when g.fate = 'done' or g.again is null then ?3 end,
       term = case when g.fate = 'done' or g.again is null then ?2 end,
       fenced_seq = case when g.fate = 'done' or g.again is null then (select value from fenced_seq) end,
       ended_at = case when g.fate = 'done' or g.again is null then (select now from clock) end
  from (select value ->> 1 as id, value ->> 2 as fate, value ->> 3 as error, value ->> 4 as again from json_each(?1)) g
 where unit.id = g.id
   and g.fate not in ('not_sent', 'put_off');
