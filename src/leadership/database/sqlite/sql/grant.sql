-- A lease of its own id, made by whoever asks, inside BEGIN IMMEDIATE; the clock was read after that.
insert into lease (id, ttl_ms, boot_id, expires_ms) values (?1, ?2, ?3, ?4 + ?2);
