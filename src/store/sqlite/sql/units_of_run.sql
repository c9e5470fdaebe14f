-- Units of one run, in the order of ids. Apart from those of all runs: a statement is planned before its values are known.
-- ?1 run, ?2 state, ?3 key (null: all), ?4 above this id, ?5 limit
select u.id, u.run_id, u.key, u.currency, u.state, u.attempts, u.next_attempt_at, u.last_error, u.term, u.net, u.ended_at
  from unit u
 where u.run_id = ?1
   and (?2 is null or u.state = ?2)
   and (?3 is null or u.key = ?3)
   and (?4 is null or u.id > ?4)
 order by u.id
 limit ?5;
