-- Fenced (begin), after settle_journals.sql. Their lines.
-- ?1 postings: [unit, generation, seq, debit kind, owner, credit kind, owner, currency, amount]
insert into posting (journal_id, seq, debit_kind, debit_owner, credit_kind, credit_owner, currency, amount)
select j.id, g.value ->> 2, g.value ->> 3, g.value ->> 4, g.value ->> 5, g.value ->> 6, g.value ->> 7, g.value ->> 8
  from json_each(?1) g
  join journal j on j.unit_id = g.value ->> 0 and j.kind = 'settle' and j.generation = g.value ->> 1;
