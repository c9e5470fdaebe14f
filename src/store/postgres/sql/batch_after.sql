-- Fenced (begin), after a user's statement over a batch: the transaction that it was in, compared with the one before.
select pg_current_xact_id()::text as xact, set_config('enable_seqscan', 'off', true) as seqscan;
