-- One act of an operator; the database role is added by the default.
insert into bursar.operator_act (os_user, host, action, target, reason, election, term, details)
values ($1, $2, $3, $4, $5, $6, $7, $8)
returning id;
