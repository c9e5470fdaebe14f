-- Compares one chunk of a file with what the store has under its ids, by now committed or our own.
-- Answers one row per difference, at most $12, each with the counts over all of the chunk.
-- $1 source, $2 lines, $3 ids, $4 merchants, $5 currencies, $6 kinds, $7 amounts, $8 fees, $9 occurred at, $10 available at,
-- $11 references, $12 limit
with compared as materialized (
    select g.line, e.external_id, e.merchant, e.currency, e.kind, e.amount, e.fee, e.occurred_at, e.available_at, e.reference,
           e.import_id,
           (e.merchant, e.currency, e.kind, e.amount, e.fee, e.occurred_at, e.available_at, e.reference)
           is distinct from
           (g.merchant, g.currency, g.kind, g.amount, g.fee, g.occurred_at, g.available_at, g.reference) as differs
      from unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::timestamptz[], $10::timestamptz[], $11::text[])
           as g (line, id, merchant, currency, kind, amount, fee, occurred_at, available_at, reference)
      join bursar.entry e
        on e.source = $1 and e.external_id = g.id and e.withdrawn_at is null and e.reverted_at is null
), counted as (
    select count(*) as found, count(*) filter (where c.differs) as different from compared c
), shown as (
    select * from compared c where c.differs order by c.line limit $12
)
select n.found, n.different, s.line, s.external_id, s.merchant, s.currency, s.kind, s.amount, s.fee, s.occurred_at,
       s.available_at, s.reference, s.import_id
  from counted n
  left join shown s on true
 order by s.line;
