-- Takes a replica out of leading; nothing where it is already. Belongs to no term: whoever leads is told and resigns.
-- $1 replica, $2 act
insert into bursar.cordon (replica, act_id) values ($1, $2) on conflict (replica) do nothing;
