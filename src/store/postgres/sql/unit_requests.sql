-- A unit's instructions with what is kept of their tries, oldest first.
-- $1 unit, $2 limit
select i.idempotency_key, i.kind, i.generation, i.state, i.reason, i.release, i.attempts, i.in_doubt, i.first_sent_at,
       i.next_attempt_at, i.receiver, i.external_reference, i.last_error, i.value_date, i.term, i.sending_term, i.created_at, i.final_at
  from bursar.instruction i
 where i.unit_id = $1
 order by i.id
 limit $2;
