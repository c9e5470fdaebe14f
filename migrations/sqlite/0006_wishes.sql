-- What operators want of single replicas: out of leading, or to hand over.

create table cordon (
    replica text    primary key,
    at      integer not null,
    act_id  integer not null references operator_act (id)
);

-- The last hand-over asked for; it means nothing once another term is in force.
create table transfer (
    election   text    primary key,
    term       integer not null,
    to_replica text,
    act_id     integer not null references operator_act (id)
);
