-- What operators want of single replicas: out of leading, or to hand over.

create table bursar.cordon (
    replica text        primary key,
    at      timestamptz not null default clock_timestamp(),
    act_id  bigint      not null references bursar.operator_act
);

-- The last hand-over asked for; it means nothing once another term is in force.
create table bursar.transfer (
    election   text   primary key,
    term       bigint not null,
    to_replica text,
    act_id     bigint not null references bursar.operator_act
);
