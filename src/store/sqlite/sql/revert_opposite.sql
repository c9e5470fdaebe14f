-- The opposites of the settled entries of an import, available now, for the job that settled each and for no other
-- (whatever sources that job selects). Before they are marked.
-- ?1 import
insert into entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, reference, job_id)
select 'bursar', 'revert:' || e.import_id || ':' || e.id, e.merchant, e.currency, 'adjustment', -e.amount, -e.fee,
       (select c.now from clock c), (select c.now from clock c), e.source || '/' || e.external_id, r.job_id
  from entry e
  join unit u on u.id = e.unit_id
  join run r on r.id = u.run_id
 where e.import_id = ?1 and e.withdrawn_at is null and e.reverted_at is null
 order by e.id;
