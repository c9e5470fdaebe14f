-- What must hold before anything else is asked for.
select (select now from clock) as now, (select coalesce(max(m.version), 0) from schema_migration m) as schema;
