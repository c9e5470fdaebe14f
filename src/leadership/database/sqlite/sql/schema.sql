-- The lease file's own schema, made by whoever opens a new one, inside BEGIN IMMEDIATE: two at once make it once. The number is
-- the user_version; the application_id says whose file this is.
pragma application_id = 1651862629;
pragma user_version = 1;

-- A lease lives in one boot of the machine until expires_ms of its CLOCK_BOOTTIME.
create table lease (
    id         integer primary key check (id <> 0),
    ttl_ms     integer not null check (ttl_ms > 0),
    boot_id    text    not null,
    expires_ms integer not null
) strict;

-- One row per election. revision counts the changes of the two keys in steps of two: a lapse, which nobody writes, counts as one
-- step from there. leader_lease 0 is a leader that stands without a lease, put by hand.
create table election (
    name            text    primary key,
    revision        integer not null default 0,
    term            integer not null default 0,
    term_revision   integer not null default 0,
    leader          text,
    leader_lease    integer,
    leader_revision integer,
    accepted        text,
    check ((leader is null) = (leader_lease is null) and (leader is null) = (leader_revision is null))
) strict;

create trigger election_is_never_lowered before update of term on election when new.term < old.term
begin
    select raise(abort, 'the term issued is never lowered');
end;

-- Who is there.
create table replica (
    id     text    primary key,
    lease  integer not null,
    record text    not null
) strict;

-- The processes that open this file, so that one that is stopped in a write transaction can be told from any other process.
create table process (
    pid     integer not null,
    boot_id text    not null,
    started integer not null,
    primary key (pid, boot_id, started)
) strict;
