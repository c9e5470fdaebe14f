-- Deletes leases that lapsed an hour ago or in another boot; none of them can live again.
delete from lease where boot_id <> ?1 or expires_ms < ?2 - 3600000;
