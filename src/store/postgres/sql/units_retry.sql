-- Sets units that are set aside back to pending: those with the keys given, or all. One whose instruction has an outcome
-- that nobody knows stays for a person. Where an instruction was final without effect, the unit's next one has a key of its
-- own (generation); one that waits for a person and was surely not carried out is pending again.
with chosen as (
    select u.id, u.generation,
           exists (select from bursar.instruction i
                    where i.unit_id = u.id and i.generation = u.generation
                      and i.state in ('sending', 'unknown', 'held') and i.in_doubt and not i.idempotent) as in_doubt,
           exists (select from bursar.instruction i
                    where i.unit_id = u.id and i.generation = u.generation
                      and i.state in ('rejected', 'returned')) as without_effect
      from bursar.unit u
     where u.run_id = $1 and u.state = 'set_aside' and (cardinality($2::text[]) = 0 or u.key = any ($2::text[]))
     order by u.id
       for update
), retried as (
    update bursar.unit u
       set state = 'pending', attempts = 0, next_attempt_at = null, ended_at = null, term = null, xact = null,
           batch_id = null,
           generation = u.generation + case when c.without_effect then 1 else 0 end
      from chosen c
     where u.id = c.id and not c.in_doubt
 returning u.id, c.generation
), resumed as (
    update bursar.instruction i
       set state = case when i.in_doubt then 'unknown' else 'pending' end, reason = null, next_attempt_at = null
      from retried t
     where i.unit_id = t.id and i.generation = t.generation and i.kind = 'call' and i.state = 'held'
 returning i.id
)
select (select count(*) from retried) as retried, (select count(*) from chosen where in_doubt) as in_doubt;
