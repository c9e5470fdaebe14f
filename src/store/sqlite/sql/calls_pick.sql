-- Fenced (begin). Units of an outside handler that are due: never called, or to be called again now. Those with attempts behind
-- them, or put back with a wait, come after all others, in the order of their waits: one that fails again and again, or that its
-- receiver stops for, keeps no other waiting.
-- Safe because: nobody else writes until the transaction's end. ?1 run, ?2 election, ?3 limit
select f.id, f.key, f.attempts, f.generation, f.payload
  from (select u.id, u.key, u.attempts, u.generation, u.payload
          from unit u
          left join instruction i on i.unit_id = u.id and i.kind = 'call' and i.generation = u.generation
         where u.run_id = ?1
           and u.election = ?2
           and u.state = 'pending'
           and u.attempts = 0
           and (u.next_attempt_at is null or u.next_attempt_at <= (select now from clock))
           and (i.id is null
                or (i.state = 'pending' and i.next_attempt_at is null)
                or (i.state = 'unknown'
                    and (i.next_attempt_at is null or i.next_attempt_at <= (select now from clock))))
           and exists (select 1 from run r where r.id = ?1 and r.election = ?2 and r.state = 'open' and r.why is null)
         order by u.id
         limit ?3) f
union all
select t.id, t.key, t.attempts, t.generation, t.payload
  from (select u.id, u.key, u.attempts, u.generation, u.payload
          from unit u
          left join instruction i on i.unit_id = u.id and i.kind = 'call' and i.generation = u.generation
         where u.run_id = ?1
           and u.election = ?2
           and u.state = 'pending'
           and (u.attempts > 0 or (i.state = 'pending' and i.next_attempt_at is not null))
           and (u.next_attempt_at is null or u.next_attempt_at <= (select now from clock))
           and (i.id is null
                or (i.state in ('pending', 'unknown')
                    and (i.next_attempt_at is null or i.next_attempt_at <= (select now from clock))))
           and exists (select 1 from run r where r.id = ?1 and r.election = ?2 and r.state = 'open' and r.why is null)
         order by coalesce(i.next_attempt_at, u.next_attempt_at), u.id
         limit ?3) t
 limit ?3;
