-- Calls that wait for a person and were surely not carried out, or may be tried again, are pending once their unit is.
-- Before the units are set back: it finds them by their state, as units_retry.sql does, and changes nothing that it looks at.
-- ?1 run, ?2 keys, a JSON array (empty: all)
update instruction
   set state = case when in_doubt then 'unknown' else 'pending' end, reason = null, next_attempt_at = null
 where kind = 'call'
   and state = 'held'
   and (unit_id, generation) in (
       select u.id, u.generation
         from unit u
        where u.run_id = ?1
          and u.state = 'set_aside'
          and (json_array_length(?2) = 0 or u.key in (select g.value from json_each(?2) g))
          and not exists (select 1
                            from instruction i
                           where i.unit_id = u.id and i.generation = u.generation
                             and i.state in ('sending', 'unknown', 'held') and i.in_doubt and not i.idempotent));
