-- What of an import is to be taken back.
-- ?1 import
select count(*) as taken from entry e where e.import_id = ?1 and e.withdrawn_at is null and e.reverted_at is null;
