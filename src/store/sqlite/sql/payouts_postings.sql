-- Their lines, after payouts_journals.sql. Paid: payout clearing to bank. Rejected: payout clearing to the job's carry.
-- Returned: bank to the job's carry. ?1 kind, ?2 instructions
insert into posting (journal_id, seq, debit_kind, debit_owner, credit_kind, credit_owner, currency, amount)
select j.id, 1,
       case ?1 when 'returned' then 'bank' else 'payout_clearing' end, '',
       case ?1 when 'paid' then 'bank' else 'carry' end,
       case ?1 when 'paid' then '' else r.job || '/' || i.merchant end,
       i.currency, i.amount
  from json_each(?2) g
  join instruction i on i.id = g.value
  join run r on r.id = i.run_id
  join journal j on j.unit_id = i.unit_id and j.kind = ?1 and j.generation = i.generation
 where i.kind = 'payout' and i.state = ?1;
