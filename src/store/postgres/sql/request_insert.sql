-- Files a request.
insert into bursar.request (election, kind, act_id) values ($1, $2, $3) returning id;
