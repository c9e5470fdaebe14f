-- A request for a second pair of eyes; the database role is added by the default, and compared by a trigger.
-- $1 action, $2 target, $3 request, $4 found, $5 reason, $6 user, $7 host, $8 act
insert into bursar.approval (action, target, request, found, reason, os_user, host, act_id)
values ($1, $2, $3, $4, $5, $6, $7, $8)
returning id;
