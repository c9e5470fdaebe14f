-- Versions applied, with the checksum of the file that each came from.
select m.version, m.checksum from schema_migration m order by m.version;
