-- Whether an import was taken back before. Nobody else writes meanwhile, so it is taken back once.
-- ?1 import
select i.reverted_at from import i where i.id = ?1;
