-- Fenced (record). Puts back what a take of payouts without an answer may have left on the wire, and nobody sends.
-- Safe because: the caller names every payout for this receiver that it has in hand, and one task at a time takes for a
-- receiver, so whatever else stands on the wire to it under this term was never handed to anybody: no byte left. A doubt
-- stays, and the number of the try stays grown. The key of one that was tried before goes on counting: an earlier try may have
-- left. A second time there is nothing to put back.
-- $1 election, $2 term, $3 origin, $4 instructions that are kept, $5 their tries
with lost as materialized (
    select i.id, i.attempts, i.in_doubt, i.in_doubt or i.attempts > 1 as left_before
      from bursar.instruction i
     where i.election = $1
       and i.kind = 'payout'
       and i.state = 'sending'
       and i.sending_term = $2
       and i.receiver = $3
       and not exists (select from unnest($4::bigint[], $5::integer[]) as k (id, attempt)
                        where k.id = i.id and k.attempt = i.attempts)
     order by i.id
       for update of i
), tries as (
    update bursar.instruction_try y
       set ended_at = clock_timestamp(), outcome = 'not_sent'
      from lost l
     where y.instruction_id = l.id and y.attempt = l.attempts
)
update bursar.instruction i
   set state = case when l.in_doubt then 'unknown' else 'pending' end,
       first_sent_at = case when l.left_before then i.first_sent_at end,
       key_valid_until = case when l.left_before then i.key_valid_until end,
       next_attempt_at = null,
       sending_term = null
  from lost l
 where i.id = l.id;
