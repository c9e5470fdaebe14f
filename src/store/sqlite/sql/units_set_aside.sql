-- Units of all runs that are set aside, in the order of ids: found in their own index, however many units there are.
-- ?1 the state: set aside, ?2 key (null: all), ?3 above this id, ?4 limit
select u.id, u.run_id, u.key, u.currency, u.state, u.attempts, u.next_attempt_at, u.last_error, u.term, u.net, u.ended_at
  from unit u indexed by unit_set_aside
 where u.state = 'set_aside'
   and u.state = ?1
   and (?2 is null or u.key = ?2)
   and u.id > coalesce(?3, 0)
 order by u.id
 limit ?4;
