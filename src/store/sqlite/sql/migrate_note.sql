-- One version is applied; in the transaction that applies it. ?1 version, ?2 name, ?3 checksum
insert into schema_migration (version, name, checksum, applied_at) values (?1, ?2, ?3, (select now from clock));
