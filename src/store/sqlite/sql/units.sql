-- Units of all runs, in the order of ids.
-- ?1 state, ?2 key (null: all), ?3 above this id, ?4 limit
select u.id, u.run_id, u.key, u.currency, u.state, u.attempts, u.next_attempt_at, u.last_error, u.term, u.net, u.ended_at
  from unit u
 where (?1 is null or u.state = ?1)
   and (?2 is null or u.key = ?2)
   and u.id > coalesce(?3, 0)
 order by u.id
 limit ?4;
