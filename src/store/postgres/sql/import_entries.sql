-- One chunk of a file. Answers what was new, summed per currency.
-- Safe because: chunks and rows come in the byte order of ids, so that two imports of one file wait for each other in one
-- direction only; an id that is there is left as it is, and compared by the statement after this one.
-- $1 source, $2 import, $3 ids, $4 merchants, $5 currencies, $6 kinds, $7 amounts, $8 fees, $9 occurred at, $10 available at,
-- $11 references
with added as (
    insert into bursar.entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, reference, import_id)
    select $1, g.id, g.merchant, g.currency, g.kind, g.amount, g.fee, g.occurred_at, g.available_at, g.reference, $2
      from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::timestamptz[], $10::timestamptz[], $11::text[])
           as g (id, merchant, currency, kind, amount, fee, occurred_at, available_at, reference)
     order by g.id collate "C"
    on conflict (source, external_id) where withdrawn_at is null and reverted_at is null do nothing
    returning currency, amount
)
select a.currency, count(*) as rows, sum(a.amount)::text as amount
  from added a
 group by a.currency;
