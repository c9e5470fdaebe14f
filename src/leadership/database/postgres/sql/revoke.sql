-- Takes the lease away under its row lock. Safe to repeat: the second answers false.
select bursar.coordinator_revoke($1) as lived;
