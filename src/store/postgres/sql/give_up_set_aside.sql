-- Fenced (begin). One page of the pending units of a run that killed too many leaders, in the order of ids, past a keyset cursor.
-- Safe because: nothing of a run that is given up is claimed, so that a page may be left at any place and gone on with.
-- $1 run, $2 election, $3 cursor, $4 limit, $5 error, $6 term
with page as (
    select u.id
      from bursar.unit u
     where u.run_id = $1 and u.election = $2 and u.state = 'pending' and u.id > $3
     order by u.id
     limit $4
       for update
), aside as (
    update bursar.unit u
       set state = 'set_aside', last_error = $5, ended_at = clock_timestamp(), term = $6, xact = pg_current_xact_id()
      from page p
     where u.id = p.id
)
select count(*) as units, max(p.id) as last from page p;
