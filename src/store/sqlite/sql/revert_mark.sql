-- Marks the settled entries of an import as taken back. After their opposites were written.
-- ?1 import
update entry set reverted_at = (select c.now from clock c)
 where import_id = ?1 and withdrawn_at is null and reverted_at is null and unit_id is not null;
