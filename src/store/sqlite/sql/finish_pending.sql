-- Fenced (begin). What of a run is pending: how many units, how many of them never tried, and the first wait.
-- A unit of an outside handler was tried once it has an instruction; what is on the wire waits for nothing here.
-- ?1 run, ?2 election
select count(*) as units,
       count(*) filter (where u.attempts = 0 and i.id is null) as fresh,
       (min(max(coalesce(u.next_attempt_at, i.next_attempt_at), coalesce(i.next_attempt_at, u.next_attempt_at)))
            filter (where i.state is not 'sending') - (select now from clock)) / 1000 as next_in_ms
  from unit u
  left join instruction i on i.unit_id = u.id and i.kind = 'call' and i.generation = u.generation
 where u.run_id = ?1
   and u.election = ?2
   and u.state = 'pending';
