-- Audit: every instruction with what its key and its bytes are derived from. Recomputed by the caller, row by row.
select i.id, i.kind, i.generation, i.idempotency_key, i.merchant, i.currency, i.amount, i.body, i.value_date,
       u.key as unit_key, r.id as run_id, r.job, r.kind as run_kind, r.tick, r.request_id
  from instruction i
  join unit u on u.id = i.unit_id
  join run r on r.id = i.run_id;
