-- Whether acts on money wait for another role, and the role that asks.
select d.four_eyes, session_user::text as role from bursar.deployment d;
