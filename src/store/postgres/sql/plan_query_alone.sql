-- Fenced (begin). One run of a job at a time plans by its query, until the transaction's end: of two runs that plan at once
-- the later one sees what the earlier one planned, and no key stands pending in both. A lock of its own class, taken after
-- the gate and before any row; the seqscan setting is for the user's query, which may have no index.
-- $1 job
select pg_advisory_xact_lock(hashtextextended('bursar.plan_query/' || $1::bigint::text, 0)),
       set_config('enable_seqscan', 'on', true);
