-- Locks an import, so that it is taken back once.
-- $1 import
select i.reverted_at from bursar.import i where i.id = $1 for update;
