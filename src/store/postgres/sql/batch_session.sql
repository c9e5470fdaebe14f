-- Fenced (begin), before a user's statement over a batch. Names the units that this transaction holds, until its end, and says
-- what the session has already: the view over them, and a statement that a batch before left prepared when it failed.
-- The transaction's id is compared with batch_after.sql's. The seqscan setting is for the user's own tables.
-- $1 units
select pg_current_xact_id()::text as xact,
       to_regclass('pg_temp.bursar_batch') is not null as has_view,
       exists (select from pg_prepared_statements s where s.name = 'bursar_settle') as has_statement,
       set_config('bursar.batch', ($1::bigint[])::text, true) as batch,
       set_config('enable_seqscan', 'on', true) as seqscan;
