-- Compares one chunk of a file with what the store has under its ids: by now everything of it is there.
-- Answers one row per difference, at most ?3, each with the counts over all of the chunk. The chunk is walked and each
-- entry found by its id (cross join: in this order).
-- ?1 source, ?2 chunk, as import_entries.sql takes it, ?3 limit
with compared as materialized (
    select g.value ->> 0 as line, e.external_id, e.merchant, e.currency, e.kind, e.amount, e.fee, e.occurred_at, e.available_at,
           e.reference, e.import_id,
           (e.merchant, e.currency, e.kind, e.amount, e.fee, e.occurred_at, e.available_at, e.reference)
           is not
           (g.value ->> 2, g.value ->> 3, g.value ->> 4, g.value ->> 5, g.value ->> 6, g.value ->> 7, g.value ->> 8, g.value ->> 9)
           as differs
      from json_each(?2) g
     cross join entry e
     where e.source = ?1 and e.external_id = g.value ->> 1 and e.withdrawn_at is null and e.reverted_at is null
), counted as (
    select count(*) as found, count(*) filter (where c.differs) as different from compared c
), shown as (
    select * from compared c where c.differs order by c.line limit ?3
)
select n.found, n.different, s.line, s.external_id, s.merchant, s.currency, s.kind, s.amount, s.fee, s.occurred_at,
       s.available_at, s.reference, s.import_id
  from counted n
  left join shown s on true
 order by s.line;
