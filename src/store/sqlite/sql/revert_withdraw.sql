-- Withdraws the open entries of an import.
-- ?1 import
update entry set withdrawn_at = (select c.now from clock c)
 where import_id = ?1 and withdrawn_at is null and reverted_at is null and unit_id is null;
