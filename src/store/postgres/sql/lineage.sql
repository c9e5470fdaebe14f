-- Where the store stands. The position is the flushed one: it outlives a crash, where the insert position may not. The timeline
-- comes from the insert position's file name: pg_control_checkpoint() lags behind it.
select (select s.system_identifier::text from pg_control_system() s) as system_identifier,
       ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int as timeline,
       (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint as position;
