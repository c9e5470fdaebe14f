-- The newest other import of the same bytes.
-- ?1 source, ?2 sha256, ?3 not this one
select max(i.id) from import i where i.source = ?1 and i.sha256 = ?2 and i.id <> ?3;
