-- Asks a term to hand over, if it is the one in force. The election's gate is held shared: nobody advances meanwhile.
-- $1 election, $2 term, $3 successor, $4 act
insert into bursar.transfer (election, term, to_replica, act_id)
select f.election, f.term, $3, $4 from bursar.fence f where f.election = $1 and f.term = $2
on conflict (election) do update
    set term = excluded.term, to_replica = excluded.to_replica, act_id = excluded.act_id;
