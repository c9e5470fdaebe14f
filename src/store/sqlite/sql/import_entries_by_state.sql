-- What became of an import's entries.
-- ?1 import
select count(*) filter (where e.unit_id is null and e.withdrawn_at is null)        as open,
       count(*) filter (where e.unit_id is not null and e.reverted_at is null)     as settled,
       count(*) filter (where e.withdrawn_at is not null)                          as withdrawn,
       count(*) filter (where e.reverted_at is not null)                           as reverted
  from entry e
 where e.import_id = ?1;
