-- Puts a replica's record on its lease, only while that lives. Safe to repeat.
select bursar.coordinator_register($1, $2, $3) as registered;
