-- The schema number of the file.
select coalesce(max(m.version), 0) from schema_migration m;
