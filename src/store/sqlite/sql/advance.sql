-- Puts a claim in force where there is a fence. Under the file's write lock: no fenced transaction that writes is open, and
-- none begins before this one ends. One row is acceptance. ?1 election, ?2 term, ?3 tenure
update fence set term = ?2, tenure_id = ?3, accepted_at = (select now from clock) where election = ?1 and term < ?2;
