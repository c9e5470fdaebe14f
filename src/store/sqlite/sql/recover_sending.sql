-- What a lower term left on the wire has an unknown outcome, in doubt for good. An idempotent receiver is asked again, one that
-- can be asked for a key is asked for it; else a person finds out. Fenced, as recover_units.sql. ?1 election, ?2 term
update instruction
   set state = case when idempotent or looks_up then 'unknown' else 'held' end,
       reason = case when idempotent or looks_up then null else 'unknown' end,
       next_attempt_at = case when idempotent or looks_up then (select now from clock) end,
       last_error = 'the leader of term ' || coalesce(sending_term, 0) || ' ended before an answer was recorded',
       in_doubt = 1
 where election = ?1 and state = 'sending' and coalesce(sending_term, 0) < ?2
returning id, last_error;
