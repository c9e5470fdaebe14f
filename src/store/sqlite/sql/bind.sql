-- Binds the deployment to its coordinator, once.
update deployment set coordinator_kind = ?1, coordinator_prefix = ?2 where coordinator_kind is null;
