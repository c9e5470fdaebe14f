-- The schema number of the database.
select coalesce(max(m.version), 0) from bursar.schema_migration m;
