-- Versions applied, with the checksum of the file that each came from.
create table if not exists schema_migration (
    version    integer primary key,
    name       text    not null,
    checksum   text    not null,
    applied_at integer not null
) strict;
