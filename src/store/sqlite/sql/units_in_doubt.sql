-- How many units that are set aside, with the keys given or all, stay for a person: their instruction has an outcome that
-- nobody knows.
-- ?1 run, ?2 keys, a JSON array (empty: all)
select count(*) as in_doubt
  from unit u
 where u.run_id = ?1
   and u.state = 'set_aside'
   and (json_array_length(?2) = 0 or u.key in (select g.value from json_each(?2) g))
   and exists (select 1
                 from instruction i
                where i.unit_id = u.id and i.generation = u.generation
                  and i.state in ('sending', 'unknown', 'held') and i.in_doubt and not i.idempotent);
