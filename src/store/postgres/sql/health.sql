-- What must hold before anything of the schema is asked for.
select clock_timestamp() as now,
       pg_is_in_recovery() as in_recovery,
       current_setting('default_transaction_read_only')::boolean as read_only,
       to_regclass('bursar.schema_migration') is not null as migrated,
       session_user::text as role;
