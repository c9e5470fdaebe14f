-- Fenced (begin). One page of what a user's query for units gives, past a key, in byte order; those without a key come first,
-- and are found out by the caller.
-- Safe because: the query is a sub-select of one statement and was seen to be one itself. Keys that the same job has pending
-- or set aside in another run are marked and left out by the caller, for a retry may settle them there; found in the small
-- indexes of those states.
-- ?1 run, ?2 job, ?3 last key of the page before (null: the first page), ?4 limit
select p.key, p.payload,
       coalesce(p.key in (select u.key
                            from unit u indexed by unit_pending
                            join run r on r.id = u.run_id
                           where r.job_id = ?2 and u.run_id <> ?1 and u.state = 'pending'
                           union all
                          select u.key
                            from unit u indexed by unit_set_aside
                            join run r on r.id = u.run_id
                           where r.job_id = ?2 and u.run_id <> ?1 and u.state = 'set_aside'), 0) as elsewhere
  from (select cast(q.key as text) as key, json(q.payload) as payload
          from (
-- In place of what stands between these two lines, the user's query.
select null as key, null as payload
-- To here.
               ) q) p
 where (p.key is null or ?3 is null or p.key > ?3)
 order by p.key
 limit ?4;
