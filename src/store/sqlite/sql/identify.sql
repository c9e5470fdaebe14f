-- What a file says that it is, before anything in it is touched.
select (select application_id from pragma_application_id) as application_id,
       (select count(*) from sqlite_schema) as tables,
       (select count(*) from sqlite_schema where type = 'table' and name = 'schema_migration') as migrated;
