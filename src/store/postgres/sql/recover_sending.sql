-- What a lower term left on the wire has an unknown outcome, in doubt for good. An idempotent receiver is asked again, one
-- that can be asked for a key is asked for it; else a person finds out, and a unit that waits for it is set aside (a payout's
-- unit waits for nothing). Fenced: no lower term can still send or record, for its
-- transactions are refused; the units are locked already.
with lost as (
    update bursar.instruction i
       set state = case when i.idempotent or i.looks_up then 'unknown' else 'held' end,
           reason = case when i.idempotent or i.looks_up then null else 'unknown' end,
           next_attempt_at = case when i.idempotent or i.looks_up then clock_timestamp() end,
           last_error = 'the leader of term ' || coalesce(i.sending_term, 0) || ' ended before an answer was recorded',
           in_doubt = true
     where i.election = $1 and i.state = 'sending' and coalesce(i.sending_term, 0) < $2
 returning i.id, i.attempts, i.unit_id, i.state, i.last_error
), tries as (
    update bursar.instruction_try y
       set ended_at = clock_timestamp(), outcome = 'unknown', detail = lost.last_error
      from lost
     where y.instruction_id = lost.id and y.attempt = lost.attempts
), aside as (
    update bursar.unit u
       set state = 'set_aside', last_error = lost.last_error, ended_at = clock_timestamp(), term = $2,
           xact = pg_current_xact_id()
      from lost
     where u.id = lost.unit_id and lost.state = 'held' and u.state = 'pending'
 returning u.id
)
select count(*) from lost;
