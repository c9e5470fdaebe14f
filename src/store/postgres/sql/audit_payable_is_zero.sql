-- Audit: merchants who are owed something after a unit.
-- $1 examples
with bad as (
    select format('journal %s leaves %s %s payable to %s', l.journal_id, sum(l.amount), l.currency, l.owner) as what
      from bursar.ledger_line l
     where l.kind = 'payable'
     group by l.journal_id, l.owner, l.currency
    having sum(l.amount) <> 0
)
select (select count(*) from bad) as violations,
       (select array_agg(b.what) from (select bad.what from bad order by bad.what limit $1) b) as examples,
       null::text as not_proven;
