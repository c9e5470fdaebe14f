-- Fenced (record). Puts back what a take of calls without an answer may have left on the wire, and nobody makes.
-- Safe because: the caller names every call of the run that it has in hand, and one task at a time takes calls of a run, so
-- whatever else stands on the wire under this term was never handed to anybody; units are locked before instructions, in
-- the order of ids; and a call is put back as one of which no byte left: a doubt stays, no attempt is charged, and the
-- number of its try stays grown. A second time there is nothing to put back.
-- $1 run, $2 election, $3 term, $4 instructions that are kept, $5 their tries
with kept as materialized (
    select k.id, k.attempt from unnest($4::bigint[], $5::integer[]) as k (id, attempt)
), held as materialized (
    select u.id, u.attempts
      from bursar.unit u
     where u.id in (select i.unit_id
                      from bursar.instruction i
                     where i.run_id = $1
                       and i.election = $2
                       and i.kind = 'call'
                       and i.state = 'sending'
                       and i.sending_term = $3
                       and not exists (select from kept k where k.id = i.id and k.attempt = i.attempts))
       and u.run_id = $1
       and u.election = $2
       and u.state = 'pending'
     order by u.id
       for update of u
), tries as (
    update bursar.instruction_try y
       set ended_at = clock_timestamp(), outcome = 'not_sent'
      from held h
      join bursar.instruction i on i.unit_id = h.id
     where i.run_id = $1
       and i.election = $2
       and i.kind = 'call'
       and i.state = 'sending'
       and i.sending_term = $3
       and not exists (select from kept k where k.id = i.id and k.attempt = i.attempts)
       and y.instruction_id = i.id
       and y.attempt = i.attempts
)
update bursar.instruction i
   set state = case when i.in_doubt then 'unknown' else 'pending' end,
       first_sent_at = case when i.in_doubt or h.attempts > 0
                                 or exists (select from bursar.instruction_try y where y.instruction_id = i.id and y.outcome <> 'not_sent')
                                then i.first_sent_at end,
       next_attempt_at = null,
       sending_term = null
  from held h
 where i.unit_id = h.id
   and i.run_id = $1
   and i.election = $2
   and i.kind = 'call'
   and i.state = 'sending'
   and i.sending_term = $3
   and not exists (select from kept k where k.id = i.id and k.attempt = i.attempts);
