-- What comes back as a carry of its job: the net of payouts that were rejected or returned in this transaction. An entry is
-- unique by its source and id, so that nothing comes back twice. ?1 kind, ?2 instructions
insert into entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, job_id)
select 'bursar', ?1 || ':' || i.unit_id || ':' || i.generation, i.merchant, i.currency, 'carry', i.amount, 0, c.now, c.now, i.job_id
  from json_each(?2) g
  join instruction i on i.id = g.value, clock c
 where i.kind = 'payout' and i.state = ?1 and ?1 in ('rejected', 'returned');
