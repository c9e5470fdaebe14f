-- Marks an import as taken back.
-- ?1 import, ?2 reason, ?3 act
update import set reverted_at = (select c.now from clock c), revert_reason = ?2, revert_act_id = ?3 where id = ?1 and reverted_at is null;
