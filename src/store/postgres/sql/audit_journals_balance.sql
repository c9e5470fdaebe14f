-- Audit: journals whose lines do not come to zero, and postings that are none.
-- $1 examples
with bad as (
    select format('journal %s: its lines come to %s %s', l.journal_id, sum(l.amount), l.currency) as what
      from bursar.ledger_line l
     group by l.journal_id, l.currency
    having sum(l.amount) <> 0
    union all
    select format('posting %s of journal %s moves %s', p.seq, p.journal_id, p.amount)
      from bursar.posting p
     where p.amount <= 0 or (p.debit_kind, p.debit_owner) = (p.credit_kind, p.credit_owner)
    union all
    select format('posting %s of journal %s is in %s, its unit %s in %s', p.seq, p.journal_id, p.currency, u.key, u.currency)
      from bursar.posting p
      join bursar.journal j on j.id = p.journal_id
      join bursar.unit u on u.id = j.unit_id
     where p.currency is distinct from u.currency
)
select (select count(*) from bad) as violations,
       (select array_agg(b.what) from (select bad.what from bad order by bad.what limit $1) b) as examples,
       null::text as not_proven;
