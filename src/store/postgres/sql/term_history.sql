-- The accepted term, in the transaction that accepted it and after its exclusive lock: whatever lower terms wrote is
-- visible in the snapshot that the column's default takes here.
insert into bursar.term_history (election, term, tenure_id, replica, host, version, system_identifier, timeline)
select $1, $2, $3, $4, $5, $6,
       (select s.system_identifier::text from pg_control_system() s),
       ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int;
