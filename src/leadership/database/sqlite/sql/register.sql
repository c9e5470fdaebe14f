-- Puts a replica's record on its lease, inside BEGIN IMMEDIATE, only while that lives by the clock read after it.
insert into replica (id, lease, record)
select ?1, ?2, ?3 where exists (select 1 from lease l where l.id = ?2 and l.boot_id = ?4 and l.expires_ms > ?5)
    on conflict (id) do update set lease = excluded.lease, record = excluded.record;
