-- Takes a lease away inside BEGIN IMMEDIATE, and says whether it lived. What stands on it is absent with it.
delete from lease where id = ?1 returning boot_id = ?2 and expires_ms > ?3 as lived;
