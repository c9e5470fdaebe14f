-- Takes back the entries of an import, all of them locked: what is open is withdrawn; what is settled is marked, and its
-- opposite written, available now, for the job that settled it and for no other (whatever sources that job selects).
-- Safe because: a statement after the lock, so that it sees for each entry whether a batch has bound it.
-- $1 import
with taken as materialized (
    select e.id, e.unit_id from bursar.entry e where e.import_id = $1 and e.withdrawn_at is null and e.reverted_at is null
), withdrawn as (
    update bursar.entry e set withdrawn_at = clock_timestamp() from taken t where e.id = t.id and t.unit_id is null
    returning 1
), marked as (
    update bursar.entry e set reverted_at = clock_timestamp() from taken t where e.id = t.id and t.unit_id is not null
    returning e.id, e.source, e.external_id, e.merchant, e.currency, e.amount, e.fee, e.unit_id
), opposite as (
    insert into bursar.entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, reference, job_id)
    select 'bursar', 'revert:' || $1::text || ':' || m.id::text, m.merchant, m.currency, 'adjustment', -m.amount, -m.fee,
           clock_timestamp(), clock_timestamp(), m.source || '/' || m.external_id, r.job_id
      from marked m
      join bursar.unit u on u.id = m.unit_id
      join bursar.run r on r.id = u.run_id
     order by m.id
    returning 1
)
select (select count(*) from taken)     as taken,
       (select count(*) from withdrawn) as withdrawn,
       (select count(*) from marked)    as marked,
       (select count(*) from opposite)  as adjusted;
