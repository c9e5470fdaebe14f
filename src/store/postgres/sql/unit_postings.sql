-- The lines of a unit's journals, oldest first.
-- $1 unit, $2 limit
select j.kind, j.generation, j.term, p.debit_kind, p.debit_owner, p.credit_kind, p.credit_owner, p.currency, p.amount
  from bursar.journal j
  join bursar.posting p on p.journal_id = j.id
 where j.unit_id = $1
 order by j.id, p.seq
 limit $2;
