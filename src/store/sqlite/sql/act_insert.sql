-- One act of an operator.
insert into operator_act (at, os_user, host, action, target, reason, election, term, details)
values ((select now from clock), ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
returning id;
