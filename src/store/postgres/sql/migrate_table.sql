-- What was applied. Lives with everything else in the schema bursar.
set local client_min_messages = warning;
create schema if not exists bursar;
create table if not exists bursar.schema_migration (
    version    bigint      primary key,
    name       text        not null,
    checksum   text        not null,
    applied_at timestamptz not null default clock_timestamp()
);
