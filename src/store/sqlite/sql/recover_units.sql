-- Units whose call a lower term left on the wire, to a receiver that is not idempotent
-- and cannot be asked, wait for a person (a payout's unit waits for nothing: it is settled). Fenced: no lower
-- term can still send or record, for its transactions are refused. Before recover_sending.sql. ?1 election, ?2 term
update unit
   set state = 'set_aside',
       last_error = (select 'the leader of term ' || coalesce(i.sending_term, 0) || ' ended before an answer was recorded'
                       from instruction i
                      where i.unit_id = unit.id and i.state = 'sending' and coalesce(i.sending_term, 0) < ?2),
       ended_at = (select now from clock),
       term = ?2,
       fenced_seq = (select value from fenced_seq)
 where state = 'pending'
   and id in (select i.unit_id from instruction i
               where i.election = ?1 and i.state = 'sending' and coalesce(i.sending_term, 0) < ?2 and not (i.idempotent or i.looks_up));
