-- Acts on money wait for another role from now on. It is never ended here.
-- $1 act
update bursar.deployment d set four_eyes = true, four_eyes_act_id = $1 where not d.four_eyes;
