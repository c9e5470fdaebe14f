-- Files a request.
-- ?1 id, ?2 election, ?3 kind, ?4 act
insert into request (id, election, kind, act_id, at) select ?1, ?2, ?3, ?4, c.now from clock c;
