-- Units, in the order of ids.
-- $1 run, $2 state, $3 key (null: all), $4 above this id, $5 limit
select u.id, u.run_id, u.key, u.currency, u.state, u.attempts, u.next_attempt_at, u.last_error, u.term, u.net, u.ended_at
  from bursar.unit u
 where ($1::bigint is null or u.run_id = $1)
   and ($2::text is null or u.state = $2)
   and ($3::text is null or u.key = $3)
   and ($4::bigint is null or u.id > $4)
 order by u.id
 limit $5;
