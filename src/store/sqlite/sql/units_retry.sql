-- Sets units that are set aside back to pending: those with the keys given, or all. One whose instruction has an outcome
-- that nobody knows stays for a person. Where an instruction was final without effect, the unit's next one has a key of its
-- own (generation).
-- ?1 run, ?2 keys, a JSON array (empty: all)
update unit
   set state = 'pending', attempts = 0, next_attempt_at = null, ended_at = null, term = null, fenced_seq = null,
       batch_id = null,
       generation = generation + exists (select 1
                                           from instruction i
                                          where i.unit_id = unit.id and i.generation = unit.generation
                                            and i.state in ('rejected', 'returned'))
 where run_id = ?1
   and state = 'set_aside'
   and (json_array_length(?2) = 0 or key in (select g.value from json_each(?2) g))
   and not exists (select 1
                     from instruction i
                    where i.unit_id = unit.id and i.generation = unit.generation
                      and i.state in ('sending', 'unknown', 'held') and i.in_doubt and not i.idempotent);
