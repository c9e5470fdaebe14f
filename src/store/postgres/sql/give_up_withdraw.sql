-- Fenced (begin). One page of the units of a run whose planning failed, in the order of ids, past a keyset cursor: a part of what
-- was to be settled would stand in the way of the job's next run.
-- Safe because: a run that is planning was never worked on, so that nothing refers to its units.
-- $1 run, $2 election, $3 cursor, $4 limit
with page as (
    select u.id
      from bursar.unit u
     where u.run_id = $1 and u.election = $2 and u.state = 'pending' and u.id > $3
     order by u.id
     limit $4
       for update
), gone as (
    delete from bursar.unit u using page p where u.id = p.id
)
select count(*) as units, max(p.id) as last from page p;
