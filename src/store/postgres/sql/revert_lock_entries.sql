-- Locks what is to be taken back, in the order of ids, as a batch that binds entries does.
-- $1 import
select count(*)
  from (select e.id
          from bursar.entry e
         where e.import_id = $1 and e.withdrawn_at is null and e.reverted_at is null
         order by e.id
           for update) e;
