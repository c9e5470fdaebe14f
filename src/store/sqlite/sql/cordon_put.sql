-- Takes a replica out of leading; nothing where it is already. Belongs to no term: whoever leads is told and resigns.
-- ?1 replica, ?2 act
insert into cordon (replica, at, act_id) values (?1, (select now from clock), ?2) on conflict (replica) do nothing;
