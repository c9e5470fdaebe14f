-- Marks an import, locked, as taken back.
-- $1 import, $2 reason, $3 act
update bursar.import i
   set reverted_at = clock_timestamp(), revert_reason = $2, revert_act_id = $3
 where i.id = $1 and i.reverted_at is null;
