-- Whose file this is and which schema it has; 0 and 0 of a new one. Reads the header alone.
select (select application_id from pragma_application_id) as application_id,
       (select user_version from pragma_user_version) as user_version,
       (select count(*) from sqlite_schema) as objects;
