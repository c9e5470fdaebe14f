-- An operator's word on what came of a call, and what its unit becomes by it.
-- Safe because: the unit is locked, the states that were decided upon are named, the term is the one found under the gate, and a
-- doubt stays.
-- $1 instruction, $2 state expected, $3 new state (paid, rejected), $4 reference, $5 act, $6 term, $7 the unit's new state
with told as (
    update bursar.instruction i
       set state = $3, reason = null, external_reference = coalesce($4, i.external_reference), resolved_act_id = $5,
           next_attempt_at = null, final_at = coalesce(i.final_at, clock_timestamp())
     where i.id = $1 and i.state = $2 and i.kind = 'call'
    returning i.unit_id, i.run_id, i.election
), batch as (
    insert into bursar.batch (run_id, election, term, units, settled, carried, empty, set_aside, instructions)
    select t.run_id, t.election, $6, 1, ($7 = 'settled')::int, 0, ($7 = 'empty')::int, 0, 0 from told t
    returning id
), ended as (
    update bursar.unit u
       set state = $7, batch_id = (select b.id from batch b), term = $6, xact = pg_current_xact_id(),
           next_attempt_at = null, ended_at = clock_timestamp()
      from told t
     where u.id = t.unit_id and u.state = 'set_aside'
    returning 1
)
select (select count(*) from told) as told, (select count(*) from ended) as units;
