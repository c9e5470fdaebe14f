-- One migration is applied, in the transaction that applied it.
insert into bursar.schema_migration (version, name, checksum) values ($1, $2, $3);
