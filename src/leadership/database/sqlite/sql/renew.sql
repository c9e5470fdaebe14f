-- One conditional update inside BEGIN IMMEDIATE: only a lease that lives by the clock read after that.
update lease set expires_ms = ?3 + ttl_ms where id = ?1 and boot_id = ?2 and expires_ms > ?3 returning ttl_ms;
